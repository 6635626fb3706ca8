//! One writer of the driver: its readers, and the search for readers before matching.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tailbound_abi::side::{Host, Outcome, Wanted, fail};
use tailbound_abi::{TB_ECLOSED, TB_EINVAL, TB_ETOOBIG, TB_EWOULDBLOCK};

use crate::endpoint::{Common, lock};
use crate::error::os;
use crate::net::{self, Address, Errors};
use crate::options::Options;
use crate::socket::{prepare, set_priority, take_place};
use crate::stamps::Collected;
use crate::wire::{Control, FEWEST_CANDIDATES, HEADER, MAGIC, MOST_CANDIDATES, group, topic_key};

/// Longest datagram in bytes whose header and payload are copied into one block. With 8 KiB, a copy and `sendto` still
/// take less time than `sendmsg` with header and payload apart; with 63 kB, they take more.
const SMALL: usize = HEADER + 8192;

/// Largest number of times that a datagram is sent again after the kernel refused to send it. Each refusal is caused by
/// one earlier datagram, and a writer asks fewer ports than this number at once.
const MOST_TRIES: usize = 1000;

pub struct Writer {
    pub common: Common,
    pub targets: Mutex<Targets>,
    pub sent: AtomicU64,
    /// Number of datagrams that a peer's kernel refused, because no process uses the port any more.
    pub refused: AtomicU64,
    /// Number of candidate ports that the writer asks at each peer.
    candidates: AtomicU32,
    /// Launch times of the messages; `None` = messages have no launch times.
    launch: Option<Launch>,
    /// Whether the socket has launch times, which the kernel cannot take back from it.
    launching: AtomicBool,
    /// Stamps of sent messages; `None` = messages are not stamped.
    pub stamps: Option<Mutex<Collected>>,
    /// Refused launch times that nobody has asked for yet.
    pub refused_launches: Mutex<RefusedLaunches>,
    /// Held from reading the error queue until what it had is kept, so that a query misses nothing that the discovery thread has
    /// just read.
    reading_errors: Mutex<()>,
}

/// Launch times in ns of CLOCK_TAI that the kernel refused, with the codes of the reasons.
#[derive(Default)]
pub struct RefusedLaunches {
    pub all: Vec<(i64, u8)>,
    /// Whether there was no room for more.
    pub full: bool,
}

/// Largest number of refused launch times that wait for a query.
const MOST_REFUSED: usize = 1 << 20;

/// Destinations of a writer's samples.
pub struct Targets {
    /// Multicast group that gets one datagram, in place of one datagram for each reader.
    pub group: Option<Address>,
    pub readers: Vec<(u64, Address)>,
    /// Readers that have sent a goodbye, so that a late answer does not add them again.
    parted: Vec<u64>,
    /// Memory in which the header and the payload of a short datagram are joined.
    small: Box<[u8; SMALL]>,
    /// Whether the writer's socket is connected to the only reader.
    pub connected: bool,
    /// Reason why the last discovery question could not be sent.
    pub last_error: Option<String>,
}

impl Writer {
    pub fn new(options: &Options, wanted: &Wanted, host: Host) -> Outcome<Arc<Writer>> {
        let socket = socket_of(options)?;
        let launch = options.launch.map(|deadline| Launch::of(options, deadline)).transpose()?;
        let at = options.at(options.address, 0);
        net::bind(&socket, at).or_else(|e| os(format!("cannot bind {}", options.address), &e))?;
        let key = topic_key(options.domain, wanted.topic);
        Ok(Arc::new(Writer {
            common: Common::new(wanted, key, host, socket.into_raw_fd()),
            targets: Mutex::new(Targets {
                readers: Vec::new(),
                parted: Vec::new(),
                group: options.multicast.then(|| Address::new(group(key))),
                small: Box::new([1; SMALL]),
                connected: false,
                last_error: None,
            }),
            sent: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            candidates: AtomicU32::new(FEWEST_CANDIDATES),
            launch,
            launching: AtomicBool::new(false),
            stamps: options.stages.map(|_| Mutex::default()),
            refused_launches: Mutex::default(),
            reading_errors: Mutex::default(),
        }))
    }

