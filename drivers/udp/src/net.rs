//! The system calls of the `udp` driver for sockets.

use std::io::{Error, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void, socklen_t};

use crate::stamps::Stage;

/// A socket address in the kernel's form, with room for IPv6, the longest address of a UDP socket.
#[derive(Clone, Copy)]
pub struct Address {
    storage: libc::sockaddr_in6,
    len: socklen_t,
}

impl Address {
    pub fn empty() -> Address {
        // SAFETY: zeros are a valid sockaddr (AF_UNSPEC).
        Address { storage: unsafe { std::mem::zeroed() }, len: size_of::<libc::sockaddr_in6>() as socklen_t }
    }

    pub fn new(address: SocketAddr) -> Address {
        let mut out = Address::empty();
        match address {
            SocketAddr::V4(a) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: a.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(a.ip().octets()) },
                    sin_zero: [0; 8],
                };
                // SAFETY: a sockaddr_in6 has room for a sockaddr_in, and its alignment.
                unsafe { (&raw mut out.storage).cast::<libc::sockaddr_in>().write(raw) };
                out.len = size_of::<libc::sockaddr_in>() as socklen_t;
            }
            SocketAddr::V6(a) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: a.port().to_be(),
                    sin6_flowinfo: a.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: a.ip().octets() },
                    sin6_scope_id: a.scope_id(),
                };
                out.storage = raw;
                out.len = size_of::<libc::sockaddr_in6>() as socklen_t;
            }
        }
        out
    }

    /// Converts the socket address; `None` if the address belongs to another family than IPv4 and IPv6.
    pub fn get(&self) -> Option<SocketAddr> {
        match i32::from(self.storage.sin6_family) {
            libc::AF_INET => {
                // SAFETY: the family determines the form.
                let raw = unsafe { (&raw const self.storage).cast::<libc::sockaddr_in>().read() };
                let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(raw.sin_port))))
            }
            libc::AF_INET6 => {
                let raw = self.storage;
                let (ip, port) = (Ipv6Addr::from(raw.sin6_addr.s6_addr), u16::from_be(raw.sin6_port));
                Some(SocketAddr::V6(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id)))
            }
            _ => None,
        }
    }

    /// A number that identifies the sender of datagrams with this address.
    #[inline]
    pub fn identity(&self) -> u64 {
        match self.get() {
            Some(SocketAddr::V4(a)) => u64::from(a.ip().to_bits()) << 16 | u64::from(a.port()),
            Some(SocketAddr::V6(a)) => {
                let bits = a.ip().to_bits();
                (bits as u64 ^ (bits >> 64) as u64).rotate_left(16) ^ u64::from(a.port())
            }
            None => 0,
        }
    }
}

fn check(rc: isize) -> Result<usize> {
    if rc < 0 { Err(Error::last_os_error()) } else { Ok(rc as usize) }
}

// Datagrams are sent and received by direct system calls: in a process with several threads, `sendto`, `sendmsg`,
// `recvfrom` and `recvmsg` of glibc prepare and undo the cancellation of the thread, which takes about 45 instructions.
// No thread is cancelled here.

