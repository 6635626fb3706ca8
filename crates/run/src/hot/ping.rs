//! The ping end: sends on schedule, takes answers.

use super::{Arrival, Asleep, Between, Clock, Header, Port, Ring, Sink};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64};
use tailbound_model::*;

/// What a test may plant into the hot loop. The product plants nothing, and the calls vanish.
pub trait Hook: Send + Sync + 'static {
    /// Called once per slot by the sending thread.
    #[inline]
    fn slot(&self, _slot: u64) {}
}

/// Nothing.
pub struct NoHook;
impl Hook for NoHook {}

/// When slots are sent.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// Slot k is due at t0 + k x period.
    Open {
        /// Period, ns.
        period_ns: i64,
        /// What happens to missed slots.
        on_overrun: OnOverrun,
    },
    /// The thread that takes the answer sends the next.
    StopAndWait {
        /// End this long after the warm-up, ns.
        duration_ns: Option<i64>,
    },
}

/// The ping end of one trial.
pub struct Ping<C, H = NoHook> {
    /// Its clock.
    pub clock: C,
    /// What a test planted.
    pub hook: H,
    /// The writer.
    pub writer: Port,
    /// One cell per slot, or a ring of them.
    pub cells: Ring<SenderCell>,
    /// First page of the sample memory.
    pub header: &'static Header,
    /// Sent with every slot.
    pub payload: Box<[u8]>,
    /// When slots are sent.
    pub pace: Pace,
    /// Slots of the trial; where it ends by time, the most that there may be.
    pub slots: u64,
    /// Slots of the warm-up among them.
    pub warm_up: u64,
    /// Stop-and-wait gives up on an answer after this; the open loop waits this long after the last slot, twice.
    pub timeout_ns: i64,
    progress: Progress,
}

/// What several threads of the end know of its progress.
#[derive(Default)]
struct Progress {
    /// Slot in flight (stop-and-wait).
    turn: AtomicU64,
    /// When it was sent.
    turn_sent_ns: AtomicI64,
    /// Stop-and-wait by duration: no slot begins after this.
    end_ns: AtomicI64,
    answered: AtomicU64,
    not_sent: AtomicU64,
    /// Highest counter answered so far, plus one.
    highest: AtomicU64,
    finished: AtomicBool,
    foreign: AtomicU64,
    send_error: AtomicI32,
}

impl<C: Clock, H: Hook> Ping<C, H> {
    /// A ping end.
    #[allow(clippy::too_many_arguments)] // every argument is one field
    pub fn new(
        clock: C,
        hook: H,
        writer: Port,
        cells: Ring<SenderCell>,
        header: &'static Header,
        payload: Box<[u8]>,
        pace: Pace,
        (slots, warm_up): (u64, u64),
        timeout_ns: i64,
    ) -> Self {
        let progress = Progress::default();
        Ping { clock, hook, writer, cells, header, payload, pace, slots, warm_up, timeout_ns, progress }
    }

    /// Runs the whole trial on the calling thread; answers are taken elsewhere. Returns the number of slots scheduled.
    pub fn run(&self, t0_ns: i64, each_second: &mut dyn FnMut()) -> u64 {
        self.run_with(t0_ns, each_second, &mut Asleep(self.clock))
    }

    /// The same; `between` says what the thread does between its slots.
    pub fn run_with(&self, t0_ns: i64, each_second: &mut dyn FnMut(), between: &mut impl Between) -> u64 {
        self.header.t0_ns.store(t0_ns, Release);
        match self.pace {
            Pace::Open { period_ns, on_overrun } => {
                let sent = self.open_loop(t0_ns, period_ns, on_overrun, each_second, between);
                self.await_answers(sent, each_second, between);
                sent
            }
            Pace::StopAndWait { duration_ns } => {
                if let (Some(duration_ns), 0) = (duration_ns, self.warm_up) {
                    self.progress.end_ns.store(t0_ns + duration_ns, Relaxed);
                }
                let now = between.until(self.clock.now(), t0_ns);
                if let Some(cell) = self.cells.get(0) {
                    self.send_slot(0, cell, now);
                }
                self.watch(each_second, between);
                self.progress.turn.load(Acquire).min(self.slots)
            }
        }
    }

