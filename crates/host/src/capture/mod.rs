//! Copies of the packets that pass the interfaces of a network namespace, with the kernel's time stamps (AF_PACKET).
//!
//! Nothing is sent, and no packet waits for the capture: the kernel copies the first bytes of what it sends and receives anyway.
//! Each copy costs the sender or receiver some CPU time.

mod filter;

use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;
use tailbound_model::Problem;
use thiserror::Error;

pub use filter::{COPIED, COPIED_OF_DISCOVERY};

/// Number of packets that one system call returns.
const BATCH: usize = 64;
/// Time between two looks for packets: the room below is enough for far more packets than come in this time.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// Room for packets that have not been read yet, in bytes; the kernel counts its own overhead too.
const BUFFER: usize = 64 << 20;
/// Room for the control messages of a packet: its time stamp.
const CONTROL: usize = 64;

/// Why packets cannot be captured.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The kernel refuses the socket to this user.
    #[error("capturing packets needs the capability CAP_NET_RAW, which this program does not have")]
    NotPermitted,
    /// There is no such interface.
    #[error("there is no network interface `{0}` in this network namespace")]
    NoInterface(String),
    /// The interface is down, or was set down or removed while packets were captured.
    #[error("the network interface is down, or was removed")]
    InterfaceGone,
    /// Another system call failed.
    #[error("packets cannot be captured: {0}")]
    System(#[from] io::Error),
}

impl CaptureError {
    /// What is wrong and what to do, for the user.
    pub fn problem(&self) -> Problem {
        let (code, remedy) = match self {
            CaptureError::NotPermitted => {
                ("capture_not_permitted", "run the command as root, or give the program the capability CAP_NET_RAW")
            }
            CaptureError::NoInterface(_) => ("no_interface", "`ip link` lists the interfaces"),
            CaptureError::InterfaceGone => {
                ("interface_gone", "set the interface up (`ip link set NAME up`), or capture without --interface")
            }
            CaptureError::System(_) => ("capture_failed", "the kernel must have packet sockets (CONFIG_PACKET)"),
        };
        Problem::new(code, self.to_string(), remedy)
    }
}

/// A packet as the kernel sent or received it.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// When the kernel gave the packet to the driver of the interface, or received it from there: ns since 1970, CLOCK_REALTIME.
    pub stamp_ns: i64,
    /// Index of the interface.
    pub interface: i32,
    /// Whether the interface sent the packet, and did not receive it.
    pub is_sent: bool,
    /// The first bytes, from the header of IP on.
    pub bytes: &'a [u8],
}

/// A socket that receives copies of packets.
pub struct Capture {
    socket: OwnedFd,
    buffers: Box<[[u8; COPIED_OF_DISCOVERY as usize]; BATCH]>,
    dropped: u64,
}

