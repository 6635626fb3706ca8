//! UDP sockets of the path check: opens them, sends datagrams, and recognises received datagrams.

use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};
use tailbound_model::ProbeMessage;

/// Size of the receive buffer of a socket in bytes, enough for a full datagram in fragments. If the kernel's limit is
/// smaller, the kernel uses the limit without an error.
const RECEIVE_BUFFER: libc::c_int = 1 << 20;

/// Opens a UDP socket on the address of an end. The calling thread must be in the network namespace of the end.
pub(crate) fn open(address: IpAddr, interface: &str, multicast: bool) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER)?;
    if let (IpAddr::V4(address), true) = (address, multicast) {
        set(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, mreqn(Ipv4Addr::UNSPECIFIED, address, interface)?)?;
        // Multicast does not pass the first router.
        socket.set_multicast_ttl_v4(1)?;
    }
    Ok(socket)
}

/// Opens a socket that has joined one random multicast group of 239.255/16 (administratively scoped, RFC 2365) on the
/// end's interface only.
pub(crate) fn join_group(address: IpAddr, interface: &str) -> io::Result<UdpSocket> {
    let IpAddr::V4(address) = address else { return Err(io::ErrorKind::Unsupported.into()) };
    let random = random().to_ne_bytes();
    // The high bit of the third byte avoids 239.255.0.1, which DDS discovery uses.
    let group = Ipv4Addr::new(239, 255, random[0] | 0x80, random[1]);
    let socket = UdpSocket::bind(SocketAddrV4::new(group, 0))?;
    set(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)?;
    set(&socket, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, mreqn(group, address, interface)?)?;
    Ok(socket)
}

/// Forbids or allows fragments. If fragments are forbidden, datagrams carry "do not fragment" and the kernel ignores a
/// known path MTU.
fn forbid_fragments(socket: &UdpSocket, forbid: bool) -> io::Result<()> {
    let mode = if forbid { libc::IP_PMTUDISC_PROBE } else { libc::IP_PMTUDISC_DONT };
    set(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, mode)
}

fn mreqn(group: Ipv4Addr, address: Ipv4Addr, interface: &str) -> io::Result<libc::ip_mreqn> {
    let index = nix::net::if_::if_nametoindex(interface)?;
    let in_addr = |a: Ipv4Addr| libc::in_addr { s_addr: u32::from(a).to_be() };
    Ok(libc::ip_mreqn {
        imr_multiaddr: in_addr(group),
        imr_address: in_addr(address),
        imr_ifindex: index as libc::c_int,
    })
}

/// Returns the content of a datagram: the number that identifies the path check, the sequence number of the datagram,
/// and then bytes whose values depend on their position.
fn content(message: ProbeMessage) -> Vec<u8> {
    let head = [message.token.to_be_bytes(), message.sequence.to_be_bytes()].concat();
    let mut bytes: Vec<u8> = (0..message.bytes).map(|i| (i.wrapping_mul(167) >> 3) as u8).collect();
    let length = head.len().min(bytes.len());
    bytes[..length].copy_from_slice(&head[..length]);
    bytes
}

pub(crate) fn send(socket: &UdpSocket, to: SocketAddr, message: ProbeMessage, whole: bool) -> io::Result<()> {
    forbid_fragments(socket, whole)?;
    socket.send_to(&content(message), to).map(drop)
}

/// Waits for the datagram `message` of the path check and returns the time at which it arrived. Other datagrams, for
/// example of an earlier attempt, are ignored.
pub(crate) fn received(socket: &UdpSocket, message: ProbeMessage, limit: Duration) -> Option<Instant> {
    let end = Instant::now() + limit;
    let message = content(message);
    let mut buffer = vec![0; message.len() + 1];
    loop {
        let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        socket.set_read_timeout(Some(left)).ok()?;
        match socket.recv_from(&mut buffer) {
            Ok((length, _)) if buffer[..length] == *message => return Some(Instant::now()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Returns a random number that identifies one path check.
pub(crate) fn random() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

fn set<T>(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: value is plain data of the given length and outlives the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