/// Makes a UDP socket of the same address family as `like`.
pub fn socket(like: IpAddr) -> Result<OwnedFd> {
    let family = if like.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: the call takes no pointers; nobody else owns a descriptor that was just made.
    unsafe {
        let fd = check(libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) as isize)?;
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

pub fn bind(fd: &OwnedFd, address: SocketAddr) -> Result<()> {
    let a = Address::new(address);
    // SAFETY: `a` lives until the call returns and `len` is its length.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const a.storage).cast(), a.len) } as isize).map(drop)
}

/// Returns the local address to which a socket is bound.
pub fn local(fd: RawFd) -> Option<SocketAddr> {
    let mut a = Address::empty();
    // SAFETY: `a` has room for `len` bytes.
    let rc = unsafe { libc::getsockname(fd, (&raw mut a.storage).cast(), &raw mut a.len) };
    (rc == 0).then(|| a.get()).flatten()
}

/// Sets the peer of a socket, so that the kernel looks up the route only once; `None` removes the peer.
pub fn connect(fd: RawFd, peer: Option<&Address>) -> Result<()> {
    let none = Address::empty();
    let a = peer.unwrap_or(&none);
    // SAFETY: `a` lives until the call returns and `len` is its length.
    check(unsafe { libc::connect(fd, (&raw const a.storage).cast(), a.len) } as isize).map(drop)
}

/// Sets a socket option whose value is an int.
pub fn set_int(fd: RawFd, level: c_int, name: c_int, value: c_int) -> Result<()> {
    set(fd, level, name, &value)
}

pub fn set<T>(fd: RawFd, level: c_int, name: c_int, value: &T) -> Result<()> {
    let (p, len) = (std::ptr::from_ref(value).cast::<c_void>(), size_of::<T>() as socklen_t);
    // SAFETY: `p` points to `len` readable bytes.
    check(unsafe { libc::setsockopt(fd, level, name, p, len) } as isize).map(drop)
}

/// Joins a multicast group on the interface with this address; datagrams to other groups are not received.
pub fn join(fd: RawFd, group: Ipv4Addr, on: Ipv4Addr) -> Result<()> {
    const IP_MULTICAST_ALL: c_int = 49;
    let raw = |ip: Ipv4Addr| libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
    set_int(fd, libc::IPPROTO_IP, IP_MULTICAST_ALL, 0)?;
    let request = libc::ip_mreq { imr_multiaddr: raw(group), imr_interface: raw(on) };
    set(fd, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, &request)
}

/// Makes a socket send multicast through the interface with this address.
pub fn send_groups_by(fd: RawFd, on: Ipv4Addr) -> Result<()> {
    let raw = libc::in_addr { s_addr: u32::from_ne_bytes(on.octets()) };
    set(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &raw)
}

/// Switches whether the kernel stores datagrams that were refused, with their addresses; stored datagrams are
/// discarded.
pub fn hear_refusals(fd: RawFd, on: bool) {
    errors(fd, |_, _| {});
    for (level, name) in [(libc::IPPROTO_IP, libc::IP_RECVERR), (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)] {
        // The option of the other address family fails. Without either option, the end of a peer is not noticed.
        let _ = set_int(fd, level, name, c_int::from(on));
    }
}

/// What the error queue of a socket contains (IP_RECVERR).
#[derive(Default)]
pub struct Errors {
    /// Destinations whose kernel refused a datagram.
    pub refused: Vec<SocketAddr>,
    /// Launch times in ns of CLOCK_TAI of datagrams that the own kernel did not send, and the codes of the reasons
    /// (SO_EE_CODE_TXTIME_* of linux/errqueue.h). The receive buffer limits their number; the kernel discards the rest.
    pub launches: Vec<(i64, u8)>,
}

/// What an entry of the error queue of a socket is about.
enum About {
    /// A launch time in ns of CLOCK_TAI that the kernel refused, and the code of the reason.
    Launch(i64, u8),
    /// A message was at this stage of its way out at this time (ns).
    Stamp(Stage, i64),
    /// A datagram that was refused.
    Refusal,
}

/// Takes everything from the error queue of a socket. `stamped` gets the begin of each frame with a transmit stamp, its stage, and
/// the time in ns.
pub fn errors(fd: RawFd, mut stamped: impl FnMut(&[u8], (Stage, i64))) -> Errors {
    let mut all = Errors::default();
    // Room for all headers before the sequence number.
    let mut datagram = [0u8; 128];
    loop {
        let (mut to, mut found) = (Address::empty(), About::Refusal);
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        let received = receive_with(fd, &mut datagram, flags, &mut to, |message| found = about(message));
        match (received, found) {
            (Err(_), _) => return all,
            (_, About::Launch(at_ns, code)) => all.launches.push((at_ns, code)),
            (Ok(len), About::Stamp(stage, at_ns)) => stamped(&datagram[..len.min(datagram.len())], (stage, at_ns)),
            (_, About::Refusal) => all.refused.extend(to.get()),
        }
    }
}

/// What an entry of the error queue is about.
fn about(message: &libc::msghdr) -> About {
    const SO_EE_ORIGIN_TIMESTAMPING: u8 = 4;
    const SO_EE_ORIGIN_TXTIME: u8 = 6;
    const SCM_TSTAMP_SCHED: u32 = 1;
    let is_error = |level, kind| {
        (level, kind) == (libc::IPPROTO_IP, libc::IP_RECVERR)
            || (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
    };
    // SAFETY: control messages of these kinds contain a sock_extended_err.
    let Some(error) = (unsafe { control::<libc::sock_extended_err>(message, is_error) }) else { return About::Refusal };
    match error.ee_origin {
        SO_EE_ORIGIN_TXTIME => About::Launch(i64::from(error.ee_data) << 32 | i64::from(error.ee_info), error.ee_code),
        SO_EE_ORIGIN_TIMESTAMPING => {
            let [software, hardware] = both_timestamps(message);
            match error.ee_info {
                SCM_TSTAMP_SCHED => About::Stamp(Stage::Queued, software),
                _ if hardware != 0 => About::Stamp(Stage::Wire, hardware),
                _ => About::Stamp(Stage::Sent, software),
            }
        }
        _ => About::Refusal,
    }
}

/// Lets the kernel stamp the datagrams of a socket on their way out: when they come to the queue discipline, when the driver of the
/// interface gets them, and, if `by_card` is set, when the network card sends them. The stamps come into the error queue, for which
/// the receive buffer is made larger, as far as this is permitted.
pub fn transmit_stamps(fd: RawFd, by_card: bool) -> Result<()> {
    let mut flags =
        libc::SOF_TIMESTAMPING_TX_SCHED | libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    if by_card {
        flags |= libc::SOF_TIMESTAMPING_TX_HARDWARE
            | libc::SOF_TIMESTAMPING_RAW_HARDWARE
            | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
    }
    more_reports(fd).or_else(|_| set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, REPORTS_BYTES))?;
    set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as c_int)
}

