//! Two UDP sockets in a network namespace of their own, so that their packets are counted nowhere else.

use nix::sched::{CloneFlags, unshare};
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

/// Two connected UDP sockets, and their ports. The sockets have the type of local sockets: both types send and receive
/// in the same way once they are connected.
pub(super) struct Pair {
    pub sockets: (UnixDatagram, UnixDatagram),
    pub ports: [u16; 2],
}

/// Makes two UDP sockets that are connected over the loopback interface of a new network namespace, which ends with
/// them. Needs CAP_SYS_ADMIN.
///
/// # Errors
/// The kernel refuses.
pub(super) fn pair() -> io::Result<Pair> {
    // A thread of its own, because the calling thread stays in its network namespace.
    let made = std::thread::Builder::new().name("cost".into()).spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let one = UdpSocket::bind("127.0.0.1:0")?;
        set_up(&one)?;
        let other = UdpSocket::bind("127.0.0.1:0")?;
        one.connect(other.local_addr()?)?;
        other.connect(one.local_addr()?)?;
        let ports = [one.local_addr()?.port(), other.local_addr()?.port()];
        let of = |socket: UdpSocket| UnixDatagram::from(OwnedFd::from(socket));
        Ok(Pair { sockets: (of(one), of(other)), ports })
    })?;
    made.join().unwrap_or_else(|_| Err(io::Error::other("the thread that makes sockets panicked")))
}

/// Sets the loopback interface of the socket's network namespace up.
fn set_up(socket: &UdpSocket) -> io::Result<()> {
    // SAFETY: a request of zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: an open socket, and a request that lives during the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
