//! One reader of the driver: its port, its buffers and, for a listener, its thread.

use std::io::ErrorKind;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tailbound_abi::side::{Host, Outcome, Wanted};
use tailbound_abi::{TB_BLOCK, TB_LISTENER};

use crate::buffers::Places;
use crate::endpoint::{Common, lock};
use crate::error::os;
use crate::lock::Lock;
use crate::net::{self, Address, ReceiveStamps};
use crate::options::Options;
use crate::socket::{bind, prepare};
use crate::wire::{CONTROL, Control, HEADER, topic_key, word};

/// Longest time in ms between two checks of `wake` if no datagram can end a blocking receive: half of the time that the
/// ABI allows.
pub const SLICE_MS: i64 = 50;

/// Result of one receive call of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The receive call received a sample; the sample is the last of the ready samples.
    Sample,
    /// The receive call received no sample, but a control datagram, an invalid datagram, or the error of an earlier
    /// answer; the caller continues.
    Other,
    /// The receive call received nothing: there was no datagram, only an empty datagram (which ends a blocking
    /// receive), or the time slice is over.
    Nothing,
    /// The receive call received nothing, because the loading program holds all receive buffers.
    Full,
    /// The reader's socket failed with this error number (`errno`).
    Failed(i32),
}

/// One reader of the driver.
pub struct Reader {
    pub common: Common,
    pub mode: i32,
    pub timestamps: bool,
    /// Whether the times at which the network card received datagrams are read.
    card_stamps: bool,
    pub places: Lock<Places>,
    pub received: AtomicU64,
    /// Number of received datagrams that were too short or too long.
    pub odd: AtomicU64,
    /// Number of `wake` calls that a wait of this reader has already reported.
    pub wakes_seen: AtomicU64,
    /// Whether a wait blocks in the kernel without a timeout, or is about to block.
    pub blocked: AtomicBool,
    /// Address to which an empty datagram is sent to end a blocking receive. Without such an address, the socket has a
    /// timeout of [`SLICE_MS`], which costs about 200 instructions for each receive.
    own: Option<Address>,
    /// Whether the loading program receives with this reader; while it receives, the reader answers discovery questions
    /// of writers.
    pub in_use: AtomicBool,
    /// Thread id of the listener's receive thread; 0 if there is none.
    pub thread_id: AtomicI32,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Writers that have asked for readers, and that are informed when the reader ends.
    writers: Mutex<Vec<(u64, Address)>>,
}