    /// Sends one sample to every matched reader. It is not an error if no reader is matched, because the writer is best
    /// effort.
    #[inline]
    pub fn send(&self, seq: u64, payload: &[u8]) -> Outcome {
        self.send_by(seq, payload, |fd, header, whole, to| match whole {
            Some(datagram) => net::send_whole(fd, datagram, to),
            None => net::send(fd, header, payload, to),
        })
    }

    /// Sends one sample that is to leave at `txtime_ns`, ns of CLOCK_TAI.
    pub fn send_at(&self, seq: u64, payload: &[u8], txtime_ns: i64) -> Outcome {
        if self.launch.is_none() {
            return fail(TB_EINVAL, "the option `launch` is off, so that no message has a launch time");
        }
        self.send_by(seq, payload, |fd, header, _, to| net::send_at(fd, header, payload, to, txtime_ns))
    }

    /// Sends one sample to every matched reader by `send`, which gets the socket, the header, header and payload together if they are
    /// short, and the destination if the socket is not connected.
    #[inline]
    fn send_by<S>(&self, seq: u64, payload: &[u8], send: S) -> Outcome
    where
        S: Fn(RawFd, &[u8], Option<&[u8]>, Option<&Address>) -> Result<(), Error>,
    {
        let max = self.common.max_len;
        if payload.len() as u64 > max {
            return fail(TB_ETOOBIG, format!("{} B of payload; the end point was made for {max} B", payload.len()));
        }
        if seq == MAGIC {
            return fail(TB_EINVAL, format!("sequence number {MAGIC:#x} is reserved for the driver's own datagrams"));
        }
        let mut targets = lock(&self.targets);
        if self.common.is_closed() {
            return fail(TB_ECLOSED, format!("the writer of topic {} was destroyed", self.common.topic));
        }
        let fd = self.common.fd();
        let Targets { group, readers, connected, small, .. } = &mut *targets;
        let header = seq.to_le_bytes();
        let len = HEADER + payload.len();
        // For a short payload, a copy is cheaper than a list of parts, which the kernel must read and check.
        let whole = small.get_mut(..len).map(|datagram| {
            datagram[..HEADER].copy_from_slice(&header);
            datagram[HEADER..].copy_from_slice(payload);
            &*datagram
        });
        let send = |to: Option<&Address>| send(fd, &header, whole, to);
        if *connected {
            self.sent(send(None), || send(None))?;
        } else if let Some(group) = group {
            self.sent(send(Some(group)), || send(Some(group)))?;
        } else {
            for (_, to) in &*readers {
                self.sent(send(Some(to)), || send(Some(to)))?;
            }
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    #[inline]
    fn sent(&self, first: Result<(), Error>, again: impl Fn() -> Result<(), Error>) -> Outcome {
        match first {
            Ok(()) => Ok(()),
            Err(e) => self.send_again(e, again),
        }
    }

    #[cold]
    fn send_again(&self, error: Error, again: impl Fn() -> Result<(), Error>) -> Outcome {
        let (refusals, sent) = again_while_refused(error, again);
        self.refused.fetch_add(refusals, Ordering::Relaxed);
        sent.or_else(|e| self.failed(&e))
    }

    #[cold]
    fn failed(&self, e: &Error) -> Outcome {
        match e.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS) => fail(TB_EWOULDBLOCK, "the socket's send buffer is full"),
            Some(libc::EMSGSIZE) => fail(TB_ETOOBIG, "the datagram is longer than the path allows (EMSGSIZE)"),
            _ => os(format!("sending on topic {}", self.common.topic), e),
        }
    }

