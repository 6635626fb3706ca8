//! Minimal route netlink: sends one request and receives its answers (rtnetlink(7)).
//!
//! The lab uses a netlink library for most requests. This module needs no asynchronous runtime, and its errors have the
//! words with which the kernel or a driver explains a refusal, which the library drops.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// struct ifinfomsg of route netlink, in which only the interface index is set.
pub(crate) struct IfInfo([u8; 16]);

impl IfInfo {
    pub fn of(index: u32) -> IfInfo {
        let mut bytes = [0; 16];
        bytes[4..8].copy_from_slice(&index.to_ne_bytes());
        IfInfo(bytes)
    }
}

const HEADER: usize = size_of::<libc::nlmsghdr>();
/// Flag of an error message: it ends with attributes (NLM_F_ACK_TLVS of linux/netlink.h).
const ACK_TLVS: u16 = 0x200;
/// Flag of an error message: of the request, it has only the header (NLM_F_CAPPED).
const CAPPED: u16 = 0x100;
/// Attribute of an error message: the words of the kernel or of a driver (NLMSGERR_ATTR_MSG).
const MESSAGE: u16 = 1;

/// The kernel refused a request, with its words or with the words of a driver (extended acknowledgement).
#[derive(Debug, thiserror::Error)]
#[error("{reason}: {words}")]
struct Refusal {
    reason: io::Error,
    words: String,
}

/// Sends a request about an interface of the calling thread's network namespace and returns the body of the answer,
/// which is empty for an acknowledgement.
pub(crate) fn request(kind: u16, body: &IfInfo) -> io::Result<Vec<u8>> {
    Ok(ask(kind, libc::NLM_F_ACK as u16, &body.0)?.into_iter().next().unwrap_or_default())
}

/// Sends a request in the calling thread's network namespace and returns the bodies of all answers.
///
/// `flags`: NLM_F_ACK, or NLM_F_DUMP for a list of objects, and further flags of the request (netlink(7)).
///
/// # Errors
/// The kernel refuses the request; the error has the words of the kernel or driver, if there are any.
pub(crate) fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    ask_of(libc::NETLINK_ROUTE, kind, flags, body)
}

/// Sends a request like [`ask`] by another protocol of netlink.
pub(crate) fn ask_of(protocol: libc::c_int, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    /// Number of attempts to get a list that does not change meanwhile.
    const ATTEMPTS: usize = 5;
    for _ in 1..ATTEMPTS {
        match ask_once(protocol, kind, flags, body) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
    ask_once(protocol, kind, flags, body)
}

fn ask_once(protocol: libc::c_int, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let socket = open(protocol)?;
    let mut request = Vec::with_capacity(HEADER + body.len());
    request.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend((libc::NLM_F_REQUEST as u16 | flags).to_ne_bytes());
    // The number of the request, and the kernel as its receiver.
    request.extend(1u32.to_ne_bytes());
    request.extend(0u32.to_ne_bytes());
    request.extend(body);
    // SAFETY: the pointer and the length are of a live vector; an unconnected netlink socket sends to the kernel.
    let sent = unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    // The description of a link has about 1.5 KiB, and more if the device has many virtual functions.
    let mut buffer = vec![0u8; 256 * 1024];
    let mut bodies = Vec::new();
    loop {
        // SAFETY: the kernel writes at most the buffer's length.
        let read = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if read < 0 {
            match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => continue,
                error => return Err(error),
            }
        }
        if take(&buffer[..read as usize], &mut bodies)? {
            return Ok(bodies);
        }
    }
}

fn open(protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket takes three integers and returns a new descriptor or -1.
    let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let on: libc::c_int = 1;
    // Kernels before 4.12 do not know this option; then errors have no words.
    // SAFETY: the pointer and the length are of a live integer.
    unsafe {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(fd, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, (&raw const on).cast(), length);
    }
    Ok(socket)
}