    /// There is a cell for this slot: always, unless a ring is not drained in time.
    #[inline]
    fn has_room(&self, slot: u64) -> bool {
        slot < self.header.drained.stored.load(Acquire) + self.cells.len()
    }

    /// Returns the number of slots turned to: fewer than all only if the ring was full.
    fn open_loop<B: Between>(
        &self,
        t0_ns: i64,
        period_ns: i64,
        on_overrun: OnOverrun,
        each_second: &mut dyn FnMut(),
        between: &mut B,
    ) -> u64 {
        let last_slot = self.slots - 1;
        let mut now = self.clock.now();
        let mut next_second = now;
        for slot in 0..=last_slot {
            let due = t0_ns + slot as i64 * period_ns;
            if B::BUSY || now < due {
                now = between.until(now, due);
            }
            if C::SCRIPTED && now >= next_second {
                each_second();
                next_second = now + 1_000_000_000;
            }
            // The trial ends here rather than write over a row that nobody has stored.
            let Some(cell) = self.cells.get(slot).filter(|_| self.has_room(slot)) else {
                self.header.dropped.store(self.slots - slot, Relaxed);
                return slot;
            };
            if on_overrun == OnOverrun::Skip && now >= due + period_ns && slot < last_slot {
                cell.flags.store(CELL_SKIPPED, Relaxed);
                self.progress.not_sent.fetch_add(1, Relaxed);
                continue;
            }
            now = self.send_slot(slot, cell, now);
        }
        self.slots
    }

    /// Sends one slot; returns send-end.
    #[inline]
    fn send_slot(&self, slot: u64, cell: &SenderCell, wake_ns: i64) -> i64 {
        self.hook.slot(slot);
        cell.wake_ns.store(wake_ns, Relaxed);
        let begin = self.clock.now();
        // Before the call: the answer may be taken by another thread before `send` returns.
        cell.send_begin_ns.store(begin, Release);
        self.progress.turn_sent_ns.store(begin, Relaxed);
        let sent = self.writer.send(slot, &self.payload);
        let end = self.clock.now();
        cell.send_end_ns.store(end, Relaxed);
        if let Err(code) = sent {
            cell.flags.fetch_or(CELL_SEND_FAILED, Relaxed);
            self.progress.not_sent.fetch_add(1, Relaxed);
            self.progress.send_error.store(code.0, Relaxed);
        }
        end
    }

    /// Waits for the answers that are still out: until all are in, or twice the timeout after the last slot.
    fn await_answers(&self, all: u64, each_second: &mut dyn FnMut(), between: &mut impl Between) {
        let give_up = self.clock.now() + 2 * self.timeout_ns;
        let step = (self.timeout_ns / 20).clamp(100_000, 10_000_000);
        let mut next_second = self.clock.now();
        loop {
            let now = self.clock.now();
            let p = &self.progress;
            if p.answered.load(Relaxed) + p.not_sent.load(Relaxed) >= all || now >= give_up {
                return;
            }
            if C::SCRIPTED && now >= next_second {
                each_second();
                next_second = now + 1_000_000_000;
            }
            between.until(now, (now + step).min(give_up));
        }
    }

    /// Stop-and-wait: wakes about once a timeout, and moves on where an answer never came.
    fn watch(&self, each_second: &mut dyn FnMut(), between: &mut impl Between) {
        let p = &self.progress;
        let mut step_end = self.clock.now();
        while !p.finished.load(Acquire) {
            let slot = p.turn.load(Acquire);
            let give_up = p.turn_sent_ns.load(Relaxed) + self.timeout_ns;
            let now = self.clock.now();
            if C::SCRIPTED && now >= step_end {
                each_second();
            }
            if now >= give_up {
                self.advance(slot, now);
                continue;
            }
            // Short steps so that the end of the trial is noticed soon; they cost one wake-up per 20 ms.
            step_end = give_up.min(now + 20_000_000);
            between.until(now, step_end);
        }
        // An answer to the very last slots may still come.
        let mut now = self.clock.now();
        let linger = now + self.timeout_ns.min(100_000_000);
        let sent = p.turn.load(Acquire).min(self.slots);
        while p.answered.load(Relaxed) + p.not_sent.load(Relaxed) < sent && now < linger {
            now = between.until(now, now + 1_000_000);
        }
    }