impl Capture {
    /// Captures at one interface, or at all interfaces of the network namespace of the calling thread. Packets are copied from
    /// now on; those of TCP and UDP without RTPS are not copied, but for the ports of zenoh.
    ///
    /// # Errors
    /// See [`CaptureError`].
    pub fn open(interface: Option<&str>) -> Result<Capture, CaptureError> {
        let index = match interface {
            None => 0,
            Some(name) => {
                nix::net::if_::if_nametoindex(name).map_err(|_| CaptureError::NoInterface(name.to_owned()))?
            }
        };
        // Protocol 0 receives nothing until the filter is there, and the socket is bound.
        // SAFETY: the call takes numbers only.
        let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if raw < 0 {
            let error = io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(libc::EPERM) => CaptureError::NotPermitted,
                _ => CaptureError::System(error),
            });
        }
        // SAFETY: the call above has made this descriptor, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        filter::attach(&socket)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(io::Error::from)?;
        // Only CAP_NET_ADMIN may exceed the limit of the host.
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER).map_err(io::Error::from)?;
        }
        let of_all = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: every bit pattern, zero too, is a valid sockaddr_ll.
        let mut at: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        (at.sll_family, at.sll_protocol, at.sll_ifindex) = (libc::AF_PACKET as u16, of_all, index as i32);
        let length = size_of_val(&at) as libc::socklen_t;
        // SAFETY: the address lives until the call has returned, and has the length that is given.
        done(unsafe { libc::bind(socket.as_raw_fd(), (&raw const at).cast(), length) })?;
        Ok(Capture { socket, buffers: Box::new([[0; COPIED_OF_DISCOVERY as usize]; BATCH]), dropped: 0 })
    }

    /// Passes on the packets that are there, in the order of their arrival; if there are none, looks again after some milliseconds, or
    /// after `limit`, if this is less. Returns their number; the caller comes again until it is zero.
    ///
    /// It does not wait in the socket: each packet would wake this thread in the middle of a send call of another program, and could
    /// take its CPU away.
    ///
    /// # Errors
    /// The interface is gone, or the system call failed.
    pub fn read(&mut self, limit: Duration, mut each: impl FnMut(Packet<'_>)) -> Result<usize, CaptureError> {
        let count = self.read_now(&mut each)?;
        if count > 0 || limit.is_zero() {
            return Ok(count);
        }
        std::thread::sleep(limit.min(BETWEEN_LOOKS));
        self.read_now(&mut each)
    }

    /// Passes on the packets that are there.
    fn read_now(&mut self, each: &mut impl FnMut(Packet<'_>)) -> Result<usize, CaptureError> {
        // SAFETY: every bit pattern, zero too, is valid for these three.
        let (mut heads, mut parts, mut froms): (
            [libc::mmsghdr; BATCH],
            [libc::iovec; BATCH],
            [libc::sockaddr_ll; BATCH],
        ) = unsafe { std::mem::zeroed() };
        let mut controls = [Control([0; CONTROL]); BATCH];
        for (index, head) in heads.iter_mut().enumerate() {
            let buffer = &mut self.buffers[index];
            parts[index] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            head.msg_hdr.msg_name = (&raw mut froms[index]).cast();
            head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            head.msg_hdr.msg_iov = &raw mut parts[index];
            head.msg_hdr.msg_iovlen = 1;
            head.msg_hdr.msg_control = controls[index].0.as_mut_ptr().cast();
            head.msg_hdr.msg_controllen = CONTROL;
        }
        let descriptor = self.socket.as_raw_fd();
        let nothing = std::ptr::null_mut();
        // SAFETY: every head refers to a buffer, an address and control room of its own, which live until the end of this function.
        let count =
            unsafe { libc::recvmmsg(descriptor, heads.as_mut_ptr(), BATCH as u32, libc::MSG_DONTWAIT, nothing) };
        let count = match done(count) {
            Ok(count) => count as usize,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => return Ok(0),
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => return Err(CaptureError::InterfaceGone),
            Err(error) => return Err(error.into()),
        };
        for (index, head) in heads.iter().take(count).enumerate() {
            let Some(stamp_ns) = stamp(&head.msg_hdr) else { continue };
            let from = &froms[index];
            let bytes = &self.buffers[index][..(head.msg_len as usize).min(self.buffers[index].len())];
            let is_sent = from.sll_pkttype == PACKET_OUTGOING;
            each(Packet { stamp_ns, interface: from.sll_ifindex, is_sent, bytes });
        }
        Ok(count)
    }

    /// Number of packets that the kernel could not copy since the begin, because they were not read fast enough.
    ///
    /// # Errors
    /// The system call failed.
    pub fn dropped(&mut self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of_val(&statistics) as libc::socklen_t;
        let at = (&raw mut statistics).cast();
        // SAFETY: the kernel fills in this structure, whose length is given.
        done(unsafe {
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, at, &raw mut length)
        })?;
        // The kernel sets its counters to zero with each reading.
        self.dropped += u64::from(statistics.tp_drops);
        Ok(self.dropped)
    }
}

/// linux/if_packet.h: the interface sent the packet.
const PACKET_OUTGOING: u8 = 4;

/// Room for control messages, aligned as their headers are.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// The time stamp in the control messages of a packet.
fn stamp(head: &libc::msghdr) -> Option<i64> {
    // SAFETY: the kernel has filled in the control messages of this head, whose memory is still there.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(head) };
    while !next.is_null() {
        // SAFETY: not null, so it is the header of a control message.
        let control = unsafe { &*next };
        if (control.cmsg_level, control.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: the data of this kind of control message are a timespec, perhaps not aligned.
            let time = unsafe { libc::CMSG_DATA(next).cast::<libc::timespec>().read_unaligned() };
            return Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
        }
        // SAFETY: head and control message belong together.
        next = unsafe { libc::CMSG_NXTHDR(head, next) };
    }
    None
}

fn done(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
