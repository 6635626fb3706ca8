//! Minimal route netlink: sends one request with an ifinfomsg and receives one answer (rtnetlink(7)).
//!
//! The lab uses a netlink library instead. This crate needs only two requests about one interface, and no asynchronous
//! runtime.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// struct ifinfomsg of route netlink, in which only the interface index is set.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct IfInfo {
    family: u8,
    pad: u8,
    kind: u16,
    index: i32,
    flags: u32,
    change: u32,
}

impl IfInfo {
    pub fn of(index: u32) -> IfInfo {
        IfInfo { index: index as i32, ..IfInfo::default() }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    header: libc::nlmsghdr,
    body: IfInfo,
}

const HEADER: usize = size_of::<libc::nlmsghdr>();

/// Sends a request about an interface of the calling thread's network namespace and returns the body of the answer,
/// which is empty for an acknowledgement.
pub(crate) fn request(kind: u16, body: &IfInfo) -> io::Result<Vec<u8>> {
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
            nlmsg_type: kind,
            nlmsg_flags: (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16,
            nlmsg_seq: 1,
            nlmsg_pid: 0,
        },
        body: *body,
    };
    // SAFETY: request is plain data without padding, as long as its header says; an unconnected netlink socket sends to
    // the kernel.
    let sent = unsafe { libc::send(socket.as_raw_fd(), (&raw const request).cast(), size_of::<Request>(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    // The description of a link has about 1.5 KiB, and more if the device has many virtual functions.
    let mut buffer = vec![0u8; 256 * 1024];
    // SAFETY: the kernel writes at most the buffer's length.
    let read = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    if read < 0 {
        return Err(io::Error::last_os_error());
    }
    buffer.truncate(read as usize);
    body_of(&buffer)
}

fn body_of(message: &[u8]) -> io::Result<Vec<u8>> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's netlink answer is truncated");
    let word =
        |at: usize| -> io::Result<[u8; 4]> { message.get(at..at + 4).and_then(|b| b.try_into().ok()).ok_or_else(bad) };
    let length = u32::from_ne_bytes(word(0)?) as usize;
    let kind = u16::from_ne_bytes([word(4)?[0], word(4)?[1]]);
    if i32::from(kind) == libc::NLMSG_ERROR {
        return match i32::from_ne_bytes(word(HEADER)?) {
            0 => Ok(Vec::new()),
            error => Err(io::Error::from_raw_os_error(-error)),
        };
    }
    message.get(HEADER..length).map(<[u8]>::to_vec).ok_or_else(bad)
}

/// Splits bytes of a netlink answer into attributes: type without flags, and value. The iterator ends at the first
/// truncated attribute.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let head = bytes.get(..4)?;
        let length = u16::from_ne_bytes([head[0], head[1]]) as usize;
        // The two highest bits are flags for nesting and byte order.
        let kind = u16::from_ne_bytes([head[2], head[3]]) & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_split_and_a_truncated_one_ends_them() {
        let mut bytes = Vec::new();
        for (kind, value) in [(4u16, &b"ab"[..]), (0x8012, b"nest"), (5, b"")] {
            bytes.extend((4 + value.len() as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes.extend([40, 0, 9, 0, 1]);
        let all: Vec<_> = attributes(&bytes).collect();
        assert_eq!(all, [(4, &b"ab"[..]), (0x12, b"nest"), (5, b"")]);
        assert_eq!(attributes(&[0, 0, 0, 0]).count(), 0, "a length of zero must not loop");
    }

    #[test]
    fn the_kernels_refusal_is_an_error() {
        let error = request(libc::RTM_GETLINK, &IfInfo::of(0x7fff_fff0)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