    /// The slot `answered` is through: the caller that gets here first sends the next one.
    #[inline]
    fn advance(&self, answered: u64, now: i64) {
        let p = &self.progress;
        if p.turn.compare_exchange(answered, answered + 1, AcqRel, Relaxed).is_err() {
            return;
        }
        let next = answered + 1;
        if next == self.warm_up
            && let Pace::StopAndWait { duration_ns: Some(d) } = self.pace
        {
            p.end_ns.store(now + d, Relaxed);
        }
        let end = p.end_ns.load(Relaxed);
        if next >= self.slots || (end != 0 && now >= end) {
            p.finished.store(true, Release);
            return;
        }
        match self.cells.get(next).filter(|_| self.has_room(next)) {
            Some(cell) => drop(self.send_slot(next, cell, now)),
            None => {
                self.header.dropped.store(1, Relaxed);
                p.finished.store(true, Release);
            }
        }
    }

    /// Samples that carried a sequence number outside the trial.
    pub fn foreign(&self) -> u64 {
        self.progress.foreign.load(Relaxed)
    }

    /// Code of the last send that failed, 0 = none; and how many were not sent.
    pub fn send_failures(&self) -> (i32, u64) {
        (self.progress.send_error.load(Relaxed), self.progress.not_sent.load(Relaxed))
    }

    /// Stop-and-wait by duration ended because the memory was full.
    pub fn ran_out_of_memory(&self) -> bool {
        matches!(self.pace, Pace::StopAndWait { duration_ns: Some(_) })
            && self.progress.turn.load(Relaxed) >= self.slots
    }
}

impl<C: Clock, H: Hook> Sink for Ping<C, H> {
    #[inline]
    fn now(&self) -> i64 {
        self.clock.now()
    }

    /// An answer is here.
    #[inline]
    fn process(&self, arrival: &Arrival<'_>) {
        // With a hand-off this runs on the second thread: the answer counts as received when that thread has it.
        let now = self.clock.now();
        let counter = counter_of(arrival.seq);
        let claimed = &self.header.drained.claimed;
        if counter < claimed.load(Acquire) {
            self.header.late.store(self.header.late.load(Relaxed) + 1, Relaxed);
            return;
        }
        // A number of another stream, or one that was never sent, is nobody's answer.
        let ours = arrival.seq == counter && counter < self.slots && self.has_room(counter);
        let sent = |cell: &&SenderCell| ours && cell.send_begin_ns.load(Acquire) != 0;
        let Some(cell) = self.cells.get(counter).filter(sent) else {
            self.progress.foreign.fetch_add(1, Relaxed);
            return;
        };
        // Only the processing thread writes these: plain loads and stores are enough.
        let answers = cell.answers.load(Relaxed);
        cell.answers.store(answers + 1, Relaxed);
        if answers > 0 {
            return;
        }
        cell.receive_ns.store(now, Relaxed);
        cell.kernel_rx_ns.store(arrival.kernel_rx_ns, Relaxed);
        let p = &self.progress;
        if counter < p.highest.load(Relaxed) {
            cell.flags.fetch_or(CELL_OUT_OF_ORDER, Relaxed);
        } else {
            p.highest.store(counter + 1, Relaxed);
        }
        p.answered.store(p.answered.load(Relaxed) + 1, Relaxed);
        // Claimed between the check and here: what was written may be lost, or lie in the cell of another lap.
        if counter < claimed.load(Acquire) {
            self.header.raced.store(self.header.raced.load(Relaxed) + 1, Relaxed);
        }
        if matches!(self.pace, Pace::StopAndWait { .. }) {
            self.advance(counter, now);
        }
    }
}
