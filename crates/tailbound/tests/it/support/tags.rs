//! Captures the frames that pass an interface of a network namespace, with the VLAN tag that each frame has on the
//! wire.

use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// A captured Ethernet frame with its VLAN tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// TPID and TCI of the VLAN tag of the frame; `None` if the frame has no tag.
    pub tag: Option<(u16, u16)>,
    /// EtherType of the captured frame, read behind the VLAN tag.
    pub protocol: u16,
    /// Number of payload bytes if the frame is a whole UDP datagram.
    pub udp_payload: Option<usize>,
}

impl Frame {
    /// VLAN id in the VLAN tag of the captured frame.
    pub fn vlan(&self) -> Option<u16> {
        self.tag.map(|(_, tci)| tci & 0xfff)
    }

    pub fn pcp(&self) -> Option<u16> {
        self.tag.map(|(_, tci)| tci >> 13)
    }
}

/// All frames that pass an interface in both directions during `time`. The interface is in the network namespace of the
/// calling thread. Needs CAP_NET_RAW.
pub fn watch(interface: &str, time: Duration) -> io::Result<Vec<Frame>> {
    let socket = open(interface)?;
    let (begin, mut frames) = (Instant::now(), Vec::new());
    while begin.elapsed() < time {
        frames.extend(next(&socket)?);
    }
    Ok(frames)
}

/// The bytes of all frames that pass an interface in both directions during `time`, as `watch` captures them.
pub fn bytes(interface: &str, time: Duration) -> io::Result<Vec<Vec<u8>>> {
    let socket = open(interface)?;
    let (begin, mut frames, mut buffer) = (Instant::now(), Vec::new(), vec![0u8; 65_536]);
    while begin.elapsed() < time {
        // SAFETY: the buffer lives through the call, with its own length.
        let length = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        match usize::try_from(length) {
            Ok(length) => frames.push(buffer[..length].to_vec()),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
    Ok(frames)
}

fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn open(interface: &str) -> io::Result<OwnedFd> {
    let all = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: three integers; a new descriptor or -1, which nobody else owns.
    let socket = unsafe {
        OwnedFd::from_raw_fd(checked(libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, all.into()))?)
    };
    let name = CString::new(interface)?;
    // SAFETY: every bit pattern is an address.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = all;
    // SAFETY: a text that ends with zero.
    address.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
    if address.sll_ifindex == 0 {
        return Err(io::Error::last_os_error());
    }
    let (on, wait) = (1i32, libc::timeval { tv_sec: 0, tv_usec: 100_000 });
    // SAFETY: descriptors and structs that live through the calls, with their own lengths.
    unsafe {
        // The kernel removes the tag from the frame, and reports it in auxiliary data (packet(7)).
        let set = |level, what, value: *const libc::c_void, length| {
            checked(libc::setsockopt(socket.as_raw_fd(), level, what, value, length as u32))
        };
        set(libc::SOL_PACKET, libc::PACKET_AUXDATA, (&raw const on).cast(), size_of::<i32>())?;
        set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const wait).cast(), size_of::<libc::timeval>())?;
        let length = size_of::<libc::sockaddr_ll>() as u32;
        checked(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length))?;
    }
    Ok(socket)
}

/// Receives the next frame; `None` if no frame arrives before the timeout of the socket.
fn next(socket: &OwnedFd) -> io::Result<Option<Frame>> {
    let (mut bytes, mut auxiliary) = ([0u8; 4096], [0u64; 16]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: every bit pattern is a header; what it points at lives through the call.
    let (length, tag_apart) = unsafe {
        let mut header: libc::msghdr = zeroed();
        (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
        (header.msg_control, header.msg_controllen) = (auxiliary.as_mut_ptr().cast(), size_of::<[u64; 16]>());
        let length = libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0);
        if length < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        let mut tag_apart = None;
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            if ((*message).cmsg_level, (*message).cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
                let data: libc::tpacket_auxdata =
                    libc::CMSG_DATA(message).cast::<libc::tpacket_auxdata>().read_unaligned();
                let valid = |flag| data.tp_status & flag != 0;
                if valid(libc::TP_STATUS_VLAN_VALID) && valid(libc::TP_STATUS_VLAN_TPID_VALID) {
                    tag_apart = Some((data.tp_vlan_tpid, data.tp_vlan_tci));
                }
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
        (length as usize, tag_apart)
    };
    Ok(frame(&bytes[..length.min(bytes.len())], tag_apart))
}

fn frame(bytes: &[u8], tag_apart: Option<(u16, u16)>) -> Option<Frame> {
    let word = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let (tag, at) = match (tag_apart, word(12)?) {
        (None, tpid @ 0x8100) => (Some((tpid, word(14)?)), 16),
        (tag_apart, _) => (tag_apart, 12),
    };
    let (protocol, ip) = (word(at)?, at + 2);
    // Whole datagrams only: a fragment does not say how long the whole datagram is.
    let is_udp = protocol == 0x0800 && bytes.get(ip + 9) == Some(&17) && word(ip + 6)? & 0x3fff == 0;
    let udp_payload = is_udp.then(|| Some(usize::from(word(ip + 20 + 4)?) - 8)).flatten();
    Some(Frame { tag, protocol, udp_payload })
}