/// Receive buffer of a socket whose error queue gets a report about each message, bytes: room for some tens of thousands.
const REPORTS_BYTES: c_int = 32 << 20;

/// Makes the receive buffer larger than the limit of the system, which needs CAP_NET_ADMIN.
fn more_reports(fd: RawFd) -> Result<()> {
    set_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, REPORTS_BYTES)
}

/// Gives the datagrams of a socket launch times of CLOCK_TAI (SO_TXTIME), which are deadlines if `deadline` is set. Refused ones come
/// into the error queue, for which the receive buffer is made larger. Both need CAP_NET_ADMIN.
pub fn launch_times(fd: RawFd, deadline: bool) -> Result<()> {
    more_reports(fd)?;
    let flags = libc::SOF_TXTIME_REPORT_ERRORS | if deadline { libc::SOF_TXTIME_DEADLINE_MODE } else { 0 };
    set(fd, libc::SOL_SOCKET, libc::SO_TXTIME, &libc::sock_txtime { clockid: libc::CLOCK_TAI, flags })
}

/// Sends the header and payload of a sample as one datagram with a launch time (ns of CLOCK_TAI), without blocking.
pub fn send_at(fd: RawFd, header: &[u8], payload: &[u8], to: Option<&Address>, txtime_ns: i64) -> Result<()> {
    let mut control = Ancillary([0; 128]);
    // SAFETY: the macro computes a length.
    let length = unsafe { libc::CMSG_SPACE(size_of::<i64>() as u32) } as usize;
    send_with(fd, (header, payload), to, |message| {
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = length;
        // SAFETY: the control buffer is aligned, longer than `length`, and lives until the call returns.
        unsafe {
            let c = libc::CMSG_FIRSTHDR(message);
            (*c).cmsg_level = libc::SOL_SOCKET;
            (*c).cmsg_type = libc::SCM_TXTIME;
            (*c).cmsg_len = libc::CMSG_LEN(size_of::<i64>() as u32) as usize;
            libc::CMSG_DATA(c).cast::<i64>().write_unaligned(txtime_ns);
        }
    })
}