    /// Starts to ask for readers until `peers` readers are found. Fails if a socket with launch times cannot be exchanged for one
    /// without.
    pub fn seek(&self, options: &Options, peers: u32) -> Outcome {
        let mut targets = lock(&self.targets);
        self.candidates.store((peers + 3).clamp(FEWEST_CANDIDATES, MOST_CANDIDATES), Ordering::Relaxed);
        if self.launching.load(Ordering::SeqCst) {
            // What the error queue has belongs to messages that were sent.
            self.errors();
            // A disconnected socket would not have its port any more.
            renew(self.common.fd(), options)?;
            self.launching.store(false, Ordering::SeqCst);
        } else if targets.connected {
            let _ = net::connect(self.common.fd(), None);
        }
        targets.connected = false;
        net::hear_refusals(self.common.fd(), false);
        self.common.settled.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Stops asking for readers. If there is only one reader, the socket is connected to this reader, so the kernel
    /// looks up the route only once. Fails if the messages cannot have launch times.
    pub fn settle(&self) -> Outcome {
        let mut targets = lock(&self.targets);
        self.common.settled.store(true, Ordering::SeqCst);
        if let Some(launch) = self.launch {
            self.launching.store(true, Ordering::SeqCst);
            launch.begin(self.common.fd())?;
        }
        // The kernel reports refused datagrams only from now on, because most of the asked ports refuse the questions.
        net::hear_refusals(self.common.fd(), true);
        // The socket is not connected to a group, because answers and goodbyes come from other addresses.
        if let ([(_, only)], None) = (targets.readers.as_slice(), &targets.group) {
            targets.connected = net::connect(self.common.fd(), Some(only)).is_ok();
        }
        Ok(())
    }

    /// Asks every candidate port of every peer for readers, and receives the answers.
    pub fn ask(&self, options: &Options) {
        if self.common.settled.load(Ordering::SeqCst) {
            return;
        }
        let hello = Control::Hello { topic: self.common.topic_key, writer: self.common.identity }.encode();
        let mut trouble = None;
        for at in options.asked(self.common.topic_key, self.candidates.load(Ordering::Relaxed)) {
            match net::send(self.common.fd(), &hello, &[], Some(&Address::new(at))) {
                // Most asked ports have no reader, so a refusal is expected; the error belongs to an earlier datagram.
                Err(e) if e.kind() != ErrorKind::ConnectionRefused => trouble = Some(format!("{at}: {e}")),
                Err(_) => drop(net::send(self.common.fd(), &hello, &[], Some(&Address::new(at)))),
                Ok(()) => {}
            }
        }
        if trouble.is_some() {
            lock(&self.targets).last_error = trouble;
        }
        self.hear();
    }

    /// Receives available answers and goodbyes, and notices peers that ended without a goodbye.
    pub fn hear(&self) {
        let mut datagram = [0u8; 64];
        loop {
            let mut from = Address::empty();
            let len = match net::receive(self.common.fd(), &mut datagram, libc::MSG_DONTWAIT, &mut from) {
                Ok(len) => len,
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => continue,
                Err(_) => break,
            };
            match datagram.get(..len).and_then(Control::decode) {
                Some(Control::Ack { topic, reader }) if topic == self.common.topic_key => self.found(reader, from),
                Some(Control::Bye { topic, reader }) if topic == self.common.topic_key => {
                    lock(&self.targets).parted.push(reader);
                    self.lost(|id, _| id == reader);
                }
                _ => {}
            }
        }
        for gone in self.errors() {
            self.lost(|_, at| at.get() == Some(gone));
        }
    }

    /// Takes everything from the error queue of the socket. Returns the destinations that refused a datagram; stamps of sent
    /// messages and refused launch times are kept.
    pub fn errors(&self) -> Vec<SocketAddr> {
        let _reading = lock(&self.reading_errors);
        let full = net::is_receive_buffer_full(self.common.fd());
        let Errors { refused, launches } = net::errors(self.common.fd(), |frame, stamp| {
            self.stamps.iter().for_each(|collected| lock(collected).add(frame, stamp));
        });
        if full || !launches.is_empty() {
            let mut kept = lock(&self.refused_launches);
            let room = MOST_REFUSED - kept.all.len();
            kept.full |= full || launches.len() > room;
            kept.all.extend(launches.into_iter().take(room));
        }
        refused
    }

    fn found(&self, reader: u64, from: Address) {
        if lock(&self.targets).parted.contains(&reader) {
            return;
        }
        // A new reader at the same port replaces the earlier one; readers of a group share their port.
        let shared = lock(&self.targets).group.is_some();
        self.lost(|id, at| !shared && id != reader && at.get() == from.get());
        let mut targets = lock(&self.targets);
        if !targets.readers.iter().any(|(id, _)| *id == reader) {
            targets.readers.push((reader, from));
        }
        drop(targets);
        self.common.heard(reader);
    }

    fn lost(&self, is: impl Fn(u64, &Address) -> bool) {
        let mut gone = Vec::new();
        lock(&self.targets).readers.retain(|(id, at)| {
            let keep = !is(*id, at);
            if !keep {
                gone.push(*id);
            }
            keep
        });
        gone.into_iter().for_each(|id| self.common.lost(id));
    }

    pub fn candidates(&self) -> u32 {
        self.candidates.load(Ordering::Relaxed)
    }

    /// Destroys the writer; returns `false` if another call has already destroyed it.
    pub fn destroy(&self) -> bool {
        if !self.common.close() {
            return false;
        }
        drop(lock(&self.targets));
        self.common.drop_socket();
        true
    }
}

/// Makes the socket of a writer, without an address.
fn socket_of(options: &Options) -> Outcome<OwnedFd> {
    let socket = net::socket(options.address).or_else(|e| os("socket", &e))?;
    prepare(socket.as_raw_fd(), options)?;
    if let Some(by_card) = options.stages {
        net::transmit_stamps(socket.as_raw_fd(), by_card).or_else(|e| os("timestamps: SO_TIMESTAMPING", &e))?;
    }
    Ok(socket)
}

/// Puts a new socket with the same address in the place of the socket with this descriptor.
fn renew(fd: RawFd, options: &Options) -> Outcome {
    let fresh = socket_of(options)?;
    let failed = |e: Error| os("launch: a socket without launch times for the discovery", &e);
    take_place(&fresh, fd).or_else(failed)
}

/// Launch times of the messages of a writer.
#[derive(Debug, Clone, Copy)]
struct Launch {
    /// Priority of the messages, whose queue drops what has no launch time.
    priority: i32,
    deadline: bool,
}

impl Launch {
    /// Finds out with another socket whether launch times and the priority are permitted.
    fn of(options: &Options, deadline: bool) -> Outcome<Launch> {
        let tried = net::socket(options.address).or_else(|e| os("socket", &e))?;
        net::launch_times(tried.as_raw_fd(), deadline)
            .or_else(|e| os("launch: SO_TXTIME with CLOCK_TAI needs CAP_NET_ADMIN, or root", &e))?;
        let priority = options.priority.unwrap_or_default();
        set_priority(tried.as_raw_fd(), priority)?;
        Ok(Launch { priority, deadline })
    }

