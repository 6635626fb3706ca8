//! One writer or reader of the `null` driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tailbound_abi::side::{Host, Wanted};
use tailbound_abi::{TB_LISTENER, TB_READER, TB_WRITER, tb_view};

use crate::queue::{Bell, Queue};
use crate::script::Direction;

/// One writer or reader of a session. The end point stays in memory until its session closes, so that a call that comes
/// late finds the end point closed.
pub struct Endpoint {
    pub kind: i32,
    pub mode: i32,
    pub tag: u64,
    pub max_len: u64,
    /// Number of the end point, unique in the process; it is the value of `tb_view.writer`.
    pub identity: u64,
    /// Direction of the messages of the end point's topic.
    pub direction: Direction,
    pub host: Host,
    pub bell: Arc<Bell>,
    /// Queue of samples, if the end point is a reader that is not a listener.
    pub queue: Option<Queue>,
    /// Whether samples that arrive at this end point get timestamps of sending and of receiving.
    pub timestamps: bool,
    /// Number of samples for which the reader's queue had no room.
    pub refused: AtomicU64,
    /// Number of `wake` calls that a wait of this reader has already reported.
    pub wakes_seen: AtomicU64,
    /// Virtual time until which this listener is busy with an earlier sample, in ns.
    pub busy_until: AtomicU64,
    closed: AtomicBool,
    /// Number of running calls in the lower bits, and number of samples in the upper bits, so that one atomic operation
    /// updates both.
    inside: AtomicU64,
}

/// Amount by which one sample increases the number `inside` of an end point: the lower 16 bits count up to 65,535 calls
/// that run at the same time.
const COUNTED: u64 = 1 << 16;

/// Proof that an end point was open when a call began. `destroy` waits until all such proofs are dropped.
pub struct Inside<'a>(&'a Endpoint);

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Release);
    }
}

impl Endpoint {
    pub fn new(wanted: &Wanted, identity: u64, host: Host, bell: Arc<Bell>) -> Endpoint {
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
            direction: Direction::of_topic(wanted.topic),
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

    /// Begins a call on the end point; `None` if the end point is destroyed.
    #[inline]
    pub fn enter(&self) -> Option<Inside<'_>> {
        self.enter_by(1)
    }

    /// Begins a call like [`Endpoint::enter`], and counts the sample that is sent or received.
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

    /// Reduces the count of samples by one, because the sample was not sent or received after all.
    #[cold]
    pub fn uncount(&self) {
        self.inside.fetch_sub(COUNTED, Ordering::Relaxed);
    }

    /// Number of samples that the end point has sent or received.
    pub fn samples(&self) -> u64 {
        self.inside.load(Ordering::Relaxed) / COUNTED
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Marks the end point as closed and waits for running calls; returns `false` if the end point was closed before.
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

    /// Whether a call on the end point is running now.
    pub fn is_used(&self) -> bool {
        !self.inside.load(Ordering::SeqCst).is_multiple_of(COUNTED)
    }

    /// Delivers a sample to this reader: calls the listener or adds the sample to the queue. Returns `false` if the
    /// queue is full.
    #[inline]
    pub fn deliver(&self, view: &tb_view) -> bool {
        let Some(_inside) = self.enter_counted() else { return true };
        match &self.queue {
            None => {
                // SAFETY: the session waits for this call before it closes; the sender's memory lives until the call
                // returns.
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

    /// Reports the number of matched peers of this end point to the loading program.
    pub fn report_match(&self, now: i32) {
        if let Some(_inside) = self.enter() {
            // SAFETY: the session waits for this call before it closes.
            unsafe { self.host.on_match(self.tag, now) };
        }
    }
}
