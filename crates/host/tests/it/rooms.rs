//! Network namespaces of a test, connected by a bridge or by a program in a third network namespace.

use crate::interrupts::own_tid;
use crate::packets::command;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};
use std::fs::File;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

type Work = Box<dyn FnOnce() + Send>;

/// A network namespace, and a thread in it, which ends with this value.
struct Room {
    /// Id of the thread, by which `ip` finds the network namespace.
    tid: i32,
    work: Sender<Work>,
}

impl Room {
    /// Makes a network namespace; `None` without the right to do so.
    fn new() -> Option<Room> {
        let (sender, receiver) = channel();
        let (work, orders) = channel::<Work>();
        std::thread::spawn(move || {
            sender.send(unshare(CloneFlags::CLONE_NEWNET).ok().map(|()| own_tid())).unwrap();
            orders.into_iter().for_each(|work| work());
        });
        receiver.recv().unwrap().map(|tid| Room { tid, work })
    }

    /// Runs a function in the network namespace.
    fn run<T: Send + 'static>(&self, function: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = channel();
        self.work.send(Box::new(move || drop(sender.send(function())))).unwrap();
        receiver.recv().unwrap()
    }

    fn commands(&self, lines: &[String]) -> bool {
        let lines = lines.to_vec();
        self.run(move || lines.iter().all(|line| command(line)))
    }
}

/// What passes packets on between two network namespaces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Middle {
    /// A bridge of the kernel.
    Bridge,
    /// A thread of this program, which reads frames at one interface and writes them at the other.
    Program,
}

/// The network namespace of the calling thread with the interface `a1`, connected by the interfaces `a0` and `b0` of a
/// second one with `b1` of a third one.
pub struct Connected {
    /// Socket of the calling thread's network namespace, connected to `receiver`.
    pub sender: UdpSocket,
    /// Socket of the third network namespace.
    pub receiver: UdpSocket,
    /// Network namespaces that exist as long as this value.
    _rooms: [Room; 2],
    stop: Arc<AtomicBool>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Moves the calling thread into a network namespace of its own and connects it with another one, over IPv4 or, with
/// `six`, IPv6, with this maximum packet size; `None` without the rights or the programs for it.
pub fn connected(middle: Middle, six: bool, mtu: u32) -> Option<Connected> {
    unshare(CloneFlags::CLONE_NEWNET).ok()?;
    let [between, other] = [Room::new()?, Room::new()?];
    let (near, far, prefix) = if six { ("fd09::1", "fd09::2", 64) } else { ("10.9.0.1", "10.9.0.2", 24) };
    let lines = |all: &[&str]| all.iter().map(|line| (*line).to_owned()).collect::<Vec<String>>();
    let (a, b) = ("02:00:00:00:00:0a", "02:00:00:00:00:0b");
    // Without duplicate address detection, an IPv6 address can be used at once.
    let side = |name: &str, own: &str, peer: &str, at: &str| {
        let nodad = if six { " nodad" } else { "" };
        vec![
            format!("ip addr add {own}/{prefix} dev {name}{nodad}"),
            format!("ip link set {name} mtu {mtu} up"),
            format!("ip neigh add {peer} lladdr {at} dev {name} nud permanent"),
        ]
    };
    let made = command(&format!("ip link add a1 address {a} type veth peer name a0 netns {}", between.tid));
    let pair = format!("ip link add b0 type veth peer name b1 address {b} netns {}", other.tid);
    let up =
        ["ip link set a0 mtu 1500 up", "ip link set b0 mtu 1500 up"].map(|line| line.replace("1500", &mtu.to_string()));
    let bridge =
        ["ip link add br0 type bridge", "ip link set a0 master br0", "ip link set b0 master br0", "ip link set br0 up"];
    let ready = made
        && between.commands(&[pair])
        && (middle == Middle::Program || between.commands(&lines(&bridge)))
        && between.commands(&up)
        && side("a1", near, far, b).iter().all(|line| command(line))
        && other.commands(&side("b1", far, near, a));
    ready.then_some(())?;
    let receiver = other.run(move || UdpSocket::bind((far, 0)).unwrap());
    let sender = UdpSocket::bind((near, 0)).unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    // The kernel leaves the checksum to the device, and a program that passes the packet on does not add it.
    let (on, wait) = (1i32, Duration::from_millis(100));
    // SAFETY: an open socket, and a number that lives during the call.
    let set =
        unsafe { libc::setsockopt(sender.as_raw_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, (&raw const on).cast(), 4) };
    assert_eq!(set, 0);
    receiver.set_read_timeout(Some(wait)).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    if middle == Middle::Program {
        let ends = between.run(|| [raw("a0", libc::ETH_P_ALL as u16), raw("b0", 0)]);
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || pass_on(ends, &stop));
    }
    let connected = Connected { sender, receiver, _rooms: [between, other], stop };
    // The bridge passes packets on as soon as the kernel has noticed that its ports are up.
    let arrives = || {
        connected.sender.send(b"tb-hello").unwrap();
        connected.receiver.recv(&mut [0; 16]).is_ok()
    };
    assert!((0..50).any(|_| arrives()), "no packet passes");
    while connected.receiver.recv(&mut [0; 16]).is_ok() {}
    Some(connected)
}

/// Opens a socket for the frames of an interface; with the protocol 0 it receives none.
fn raw(interface: &str, protocol: u16) -> File {
    let index = nix::net::if_::if_nametoindex(interface).unwrap();
    // SAFETY: three numbers; a new descriptor, which nothing else owns, or -1.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(fd >= 0);
    // SAFETY: as above.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: every pattern of bits is an address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    (address.sll_family, address.sll_protocol) = (libc::AF_PACKET as u16, protocol.to_be());
    address.sll_ifindex = index as i32;
    // SAFETY: an address that lives during the call, with its length.
    let bound = unsafe { libc::bind(fd, (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32) };
    assert_eq!(bound, 0);
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::milliseconds(100)).unwrap();
    File::from(socket)
}

/// Writes each frame of the first interface to the second one.
fn pass_on([mut from, mut to]: [File; 2], stop: &AtomicBool) {
    let mut frame = [0; 2_000];
    while !stop.load(Ordering::Relaxed) {
        if let Ok(bytes) = from.read(&mut frame) {
            // Frames that the interface does not take, for example before it is up, are lost.
            let _ = to.write(&frame[..bytes]);
        }
    }
}
