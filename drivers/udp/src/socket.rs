//! Makes the sockets of readers and writers: the port or the group, and the socket options.

use std::io::{Error, ErrorKind};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use tailbound_abi::side::{Outcome, fail};
use tailbound_abi::{TB_EINVAL, TB_EIO};

use crate::error::os;
use crate::net;
use crate::options::{DEFAULT_RCVBUF_BYTES, Options};
use crate::wire::{MOST_CANDIDATES, candidate_port, group};

/// Binds a socket to the first candidate port of a topic that is free.
pub fn bind(options: &Options, topic: &str, key: u64) -> Outcome<OwnedFd> {
    let socket = net::socket(options.address).or_else(|e| os("socket", &e))?;
    if options.multicast {
        return bind_group(options, socket, key);
    }
    for i in 0..MOST_CANDIDATES {
        let at = options.at(options.address, candidate_port(key, i));
        match net::bind(&socket, at) {
            Ok(()) => return Ok(socket),
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            Err(e) => return os(format!("cannot bind {at}"), &e),
        }
    }
    let (first, last) = (candidate_port(key, 0), candidate_port(key, MOST_CANDIDATES - 1));
    let on = options.address;
    fail(TB_EIO, format!("topic {topic}: all its ports on {on}, {first} to {last}, are in use; try another domain"))
}

/// Binds the multicast group and port that all readers of a topic share.
fn bind_group(options: &Options, socket: OwnedFd, key: u64) -> Outcome<OwnedFd> {
    let (fd, at) = (socket.as_raw_fd(), group(key));
    let (IpAddr::V4(to), IpAddr::V4(on)) = (at.ip(), options.address) else { return Ok(socket) };
    net::set_int(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1).or_else(|e| os("SO_REUSEADDR", &e))?;
    net::bind(&socket, at).or_else(|e| os(format!("cannot bind {at}"), &e))?;
    net::join(fd, to, on).or_else(|e| os(format!("data=multicast: cannot join group {to} on address {on}"), &e))?;
    Ok(socket)
}

/// Sets the socket options that readers and writers have in common.
pub fn prepare(fd: i32, options: &Options) -> Outcome {
    if let Some(name) = &options.interface {
        net::set_device(fd, name)
            .or_else(|e| os(format!("interface: cannot bind to `{name}` (SO_BINDTODEVICE)"), &e))?;
    }
    let sizes = [("rcvbuf", libc::SO_RCVBUF, options.rcvbuf_bytes), ("sndbuf", libc::SO_SNDBUF, options.sndbuf_bytes)];
    for (key, name, size) in sizes {
        if let Some(size) = size {
            net::set_int(fd, libc::SOL_SOCKET, name, size).or_else(|e| os(key, &e))?;
            // The kernel doubles the size that it grants (socket(7)), and silently grants less than requested.
            let given = net::get_int(fd, libc::SOL_SOCKET, name).unwrap_or(0) / 2;
            if given < size {
                let limit = if key == "rcvbuf" { "rmem_max" } else { "wmem_max" };
                return fail(
                    TB_EINVAL,
                    format!("{key}: {size} B were requested, but the kernel grants {given} B; raise net.core.{limit}"),
                );
            }
        }
    }
    if options.rcvbuf_bytes.is_none() {
        net::set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, DEFAULT_RCVBUF_BYTES).or_else(|e| os("rcvbuf", &e))?;
    }
    if let (true, IpAddr::V4(on)) = (options.multicast, options.address) {
        net::send_groups_by(fd, on).or_else(|e| os(format!("data=multicast: cannot send from address {on}"), &e))?;
        let ttl = options.ttl.unwrap_or(1);
        net::set_int(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_TTL, ttl).or_else(|e| os("ttl", &e))?;
    }
    if let Some(ttl) = options.ttl.filter(|ttl| *ttl > 0) {
        let (level, name) = match options.address.is_ipv4() {
            true => (libc::IPPROTO_IP, libc::IP_TTL),
            false => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
        };
        net::set_int(fd, level, name, ttl).or_else(|e| os("ttl", &e))?;
    }
    // The queue of messages with launch times drops what has none, such as answers to discovery questions.
    match options.priority.filter(|_| options.launch.is_none()) {
        Some(priority) => set_priority(fd, priority),
        None => Ok(()),
    }
}

/// Sets the priority of the datagrams of a socket.
pub fn set_priority(fd: i32, priority: i32) -> Outcome {
    net::set_int(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, priority).or_else(|e| {
        let text = "priority: a value above 6 needs CAP_NET_ADMIN, or root (SO_PRIORITY)";
        os(if priority > 6 { text } else { "priority" }, &e)
    })
}

/// Whether the datagrams of a socket have launch times, as [`net::launch_times`] sets them.
pub fn has_launch_times(fd: RawFd) -> bool {
    let mut value = libc::sock_txtime { clockid: 0, flags: 0 };
    let mut len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` has room for `len` bytes.
    let rc = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TXTIME, (&raw mut value).cast(), &raw mut len) };
    rc == 0 && value.flags & libc::SOF_TXTIME_REPORT_ERRORS != 0
}

/// Gives a new socket the address of the socket `old`, and puts it in the place of `old`, whose descriptor stays.
pub fn take_place(fresh: &OwnedFd, old: RawFd) -> Result<(), Error> {
    let at = net::local(old).ok_or_else(Error::last_os_error)?;
    // Both sockets have the address for a moment.
    for fd in [old, fresh.as_raw_fd()] {
        net::set_int(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    }
    net::bind(fresh, at)?;
    net::set_int(fresh.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 0)?;
    // SAFETY: the call takes no pointers; `old` belongs to the end point, which goes on to own the descriptor.
    let rc = unsafe { libc::dup3(fresh.as_raw_fd(), old, libc::O_CLOEXEC) };
    if rc < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}
