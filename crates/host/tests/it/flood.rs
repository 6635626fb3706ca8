//! A flood of datagrams that one CPU sends and the soft interrupt of another CPU delivers to hundreds of sockets.

use nix::mount::{MsFlags, mount, umount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::sockopt::{IpMulticastLoop, ReuseAddr};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;
use tailbound_host::scheduling;
use tailbound_model::CpuList;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const PORT: u16 = 7400;
/// Number of sockets that get each datagram: the soft interrupt that delivers it to all of them takes about 0.1 ms.
const SOCKETS: usize = 300;
/// Time between two datagrams. With more of them the kernel would move the work to its thread `ksoftirqd`.
const PERIOD: Duration = Duration::from_millis(2);

/// A thread in a network namespace of its own, ready to send. The namespace ends with the thread.
pub struct Flood {
    go: mpsc::Sender<usize>,
    sender: JoinHandle<()>,
}

impl Flood {
    /// Prepares a loopback interface whose packets the CPU `to` receives, and a thread on the CPU `from` that sends.
    ///
    /// # Errors
    /// No right to make namespaces, or a kernel without receive packet steering.
    pub fn prepare(from: u32, to: u32) -> Result<Flood, String> {
        let (go, wait) = mpsc::channel::<usize>();
        let (ready, is_ready) = mpsc::channel();
        let sender = std::thread::spawn(move || {
            let sockets = steered(to).and_then(|()| sockets().map_err(|e| e.to_string()));
            let (sockets, result) = match sockets {
                Ok(sockets) => (Some(sockets), Ok(())),
                Err(e) => (None, Err(e)),
            };
            ready.send(result).unwrap();
            let (Some((socket, _receivers)), Ok(datagrams)) = (sockets, wait.recv()) else { return };
            scheduling::set_affinity(0, &CpuList::one(from)).unwrap();
            for _ in 0..datagrams {
                std::thread::sleep(PERIOD);
                socket.send_to(&[7; 64], (GROUP, PORT)).unwrap();
            }
        });
        is_ready.recv().unwrap().map(|()| Flood { go, sender })
    }

    /// Sends this number of datagrams.
    pub fn run(self, datagrams: usize) {
        self.go.send(datagrams).unwrap();
        self.sender.join().unwrap();
    }
}

fn sockets() -> std::io::Result<(UdpSocket, Vec<UdpSocket>)> {
    let receiver = |_| {
        let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        setsockopt(&socket, ReuseAddr, &true)?;
        bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &SockaddrIn::new(0, 0, 0, 0, PORT))?;
        let socket = UdpSocket::from(socket);
        socket.join_multicast_v4(&GROUP, &Ipv4Addr::LOCALHOST)?;
        Ok(socket)
    };
    let receivers: std::io::Result<Vec<UdpSocket>> = (0..SOCKETS).map(receiver).collect();
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    setsockopt(&sender, IpMulticastLoop, &true)?;
    Ok((sender, receivers?))
}

/// Moves this thread into a network namespace of its own, whose loopback interface passes packets on to `cpu`.
fn steered(cpu: u32) -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .map_err(|e| format!("needs the right to make a network namespace: {e}"))?;
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(|e| e.to_string())?;
    mount(Some("sysfs"), dir.path(), Some("sysfs"), MsFlags::empty(), none).map_err(|e| e.to_string())?;
    for words in ["link set lo up multicast on", "route add 224.0.0.0/4 dev lo"] {
        let done = std::process::Command::new("ip").args(words.split(' ')).status();
        if !done.is_ok_and(|status| status.success()) {
            return Err(format!("needs ip of iproute2 (ip {words})"));
        }
    }
    // Masks of CPUs are written in groups of 32, the highest first.
    let mask = format!("{:x}{}", 1u64 << (cpu % 32), ",00000000".repeat(cpu as usize / 32));
    let written = std::fs::write(dir.path().join("class/net/lo/queues/rx-0/rps_cpus"), mask);
    let unmounted = umount(dir.path());
    written.map_err(|e| format!("needs a kernel with receive packet steering: {e}"))?;
    unmounted.map_err(|e| e.to_string())
}