impl Reader {
    pub fn new(options: &Options, wanted: &Wanted, host: Host, wakes: u64) -> Outcome<Arc<Reader>> {
        let key = topic_key(options.domain, wanted.topic);
        let socket = bind(options, wanted.topic, key)?;
        let fd = socket.as_raw_fd();
        prepare(fd, options)?;
        // A datagram to a group would leave this host. The receive thread of a listener ends with the socket.
        let own = net::local(fd).filter(|_| wanted.mode == TB_BLOCK && !options.multicast);
        let own = own.map(Address::new).filter(|own| net::reaches_itself(fd, own));
        if own.is_none() && wanted.mode != TB_LISTENER {
            let slice = libc::timeval { tv_sec: 0, tv_usec: SLICE_MS * 1000 };
            net::set(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &slice).or_else(|e| os("SO_RCVTIMEO", &e))?;
        }
        if options.timestamps {
            net::set_int(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
                .or_else(|e| os("timestamps: SO_TIMESTAMPNS", &e))?;
        }
        let card_stamps = options.stages == Some(true);
        if card_stamps {
            net::receive_stamps_of_card(fd).or_else(|e| os("timestamps=hardware: SO_TIMESTAMPING", &e))?;
        }
        let reader = Arc::new(Reader {
            common: Common::new(wanted, key, host, socket.into_raw_fd()),
            mode: wanted.mode,
            timestamps: options.timestamps,
            card_stamps,
            places: Lock::new(Places::new(wanted.max_len)),
            received: AtomicU64::new(0),
            odd: AtomicU64::new(0),
            wakes_seen: AtomicU64::new(wakes),
            blocked: AtomicBool::new(false),
            own,
            in_use: AtomicBool::new(false),
            thread_id: AtomicI32::new(0),
            thread: Mutex::new(None),
            writers: Mutex::default(),
        });
        if wanted.mode == TB_LISTENER {
            let own = reader.clone();
            match std::thread::Builder::new().name("tb-udp-rx".to_owned()).spawn(move || own.listen()) {
                Ok(thread) => *lock(&reader.thread) = Some(thread),
                Err(e) => {
                    reader.destroy();
                    return os("the receive thread cannot be started", &e);
                }
            }
        }
        Ok(reader)
    }

    /// Receives one datagram into the next free buffer by one system call. The caller holds the lock of `places`.
    #[inline(always)]
    pub fn receive(&self, places: &mut Places, flags: i32) -> Received {
        let Some((place, slot)) = places.vacant() else { return Received::Full };
        let mut from = Address::empty();
        let got = if self.timestamps {
            net::receive_stamped(self.common.fd(), slot, flags, (&mut from, self.card_stamps))
        } else {
            net::receive(self.common.fd(), slot, flags, &mut from).map(|len| (len, ReceiveStamps::default()))
        };
        let (len, stamps) = match got {
            Ok(got) => got,
            Err(e) => return without_datagram(&e),
        };
        // A datagram without a whole header has a payload length above every limit here.
        let payload = len.wrapping_sub(HEADER);
        if (payload as u64 > self.common.max_len || len == CONTROL)
            && let Some(received) = self.unusual(slot, len, &from)
        {
            return received;
        }
        let (seq, data) = (word(slot, 0), slot[HEADER..].as_ptr());
        places.fill(place, seq, (data, payload), from.identity(), stamps);
        // Only the thread that holds the lock of `places` writes the count.
        self.received.store(self.received.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Received::Sample
    }

    /// Receives as [`Reader::receive`] does. Callers other than the wait for one reader use this function, so that the
    /// code of a receive call is inlined only there.
    #[inline(never)]
    pub fn receive_apart(&self, places: &mut Places, flags: i32) -> Received {
        self.receive(places, flags)
    }

    /// Processes a datagram whose length is not the length of a sample, or is the length of a control datagram; `None` if
    /// it is a sample.
    #[cold]
    fn unusual(&self, slot: &[u8], len: usize, from: &Address) -> Option<Received> {
        if len == CONTROL
            && let Some(control) = Control::decode(&slot[..CONTROL])
        {
            self.answer(control, from);
            return Some(Received::Other);
        }
        // A control datagram can be longer than the samples of the reader.
        if (HEADER..=HEADER + self.common.max_len as usize).contains(&len) {
            return None;
        }
        if len == 0 {
            return Some(Received::Nothing);
        }
        self.odd.fetch_add(1, Ordering::Relaxed);
        Some(Received::Other)
    }

    /// Answers a writer that asks for readers of this topic.
    #[cold]
    fn answer(&self, control: Control, from: &Address) {
        if let Control::Hello { topic, writer } = control
            && topic == self.common.topic_key
        {
            let ack = Control::Ack { topic, reader: self.common.identity }.encode();
            // If an answer is lost, the writer asks again.
            let _ = net::send(self.common.fd(), &ack, &[], Some(from));
            let mut writers = lock(&self.writers);
            writers.retain(|(known, _)| *known != writer);
            writers.push((writer, *from));
            self.common.heard(writer);
        }
    }

    /// Ends a receive call of the reader that blocks without a timeout.
    pub fn interrupt(&self) {
        // SeqCst pairs with the wait: either the wait sees the new number of wakes, or this load sees that the wait blocks.
        if let Some(own) = &self.own
            && self.blocked.load(Ordering::SeqCst)
            && let Some(_inside) = self.common.enter()
        {
            // If the datagram is refused because the buffer is full, the receive does not block.
            let _ = net::send_whole(self.common.fd(), &[], Some(own));
        }
    }

    /// Receives the available datagrams without blocking, so that discovery questions that arrived after samples are
    /// answered too.
    pub fn pump(&self) {
        // If another thread holds the buffers, it receives and answers.
        if let Some(mut places) = self.places.try_lock() {
            while matches!(self.receive_apart(&mut places, libc::MSG_DONTWAIT), Received::Sample | Received::Other) {}
        }
    }

    fn listen(&self) {
        // SAFETY: the call has no arguments.
        self.thread_id.store(unsafe { libc::gettid() }, Ordering::SeqCst);
        let mut places = self.places.lock();
        while let Some(_inside) = self.common.enter() {
            match self.receive_apart(&mut places, 0) {
                Received::Sample => {
                    if let Some(view) = places.next().copied() {
                        // SAFETY: the session joins this thread before it closes; the view lives until it is given
                        // back.
                        unsafe { self.common.host.on_sample(self.common.tag, &view) };
                        places.give_back(&view);
                    }
                }
                // A closed or failing socket must not cause a loop without pause.
                Received::Failed(_) | Received::Full => std::thread::sleep(std::time::Duration::from_millis(1)),
                Received::Other | Received::Nothing => {}
            }
        }
    }

    /// Destroys the reader; returns `false` if another call has already destroyed it.
    pub fn destroy(&self) -> bool {
        let bye = Control::Bye { topic: self.common.topic_key, reader: self.common.identity }.encode();
        // The goodbye is sent before the socket is shut down. A writer that does not receive it notices the end of the
        // reader by a refused datagram.
        if let Some(_inside) = self.common.enter() {
            for (_, writer) in lock(&self.writers).drain(..) {
                let _ = net::send(self.common.fd(), &bye, &[], Some(&writer));
            }
        }
        if !self.common.close() {
            return false;
        }
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
        self.thread_id.store(0, Ordering::SeqCst);
        *self.places.lock() = Places::none();
        self.common.drop_socket();
        true
    }
}

/// Result of a receive call that failed.
#[cold]
fn without_datagram(e: &std::io::Error) -> Received {
    match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Received::Nothing,
        // An answer could not be delivered, which does not affect received datagrams.
        ErrorKind::ConnectionRefused => Received::Other,
        _ => Received::Failed(e.raw_os_error().unwrap_or(0)),
    }
}