/// Takes the messages of one datagram: adds their bodies, and returns whether the last one ends the answers.
fn take(mut datagram: &[u8], bodies: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's netlink answer is truncated");
    while !datagram.is_empty() {
        let length = word(datagram, 0).ok_or_else(bad)? as usize;
        let kind_and_flags = word(datagram, 4).ok_or_else(bad)?.to_ne_bytes();
        let [kind, flags] = [0, 2].map(|at| u16::from_ne_bytes([kind_and_flags[at], kind_and_flags[at + 1]]));
        let body = datagram.get(HEADER..length).ok_or_else(bad)?;
        if flags & libc::NLM_F_DUMP_INTR as u16 != 0 && i32::from(kind) != libc::NLMSG_ERROR {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the list changed while the kernel gave it"));
        }
        match i32::from(kind) {
            libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                return match word(body, 0).map(u32::cast_signed) {
                    Some(0) | None => Ok(true),
                    Some(code) => Err(refusal(code, flags, body)),
                };
            }
            _ => bodies.push(body.to_vec()),
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The error for a refused request: its body is the negative errno, the request (or its header), and attributes.
fn refusal(code: i32, flags: u16, body: &[u8]) -> io::Error {
    /// Error of the kernel that no header of programs has (ENOTSUPP of include/linux/errno.h).
    const NOT_SUPPORTED: i32 = 524;
    let code = code.wrapping_neg();
    let reason = io::Error::from_raw_os_error(if code == NOT_SUPPORTED { libc::EOPNOTSUPP } else { code });
    let asked = word(body, 4).filter(|_| flags & CAPPED == 0).map_or(HEADER, |length| length as usize);
    let rest = body.get(4 + asked.next_multiple_of(4)..).filter(|_| flags & ACK_TLVS != 0).unwrap_or_default();
    let words = attributes(rest).find(|(kind, _)| *kind == MESSAGE);
    let words = words.map(|(_, text)| String::from_utf8_lossy(text).trim_end_matches('\0').trim().to_owned());
    match words.filter(|words| !words.is_empty()) {
        Some(words) => io::Error::new(reason.kind(), Refusal { reason, words }),
        None => reason,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Splits bytes of a netlink answer into attributes: type without flags, and value. The iterator ends at the first
/// truncated attribute.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
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

/// Appends a netlink attribute, padded to a multiple of four bytes (netlink(7)).
pub fn push(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    // Of a value that is too long, the kernel refuses the length.
    bytes.extend(u16::try_from(4 + value.len()).unwrap_or(u16::MAX).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written_and_a_truncated_one_ends_them() {
        let mut bytes = Vec::new();
        for (kind, value) in [(4u16, &b"ab"[..]), (0x8012, b"nest"), (5, b"")] {
            push(&mut bytes, kind, value);
        }
        let whole = bytes.len();
        bytes.extend([40, 0, 9, 0, 1]);
        let all: Vec<_> = attributes(&bytes).collect();
        assert_eq!(all, [(4, &b"ab"[..]), (0x12, b"nest"), (5, b"")]);
        assert_eq!(attributes(&bytes[..whole - 1]).count(), 2);
        assert_eq!(attributes(&[0, 0, 0, 0]).count(), 0, "a length of zero must not loop");
        assert_eq!(attributes(&[2, 0, 1, 0]).count(), 0);
    }

    #[test]
    fn the_kernels_refusal_is_an_error() {
        let error = request(libc::RTM_GETLINK, &IfInfo::of(0x7fff_fff0)).unwrap_err();
        assert_eq!(error.kind(), io::Error::from_raw_os_error(libc::ENODEV).kind());
    }

    #[test]
    fn the_words_of_a_driver_are_in_the_error() {
        let mut words = Vec::new();
        push(&mut words, MESSAGE, b"Device does not have a PTP clock.\0");
        // The header of a request with a body of 20 bytes.
        let asked = [&36u32.to_ne_bytes()[..], &[0; 12]].concat();
        let text = |flags, request: &[u8]| {
            let body = [&(-524i32).to_ne_bytes()[..], request, &words].concat();
            let length = (HEADER + body.len()) as u32;
            let head = [&length.to_ne_bytes()[..], &[2, 0], &u16::to_ne_bytes(flags), &[0; 8]].concat();
            take(&[head, body].concat(), &mut Vec::new()).unwrap_err().to_string()
        };
        let expected = "Operation not supported (os error 95): Device does not have a PTP clock.";
        assert_eq!(text(ACK_TLVS | CAPPED, &asked), expected);
        assert_eq!(text(ACK_TLVS, &[&asked[..], &[0; 20]].concat()), expected);
        assert_eq!(text(0, &asked), "Operation not supported (os error 95)");
    }
}