/// Checks whether a socket receives an empty datagram that it sends to its own address. If a discovery
/// question arrives in the meantime, the question is lost, and the writer asks again.
pub fn reaches_itself(fd: RawFd, own: &Address) -> bool {
    const LIMIT_MS: c_int = 20;
    let mut datagram = [0u8; 64];
    if send_whole(fd, &[], Some(own)).is_err() {
        return false;
    }
    let mut ready = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: `ready` lives through the call.
    while unsafe { libc::poll(&raw mut ready, 1, LIMIT_MS) } > 0 {
        match receive(fd, &mut datagram, libc::MSG_DONTWAIT, &mut Address::empty()) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

pub fn set_device(fd: RawFd, interface: &str) -> Result<()> {
    let (p, len) = (interface.as_ptr().cast::<c_void>(), interface.len() as socklen_t);
    // SAFETY: `p` points to `len` readable bytes.
    check(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, p, len) } as isize).map(drop)
}

pub fn get_int(fd: RawFd, level: c_int, name: c_int) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut len = size_of::<c_int>() as socklen_t;
    // SAFETY: `value` has room for `len` bytes.
    let rc = unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut len) };
    (rc == 0).then_some(value)
}

/// Number of datagrams that the kernel dropped because the socket's buffer was full.
pub fn drops(fd: RawFd) -> Option<u32> {
    const SK_MEMINFO_DROPS: usize = 8;
    memory(fd).map(|info| info[SK_MEMINFO_DROPS])
}

/// Whether the receive buffer of a socket, which its error queue shares, had no room for one more small datagram.
pub fn is_receive_buffer_full(fd: RawFd) -> bool {
    const SK_MEMINFO_RMEM_ALLOC: usize = 0;
    const SK_MEMINFO_RCVBUF: usize = 1;
    /// Memory of a small datagram in the kernel, bytes: more than a report about one needs.
    const SMALL_BYTES: u32 = 4096;
    memory(fd).is_some_and(|info| info[SK_MEMINFO_RMEM_ALLOC].saturating_add(SMALL_BYTES) > info[SK_MEMINFO_RCVBUF])
}

/// How much memory the kernel uses for a socket (SK_MEMINFO_* of linux/sock_diag.h).
fn memory(fd: RawFd) -> Option<[u32; 9]> {
    const SO_MEMINFO: c_int = 55;
    let mut info = [0u32; 9];
    let mut len = size_of_val(&info) as socklen_t;
    // SAFETY: `info` has room for `len` bytes.
    let rc = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, SO_MEMINFO, (&raw mut info).cast(), &raw mut len) };
    (rc == 0 && len as usize == size_of_val(&info)).then_some(info)
}

/// Ends calls that block on a socket. This also works for a socket that is not connected, although the call then
/// returns an error.
pub fn shutdown(fd: RawFd) {
    // SAFETY: the call takes no pointers.
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}

/// Sends the header and payload of a sample as one datagram, without blocking.
#[inline]
pub fn send(fd: RawFd, header: &[u8], payload: &[u8], to: Option<&Address>) -> Result<()> {
    send_with(fd, (header, payload), to, |_| {})
}

/// Sends the header and payload of a sample as one datagram; `add` adds control messages.
#[inline]
fn send_with(
    fd: RawFd,
    (header, payload): (&[u8], &[u8]),
    to: Option<&Address>,
    add: impl FnOnce(&mut libc::msghdr),
) -> Result<()> {
    let part = |b: &[u8]| libc::iovec { iov_base: b.as_ptr().cast_mut().cast(), iov_len: b.len() };
    let mut parts = [part(header), part(payload)];
    // SAFETY: zeros are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    if let Some(to) = to {
        message.msg_name = (&raw const to.storage).cast_mut().cast();
        message.msg_namelen = to.len;
    }
    add(&mut message);
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: everything that `message` points to lives until the call returns and is not written.
    let sent = unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const message, flags) };
    check(sent as isize).map(drop)
}

