//! The ping end of a trial: sends messages on schedule and takes the answers.

use super::{Arrival, Asleep, Between, Clock, Header, Port, Ring, Sink, thread_id};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU64};
use tailbound_model::*;

/// A hook in the hot loop, which a test uses to run its own code there. Outside tests the hook does nothing, and the
/// compiler removes the calls.
pub trait Hook: Send + Sync + 'static {
    /// The sending thread calls this function once for each slot.
    #[inline]
    fn slot(&self, _slot: u64) {}
}

/// A hook that does nothing, for a send loop outside tests.
pub struct NoHook;
impl Hook for NoHook {}

/// Rule for the times at which the ping end sends its slots.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// Open loop: slot k is due at t0 + k x period.
    Open {
        /// Period between the due times of two slots, ns.
        period_ns: i64,
        /// Rule for slots that become due while the sender is busy with an earlier slot.
        on_overrun: OnOverrun,
        /// Number of slots after the warm-up that are sent, after which the trial ends; `None` = it ends after its number of
        /// slots.
        loops: Option<u64>,
    },
    /// Stop-and-wait: the thread that takes the answer sends the next slot.
    StopAndWait {
        /// Time from the end of the warm-up to the end of the trial, ns; `None` = the trial ends after its number of
        /// slots.
        duration_ns: Option<i64>,
    },
}

/// The ping end of one trial, which sends messages and receives the answers.
pub struct Ping<C, H = NoHook> {
    /// Clock by which the ping end sends.
    pub clock: C,
    /// Hook in the ping end's send loop, which only tests use.
    pub hook: H,
    /// Writer that sends the messages of the ping end.
    pub writer: Port,
    /// Cells of the sample memory: one cell for each slot, or a ring of cells.
    pub cells: Ring<SenderCell>,
    /// Header on the first page of the ping end's sample memory.
    pub header: &'static Header,
    /// Payload bytes of every message that the ping end sends.
    pub payload: Box<[u8]>,
    /// Rule for the times at which the ping end sends its slots.
    pub pace: Pace,
    /// Number of slots of the trial. If the trial ends by time, this is the largest possible number.
    pub slots: u64,
    /// Number of slots of the warm-up, which are part of the slots of the trial.
    pub warm_up: u64,
    /// Time from the due time of a slot to its launch time (CLOCK_TAI), ns; 0 = messages have no launch time.
    launch_after_ns: AtomicI64,
    /// Timeout for answers, ns. Stop-and-wait gives up on an answer after this time; the open loop waits for twice this
    /// time after the last slot.
    pub timeout_ns: i64,
    progress: Progress,
}

/// Progress of the ping end, shared by its threads.
#[derive(Default)]
struct Progress {
    /// Number of the slot that was sent last and is not answered yet (stop-and-wait).
    turn: AtomicU64,
    /// Time at which the slot was sent that was sent last and is not answered yet (stop-and-wait), ns.
    turn_sent_ns: AtomicI64,
    /// Time after which stop-and-wait with a duration begins no slot, ns; 0 = not known yet, or no duration.
    end_ns: AtomicI64,
    answered: AtomicU64,
    not_sent: AtomicU64,
    /// Highest number of a slot that was answered so far, plus one.
    highest: AtomicU64,
    finished: AtomicBool,
    foreign: AtomicU64,
    send_error: AtomicI32,
    /// Number of loops that were not sent before the last slot.
    missing: AtomicU64,
}