    /// The following datagrams of a socket have launch times. Questions of the discovery have none: they must neither come into the
    /// queue of the messages, nor come from a socket with launch times, because an interface with gates drops what has none then.
    fn begin(self, fd: RawFd) -> Outcome {
        net::launch_times(fd, self.deadline).or_else(|e| os("launch: SO_TXTIME for the messages", &e))?;
        set_priority(fd, self.priority)
    }
}

/// Sends a datagram again as long as the send call returns the error of an earlier datagram, for example of a discovery
/// question to a port without a reader: the present datagram was then not sent. Under load, the errors of several
/// discovery questions can arrive one after another. Returns the number of refusals.
fn again_while_refused(first: Error, again: impl Fn() -> Result<(), Error>) -> (u64, Result<(), Error>) {
    let (mut refusals, mut result) = (0, Err(first));
    for _ in 0..MOST_TRIES {
        if !result.as_ref().is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused) {
            break;
        }
        refusals += 1;
        result = again();
    }
    (refusals, result)
}

#[cfg(test)]
mod tests {
    use super::again_while_refused;
    use std::cell::Cell;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_datagram_is_sent_though_several_earlier_ones_were_refused() {
        let left = Cell::new(3);
        let again = || match left.replace(left.get() - 1) {
            0 => Ok(()),
            _ => Err(Error::from(ErrorKind::ConnectionRefused)),
        };
        let (refusals, sent) = again_while_refused(ErrorKind::ConnectionRefused.into(), again);
        assert_eq!((refusals, left.get()), (4, -1));
        sent.unwrap();
        let full = || Err(Error::from(ErrorKind::WouldBlock));
        let (refusals, sent) = again_while_refused(ErrorKind::ConnectionRefused.into(), full);
        assert_eq!((refusals, sent.unwrap_err().kind()), (1, ErrorKind::WouldBlock));
        let never = || -> Result<(), Error> { panic!("another error is not tried again") };
        assert_eq!(again_while_refused(ErrorKind::WouldBlock.into(), never).0, 0);
    }
}