/// Sends one block of bytes as a datagram, without blocking; the kernel has less to read than in [`send`].
#[inline]
pub fn send_whole(fd: RawFd, datagram: &[u8], to: Option<&Address>) -> Result<()> {
    let (name, len) = to.map_or((std::ptr::null(), 0), |to| (&raw const to.storage, to.len));
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let len = len as libc::c_ulong;
    // SAFETY: datagram and address live until the call returns.
    let sent = unsafe { libc::syscall(libc::SYS_sendto, fd, datagram.as_ptr(), datagram.len(), flags, name, len) };
    check(sent as isize).map(drop)
}

/// Memory for control messages: the timestamp of a received datagram, an error, or a launch time.
#[repr(align(8))]
struct Ancillary([u8; 128]);

/// Receives one datagram and writes its sender to `from`, which the caller has made by [`Address::empty`]. Returns the
/// length of the datagram; if it is larger than the buffer, the datagram was truncated.
#[inline]
pub fn receive(fd: RawFd, into: &mut [u8], flags: c_int, from: &mut Address) -> Result<usize> {
    let (name, flags) = (&raw mut from.storage, flags | libc::MSG_TRUNC);
    let (buffer, room) = (into.as_mut_ptr(), into.len());
    // SAFETY: buffer and address are writable and live until the call returns.
    let len = unsafe { libc::syscall(libc::SYS_recvfrom, fd, buffer, room, flags, name, &raw mut from.len) };
    check(len as isize)
}

/// Receive timestamps of one datagram, ns; 0 = there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveStamps {
    /// Time of CLOCK_REALTIME at which the kernel had the datagram.
    pub kernel_ns: i64,
    /// Time of the clock of the network card at which the card had the datagram.
    pub card_ns: i64,
}

/// Receives one datagram as [`receive`] does. Also returns its receive timestamps, of the network card only if `by_card` is set.
#[inline(never)]
pub fn receive_stamped(
    fd: RawFd,
    into: &mut [u8],
    flags: c_int,
    (from, by_card): (&mut Address, bool),
) -> Result<(usize, ReceiveStamps)> {
    let mut stamps = ReceiveStamps::default();
    let len = receive_with(fd, into, flags, from, |message| {
        stamps = ReceiveStamps {
            kernel_ns: timestamp(message),
            card_ns: if by_card { both_timestamps(message)[1] } else { 0 },
        };
    })?;
    Ok((len, stamps))
}

/// Asks for the times at which the network card received the datagrams of a socket. Whether the card stamps received frames is a
/// setting of the card.
pub fn receive_stamps_of_card(fd: RawFd) -> Result<()> {
    let flags = libc::SOF_TIMESTAMPING_RX_HARDWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
    set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as c_int)
}

/// Receives one datagram as [`receive`] does; `look` gets its control messages.
#[inline]
fn receive_with(
    fd: RawFd,
    into: &mut [u8],
    flags: c_int,
    from: &mut Address,
    look: impl FnOnce(&libc::msghdr),
) -> Result<usize> {
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut ancillary = Ancillary([0; 128]);
    // SAFETY: zeros are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut from.storage).cast();
    message.msg_namelen = from.len;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = ancillary.0.as_mut_ptr().cast();
    message.msg_controllen = ancillary.0.len();
    // SAFETY: everything that `message` points to is writable and lives until the call returns.
    let len = unsafe { libc::syscall(libc::SYS_recvmsg, fd, &raw mut message, flags | libc::MSG_TRUNC) };
    let len = check(len as isize)?;
    from.len = message.msg_namelen;
    look(&message);
    Ok(len)
}

