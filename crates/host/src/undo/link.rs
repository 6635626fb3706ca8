//! One netlink request: delete a link by its index (rtnetlink(7)).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// RTM_DELLINK with an ifinfomsg and nothing else.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    header: libc::nlmsghdr,
    family: u8,
    pad: u8,
    kind: u16,
    index: i32,
    flags: u32,
    change: u32,
}

/// The answer: a header and the negative errno.
#[repr(C)]
#[derive(Clone, Copy)]
struct Answer {
    header: libc::nlmsghdr,
    error: i32,
    rest: [u8; 512],
}

/// Deletes the interface with this index in the calling thread's network namespace.
pub(super) fn delete_link(index: u32) -> io::Result<()> {
    // SAFETY: socket takes three integers and returns a new descriptor or -1.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let request = Request {
        header: libc::nlmsghdr {
            nlmsg_len: size_of::<Request>() as u32,
            nlmsg_type: libc::RTM_DELLINK,
            nlmsg_flags: (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16,
            nlmsg_seq: 1,
            nlmsg_pid: 0,
        },
        family: libc::AF_UNSPEC as u8,
        pad: 0,
        kind: 0,
        index: index as i32,
        flags: 0,
        change: 0,
    };
    // SAFETY: request is plain old data without padding, as long as its size says; an unconnected netlink socket sends
    // to the kernel.
    let sent = unsafe { libc::send(socket.as_raw_fd(), (&raw const request).cast(), size_of::<Request>(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: every bit pattern, zero too, is a valid Answer.
    let mut answer: Answer = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the given size into answer.
    let read = unsafe { libc::recv(socket.as_raw_fd(), (&raw mut answer).cast(), size_of::<Answer>(), 0) };
    if read < 0 {
        return Err(io::Error::last_os_error());
    }
    let least = size_of::<libc::nlmsghdr>() + size_of::<i32>();
    if (read as usize) < least || i32::from(answer.header.nlmsg_type) != libc::NLMSG_ERROR {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is not an acknowledgement"));
    }
    if answer.error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-answer.error)) }
}
