//! Sockets of the path check and the options that std does not set.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

/// Room for a full datagram in fragments; the kernel caps it silently.
const RECEIVE_BUFFER: libc::c_int = 1 << 20;

/// Opens a socket on the end's address; to be called inside its namespace.
pub(crate) fn open(address: IpAddr, interface: &str, multicast: bool) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER)?;
    if let (IpAddr::V4(address), true) = (address, multicast) {
        set(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, mreqn(Ipv4Addr::UNSPECIFIED, address, interface)?)?;
        // Never past the first router.
        socket.set_multicast_ttl_v4(1)?;
    }
    Ok(socket)
}

/// Opens a socket that receives one group of 239.255/16 (administratively scoped, RFC 2365) on the end's interface
/// alone.
pub(crate) fn join_group(address: IpAddr, interface: &str) -> io::Result<UdpSocket> {
    let IpAddr::V4(address) = address else { return Err(io::ErrorKind::Unsupported.into()) };
    let random = super::exchange::random().to_ne_bytes();
    // Not 239.255.0.1, which DDS discovery uses.
    let group = Ipv4Addr::new(239, 255, random[0] | 0x80, random[1]);
    let socket = UdpSocket::bind(SocketAddrV4::new(group, 0))?;
    set(&socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)?;
    set(&socket, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, mreqn(group, address, interface)?)?;
    Ok(socket)
}

/// Whether datagrams carry "do not fragment" (and ignore a path MTU learnt before), or may be fragmented anywhere.
pub(super) fn forbid_fragments(socket: &UdpSocket, forbid: bool) -> io::Result<()> {
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

fn set<T>(socket: &UdpSocket, level: libc::c_int, option: libc::c_int, value: T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: value is plain data of the given length and outlives the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