fn timestamp(message: &libc::msghdr) -> i64 {
    let is_stamp = |level, kind| (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
    // SAFETY: control messages of this kind contain a timespec.
    let stamp = unsafe { control::<libc::timespec>(message, is_stamp) };
    stamp.map_or(0, |time| nanoseconds(&time))
}

/// The timestamps of the kernel and of the network card in a control message of SO_TIMESTAMPING, ns; 0 = there is none.
fn both_timestamps(message: &libc::msghdr) -> [i64; 2] {
    let is_stamp = |level, kind| (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING);
    // SAFETY: control messages of this kind contain three times: by the kernel, none, and by the card.
    let times = unsafe { control::<[libc::timespec; 3]>(message, is_stamp) };
    times.map_or([0; 2], |[kernel, _, card]| [kernel, card].map(|time| nanoseconds(&time)))
}

fn nanoseconds(time: &libc::timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The content of the first control message whose level and kind are the wanted ones.
///
/// # Safety
/// The kernel filled the control buffer, which still exists, and control messages that are wanted contain a `T`.
#[inline]
unsafe fn control<T>(message: &libc::msghdr, is_wanted: impl Fn(c_int, c_int) -> bool) -> Option<T> {
    // SAFETY: by the contract of this function; the macros stay inside `msg_controllen`.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(message);
        while !c.is_null() {
            if is_wanted((*c).cmsg_level, (*c).cmsg_type) {
                return Some(libc::CMSG_DATA(c).cast::<T>().read_unaligned());
            }
            c = libc::CMSG_NXTHDR(message, c);
        }
    }
    None
}

/// Reads the time of `CLOCK_MONOTONIC`, in ns.
#[inline]
pub fn monotonic_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    nanoseconds(&now)
}

/// Returns a random number that is different in every process.
pub fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: `bytes` has room for its length. A short answer leaves zeros; process id and time still make the number
    // unique.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    u64::from_le_bytes(bytes) ^ (u64::from(std::process::id()) << 32) ^ monotonic_ns() as u64
}

/// Returns the first IPv4 address of a network interface.
pub fn interface_address(name: &str) -> Option<IpAddr> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `list` is writable; the list is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return None;
    }
    let (mut found, mut at) = (None, list);
    while !at.is_null() && found.is_none() {
        // SAFETY: by the contract of getifaddrs the list is well formed and names end with a NUL byte.
        unsafe {
            let entry = &*at;
            let same = std::ffi::CStr::from_ptr(entry.ifa_name).to_bytes() == name.as_bytes();
            if same && !entry.ifa_addr.is_null() && i32::from((*entry.ifa_addr).sa_family) == libc::AF_INET {
                let raw = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                found = Some(IpAddr::V4(Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes())));
            }
            at = entry.ifa_next;
        }
    }
    // SAFETY: getifaddrs made the list.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// Returns the index of an interface; 0 if there is no interface with this name.
pub fn interface_index(name: &str) -> u32 {
    // SAFETY: the string lives until the call returns.
    std::ffi::CString::new(name).map_or(0, |name| unsafe { libc::if_nametoindex(name.as_ptr()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a control message of this kind at this place of a control buffer; returns the place behind it.
    fn add<T>(control: &mut Ancillary, at: usize, (kind, content): (c_int, T)) -> usize {
        // SAFETY: the macros compute lengths.
        let [space, length] =
            unsafe { [libc::CMSG_SPACE, libc::CMSG_LEN].map(|of| of(size_of::<T>() as u32) as usize) };
        assert!(at + space <= control.0.len());
        // SAFETY: the buffer is aligned, and has room for the message behind `at`, a multiple of the alignment.
        unsafe {
            let c = control.0.as_mut_ptr().add(at).cast::<libc::cmsghdr>();
            (*c).cmsg_level = libc::SOL_SOCKET;
            (*c).cmsg_type = kind;
            (*c).cmsg_len = length as _;
            libc::CMSG_DATA(c).cast::<T>().write_unaligned(content);
        }
        at + space
    }

    #[test]
    fn timestamps_of_kernel_and_card_are_read_from_the_messages_that_the_kernel_adds() {
        let time = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
        let mut control = Ancillary([0; 128]);
        let of_kernel = add(&mut control, 0, (libc::SCM_TIMESTAMPNS, time(7, 5)));
        let of_both = add(&mut control, of_kernel, (libc::SCM_TIMESTAMPING, [time(0, 0), time(0, 0), time(3, 9)]));
        // SAFETY: zeros are a valid msghdr.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = of_both as _;
        assert_eq!((timestamp(&message), both_timestamps(&message)), (7_000_000_005, [0, 3_000_000_009]));
        // The card has not stamped the datagram.
        message.msg_controllen = of_kernel as _;
        assert_eq!((timestamp(&message), both_timestamps(&message)), (7_000_000_005, [0, 0]));
    }
}
