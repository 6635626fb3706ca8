//! One writer or reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tailbound_abi::side::{Host, Wanted};
use tailbound_abi::{TB_LISTENER, TB_READER, TB_WRITER, tb_view};

use crate::network::Topic;
use crate::queue::{Bell, Queue};

/// One writer or reader. It stays in memory until its session closes, so that a late call finds it closed.
pub struct Endpoint {
    pub kind: i32,
    pub mode: i32,
    pub tag: u64,
    pub max_len: u64,
    /// Unique in the process; what `tb_view.writer` says.
    pub identity: u64,
    pub topic: Arc<Topic>,
    pub host: Host,
    pub bell: Arc<Bell>,
    /// Samples of a reader that is not a listener.
    pub queue: Option<Queue>,
    /// Fill in the time stamps of samples that arrive here.
    pub timestamps: bool,
    /// Samples for which the queue had no place.
    pub refused: AtomicU64,
    /// `wake` calls that a wait of this reader has reported.
    pub wakes_seen: AtomicU64,
    /// Virtual time until which this listener is busy with an earlier sample.
    pub busy_until: AtomicU64,
    closed: AtomicBool,
    /// Calls inside in the lower bits, all that were ever counted above: one atomic step serves both.
    inside: AtomicU64,
}

/// Step of the count of samples: leaves room for 65,535 calls at a time.
const COUNTED: u64 = 1 << 16;

/// Proof that an end point was open when a call entered; `destroy` waits until it is dropped.
pub struct Inside<'a>(&'a Endpoint);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Release);
    }
}

impl Endpoint {
    pub fn new(wanted: &Wanted, identity: u64, topic: Arc<Topic>, host: Host, bell: Arc<Bell>) -> Endpoint {
        let &Wanted { kind, mode, tag, max_len, .. } = wanted;
        let queue = (kind == TB_READER && mode != TB_LISTENER).then(|| Queue::new(max_len as usize));
        let wakes_seen = AtomicU64::new(bell.wakes.load(Ordering::SeqCst));
        let zero = || AtomicU64::new(0);
        Endpoint {
            kind,
            mode,
            tag,
            max_len,
            identity,
            topic,
            host,
            bell,
            queue,
            timestamps: false,
            refused: zero(),
            wakes_seen,
            busy_until: zero(),
            closed: AtomicBool::new(false),
            inside: AtomicU64::new(0),
        }
    }

    pub fn is_writer(&self) -> bool {
        self.kind == TB_WRITER
    }

    /// `None` when the end point is destroyed.
    #[inline]
    pub fn enter(&self) -> Option<Inside<'_>> {
        self.enter_by(1)
    }

    /// As [`Endpoint::enter`], and counts the sample that is sent or received.
    #[inline]
    pub fn enter_counted(&self) -> Option<Inside<'_>> {
        self.enter_by(COUNTED | 1)
    }

    #[inline]
    fn enter_by(&self, step: u64) -> Option<Inside<'_>> {
        // SeqCst pairs with `close`: either this load sees `closed`, or `close` sees the count.
        self.inside.fetch_add(step, Ordering::SeqCst);
        let inside = Inside(self);
        (!self.closed.load(Ordering::SeqCst)).then_some(inside)
    }

    /// The sample counted on entering was not sent or received after all.
    #[cold]
    pub fn uncount(&self) {
        self.inside.fetch_sub(COUNTED, Ordering::Relaxed);
    }

    /// Samples sent or received.
    pub fn samples(&self) -> u64 {
        self.inside.load(Ordering::Relaxed) / COUNTED
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Marks the end point closed and waits until no call is inside; `false` when somebody else closed it.
    pub fn close(&self) -> bool {
        if self.closed.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.bell.ring();
        while self.is_used() {
            self.bell.ring();
            std::thread::yield_now();
        }
        if let Some(queue) = &self.queue {
            queue.dismantle();
        }
        true
    }

    /// Whether a call is inside at this moment.
    pub fn is_used(&self) -> bool {
        !self.inside.load(Ordering::SeqCst).is_multiple_of(COUNTED)
    }

    /// Hands a sample to this reader: calls the listener, or queues. `false` when the queue is full.
    #[inline]
    pub fn deliver(&self, view: &tb_view) -> bool {
        let Some(_inside) = self.enter_counted() else { return true };
        match &self.queue {
            None => {
                // SAFETY: the session waits for this call before it closes; the sender's octets live through it.
                unsafe { self.host.on_sample(self.tag, view) };
                true
            }
            Some(queue) if queue.push(view) => {
                self.bell.ring();
                true
            }
            Some(_) => {
                self.uncount();
                self.refused.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }

    /// Tells the host how many peers are matched.
    pub fn report_match(&self, now: i32) {
        if let Some(_inside) = self.enter() {
            // SAFETY: as in `deliver`.
            unsafe { self.host.on_match(self.tag, now) };
        }
    }
}