impl<C: Clock, H: Hook> Ping<C, H> {
    /// Creates the ping end of a trial.
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
        let (progress, launch_after_ns) = (Progress::default(), AtomicI64::new(0));
        Ping {
            clock,
            hook,
            writer,
            cells,
            header,
            payload,
            pace,
            slots,
            warm_up,
            launch_after_ns,
            timeout_ns,
            progress,
        }
    }

    /// From now on, each message of the open loop leaves this time after the due time of its slot: launch time (CLOCK_TAI) minus due
    /// time (monotonic), ns.
    pub fn launch(&self, after_ns: i64) {
        self.launch_after_ns.store(after_ns, Relaxed);
    }

    /// Runs the whole trial on the calling thread; other threads take the answers. Returns the number of slots
    /// scheduled.
    pub fn run(&self, t0_ns: i64, each_second: &mut dyn FnMut()) -> u64 {
        self.run_with(t0_ns, each_second, &mut Asleep(self.clock))
    }

    /// Runs the whole trial on the calling thread, like `run`. The parameter `between` defines what the thread does
    /// between two slots.
    pub fn run_with(&self, t0_ns: i64, each_second: &mut dyn FnMut(), between: &mut impl Between) -> u64 {
        self.header.t0_ns.store(t0_ns, Release);
        match self.pace {
            Pace::Open { period_ns, on_overrun, loops } => {
                let pace = (period_ns, on_overrun, loops.map_or(u64::MAX, |loops| self.warm_up + loops));
                // Two loops, so that messages without launch times cost nothing more.
                let sent = match self.launch_after_ns.load(Relaxed) {
                    0 => self.open_loop::<_, false>(t0_ns, (pace, 0), each_second, between),
                    after_ns => self.open_loop::<_, true>(t0_ns, (pace, after_ns), each_second, between),
                };
                self.await_answers(sent, each_second, between);
                sent
            }
            Pace::StopAndWait { duration_ns } => {
                if let (Some(duration_ns), 0) = (duration_ns, self.warm_up) {
                    self.progress.end_ns.store(t0_ns + duration_ns, Relaxed);
                }
                let now = between.until(self.clock.now(), t0_ns);
                if let Some(cell) = self.cells.get(0) {
                    self.send_slot::<false>(0, cell, now, 0);
                }
                self.watch(each_second, between);
                self.progress.turn.load(Acquire).min(self.slots)
            }
        }
    }

    /// True if this slot has a free cell in the sample memory. The result is false only if a ring was not drained in
    /// time.
    #[inline]
    fn has_room(&self, slot: u64) -> bool {
        slot < self.header.drained.stored.load(Acquire) + self.cells.len()
    }

    /// Sends slots in an open loop until `most` are sent, with `LAUNCHED` each at its launch time, `launch_after_ns` after its due time.
    /// Slots that were missed during the warm-up count as sent. Returns the number of slots begun, which is smaller than the number
    /// of all slots only if `most` were sent or the ring was full.
    fn open_loop<B: Between, const LAUNCHED: bool>(
        &self,
        t0_ns: i64,
        ((period_ns, on_overrun, most), launch_after_ns): ((i64, OnOverrun, u64), i64),
        each_second: &mut dyn FnMut(),
        between: &mut B,
    ) -> u64 {
        let last_slot = self.slots - 1;
        // Number of the first slot after the trial: each missed slot moves it.
        let mut end = most;
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
            // If the ring is full, the trial ends here, because a row that is not stored must not be overwritten.
            let Some(cell) = self.cells.get(slot).filter(|_| self.has_room(slot)) else {
                self.header.dropped.store(self.slots - slot, Relaxed);
                return slot;
            };
            if on_overrun == OnOverrun::Skip && now >= due + period_ns && slot < last_slot {
                cell.flags.store(CELL_SKIPPED, Relaxed);
                self.progress.not_sent.fetch_add(1, Relaxed);
                end = end.saturating_add(u64::from(slot >= self.warm_up));
                continue;
            }
            now = self.send_slot::<LAUNCHED>(slot, cell, now, due + launch_after_ns);
            if slot + 1 >= end {
                return slot + 1;
            }
        }
        self.progress.missing.store(end.saturating_sub(self.slots), Relaxed);
        self.slots
    }

    /// Sends one slot, with `LAUNCHED` at `launch_ns` of CLOCK_TAI, otherwise at once. Returns the time at which the send call ended, ns.
    #[inline]
    fn send_slot<const LAUNCHED: bool>(&self, slot: u64, cell: &SenderCell, wake_ns: i64, launch_ns: i64) -> i64 {
        self.hook.slot(slot);
        cell.wake_ns.store(wake_ns, Relaxed);
        let begin = self.clock.now();
        // Before the call: the answer may be taken by another thread before `send` returns.
        cell.send_begin_ns.store(begin, Release);
        self.progress.turn_sent_ns.store(begin, Relaxed);
        let sent = match LAUNCHED {
            false => self.writer.send(slot, &self.payload),
            true => self.writer.send_at(slot, &self.payload, launch_ns),
        };
        let end = self.clock.now();
        if let Err(code) = sent {
            cell.flags.fetch_or(CELL_SEND_FAILED, Relaxed);
            self.progress.not_sent.fetch_add(1, Relaxed);
            self.progress.send_error.store(code.0, Relaxed);
        }
        // Last: from here on the sender leaves the cell to whoever stores the row.
        cell.send_end_ns.store(end, Release);
        end
    }

    /// Waits until all slots are answered, but at most for twice the timeout after the last slot.
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

    /// Stop-and-wait: sends the next slot if the answer to the present slot does not arrive within the timeout. Returns
    /// when the trial is over.
    fn watch(&self, each_second: &mut dyn FnMut(), between: &mut impl Between) {
        let p = &self.progress;
        let mut step_end = self.clock.now();
        while !p.finished.load(Acquire) {
            // An open loop ends as soon as its ring is full; the ring of stop-and-wait has room for minutes.
            if self.header.ended_early.load(Relaxed) != 0 {
                p.end_ns.store(1, Relaxed);
            }
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
        // Answers to the last slots may still arrive.
        let mut now = self.clock.now();
        let linger = now + self.timeout_ns.min(100_000_000);
        let sent = p.turn.load(Acquire).min(self.slots);
        while p.answered.load(Relaxed) + p.not_sent.load(Relaxed) < sent && now < linger {
            now = between.until(now, now + 1_000_000);
        }
    }

    /// Ends slot `answered`, which was answered or timed out, and sends the next slot. If several threads call this
    /// function for the same slot, only the first call has an effect.
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
            Some(cell) => drop(self.send_slot::<false>(next, cell, now, 0)),
            None => {
                self.header.dropped.store(1, Relaxed);
                p.finished.store(true, Release);
            }
        }
    }

    /// Number of received samples with a sequence number that answers no slot of the trial.
    pub fn foreign(&self) -> u64 {
        self.progress.foreign.load(Relaxed)
    }

    /// Code of the last send call that failed (0 = none failed), and number of slots that were not sent.
    pub fn send_failures(&self) -> (i32, u64) {
        (self.progress.send_error.load(Relaxed), self.progress.not_sent.load(Relaxed))
    }

    /// Number of loops that are missing because the sender missed too many slots; `None` if none is missing, or the trial does not
    /// count loops.
    pub fn missing_loops(&self) -> Option<u64> {
        let counts = matches!(self.pace, Pace::Open { loops: Some(_), .. });
        Some(self.progress.missing.load(Relaxed)).filter(|missing| counts && *missing > 0)
    }

    /// True if stop-and-wait with a duration ended early because the sample memory was full.
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

    /// Processes an answer that the ping end has received.
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
        // A sequence number of another stream, or of a slot that was not sent, answers no slot.
        let ours = arrival.seq == counter && counter < self.slots && self.has_room(counter);
        let sent = |cell: &&SenderCell| ours && cell.send_begin_ns.load(Acquire) != 0;
        let Some(cell) = self.cells.get(counter).filter(sent) else {
            self.progress.foreign.fetch_add(1, Relaxed);
            return;
        };
        // Only the processing thread writes these fields, so that loads and stores without a lock suffice.
        let answers = cell.answers.load(Relaxed);
        cell.answers.store(answers + 1, Relaxed);
        if answers > 0 {
            return;
        }
        cell.receive_ns.store(now, Relaxed);
        cell.kernel_rx_ns.store(arrival.kernel_rx_ns, Relaxed);
        // With a hand-off, this is the second thread.
        cell.receive_thread.store(thread_id(), Relaxed);
        let p = &self.progress;
        if counter < p.highest.load(Relaxed) {
            cell.flags.fetch_or(CELL_OUT_OF_ORDER, Relaxed);
        } else {
            p.highest.store(counter + 1, Relaxed);
        }
        p.answered.store(p.answered.load(Relaxed) + 1, Relaxed);
        // If the slot was claimed after the check above, the times just written may be lost, or lie in a cell that is
        // already used for a later slot.
        if counter < claimed.load(Acquire) {
            self.header.raced.store(self.header.raced.load(Relaxed) + 1, Relaxed);
        }
        if matches!(self.pace, Pace::StopAndWait { .. }) {
            self.advance(counter, now);
        }
    }
}
