//! Rows of samples, one row for each message: as cells in shared memory, and as decoded values.
//!
//! The measuring process shares the cells with its supervisor. A cell consists of atomics without pointers, so the
//! supervisor can read a cell at any time. Zero means that the event has not happened yet.

use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// Value that marks a missing time in decoded rows and columns of samples.
pub const NO_TIME: i64 = i64::MIN;

/// One slot (scheduled message) of the sender, 56 bytes in shared memory. Times are ns of the end's monotonic clock; 0
/// means that the event has not happened.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SenderCell {
    /// Monotonic time at which the sender had woken up and began this slot.
    pub wake_ns: AtomicI64,
    /// Monotonic time just before the send call of the slot's message.
    pub send_begin_ns: AtomicI64,
    /// Monotonic time just after the send call of the slot's message.
    pub send_end_ns: AtomicI64,
    /// Monotonic time at which the answer to the slot's message was received.
    pub receive_ns: AtomicI64,
    /// Kernel receive timestamp of the answer, as the kernel reported it (CLOCK_REALTIME).
    pub kernel_rx_ns: AtomicI64,
    /// Flags of the slot: a combination of `CELL_SKIPPED`, `CELL_SEND_FAILED` and `CELL_OUT_OF_ORDER`.
    pub flags: AtomicU32,
    /// Number of answers received; all answers after the first are duplicates.
    pub answers: AtomicU32,
    /// Kernel id of the thread that had the answer at `receive_ns`.
    pub receive_thread: AtomicU64,
}

impl SenderCell {
    /// The bytes of the cell as they lie in memory, in native byte order. Each field is read atomically.
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let Self { wake_ns, send_begin_ns, send_end_ns, receive_ns, kernel_rx_ns, flags, answers, receive_thread } =
            self;
        let mut bytes = [0; size_of::<Self>()];
        let (times, rest) = bytes.split_at_mut(40);
        for (out, time) in
            times.chunks_exact_mut(8).zip([wake_ns, send_begin_ns, send_end_ns, receive_ns, kernel_rx_ns])
        {
            out.copy_from_slice(&time.load(Relaxed).to_ne_bytes());
        }
        let (counts, thread) = rest.split_at_mut(8);
        for (out, number) in counts.chunks_exact_mut(4).zip([flags, answers]) {
            out.copy_from_slice(&number.load(Relaxed).to_ne_bytes());
        }
        thread.copy_from_slice(&receive_thread.load(Relaxed).to_ne_bytes());
        bytes
    }

    /// Sets each field of the cell to zero.
    pub fn clear(&self) {
        let Self { wake_ns, send_begin_ns, send_end_ns, receive_ns, kernel_rx_ns, flags, answers, receive_thread } =
            self;
        [wake_ns, send_begin_ns, send_end_ns, receive_ns, kernel_rx_ns]
            .into_iter()
            .for_each(|time| time.store(0, Relaxed));
        [flags, answers].into_iter().for_each(|number| number.store(0, Relaxed));
        receive_thread.store(0, Relaxed);
    }
}

/// Flag of a slot: the slot was skipped (`on_overrun: skip`).
pub const CELL_SKIPPED: u32 = 1;
/// Flag of a slot: the send call failed.
pub const CELL_SEND_FAILED: u32 = 2;
/// Flag of a slot: the answer arrived after the answer of a later slot.
pub const CELL_OUT_OF_ORDER: u32 = 4;

/// One message that the pong end received, 48 bytes in shared memory. `seq_plus_one` is written last; while it is 0,
/// the cell is not complete.
#[repr(C)]
#[derive(Debug, Default)]
pub struct EchoCell {
    /// Sequence number of the received message, plus 1; 0 while the cell is not complete.
    pub seq_plus_one: AtomicU64,
    /// Monotonic time at which the pong end received the message.
    pub in_ns: AtomicI64,
    /// Monotonic time just before the send call of the pong end's answer.
    pub begin_ns: AtomicI64,
    /// Monotonic time just after the send call of the pong end's answer.
    pub end_ns: AtomicI64,
    /// Kernel receive timestamp of the message at the pong end (CLOCK_REALTIME).
    pub kernel_rx_ns: AtomicI64,
    /// Kernel id of the thread that had the message at `in_ns`.
    pub in_thread: AtomicU64,
}

impl EchoCell {
    /// The bytes of the cell as they lie in memory, in native byte order. Each field is read atomically.
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let Self { seq_plus_one, in_ns, begin_ns, end_ns, kernel_rx_ns, in_thread } = self;
        let mut bytes = [0; size_of::<Self>()];
        let (number, rest) = bytes.split_at_mut(8);
        let (times, thread) = rest.split_at_mut(32);
        number.copy_from_slice(&seq_plus_one.load(Relaxed).to_ne_bytes());
        thread.copy_from_slice(&in_thread.load(Relaxed).to_ne_bytes());
        for (out, time) in times.chunks_exact_mut(8).zip([in_ns, begin_ns, end_ns, kernel_rx_ns]) {
            out.copy_from_slice(&time.load(Relaxed).to_ne_bytes());
        }
        bytes
    }

    /// Sets each field of the cell to zero.
    pub fn clear(&self) {
        let Self { seq_plus_one, in_ns, begin_ns, end_ns, kernel_rx_ns, in_thread } = self;
        [seq_plus_one, in_thread].into_iter().for_each(|number| number.store(0, Relaxed));
        [in_ns, begin_ns, end_ns, kernel_rx_ns].into_iter().for_each(|time| time.store(0, Relaxed));
    }
}

/// Final state of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Outcome {
    /// Outcome of a slot: the answer arrived within the timeout.
    Answered = 0,
    /// Outcome of a slot: the answer arrived after the timeout; the row still has the receive time of the answer.
    AfterTimeout = 1,
    /// Outcome of a slot: the message was sent and no answer arrived.
    Lost = 2,
    /// Outcome of a slot: the message was not sent.
    NotSent = 3,
}

impl Outcome {
    /// All outcomes of slots, in the order of their numbers.
    pub const ALL: [Outcome; 4] = [Outcome::Answered, Outcome::AfterTimeout, Outcome::Lost, Outcome::NotSent];
    /// Word for the outcome of a slot in files, e.g. `after_timeout`.
    pub fn word(self) -> &'static str {
        ["answered", "after_timeout", "lost", "not_sent"][self as usize]
    }
}

/// A decoded row of the sender: times and outcome of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderRow {
    /// Sequence number of the slot's message: `stream << 48 | slot counter`.
    pub seq: u64,
    /// Time at which the slot was due; [`NO_TIME`] for stop-and-wait.
    pub intended_ns: i64,
    /// Time at which the sender had woken up and began this slot; [`NO_TIME`] if the sender never began the slot.
    pub wake_ns: i64,
    /// Monotonic time just before the send call of the slot's message.
    pub send_begin_ns: i64,
    /// Monotonic time just after the send call of the slot's message.
    pub send_end_ns: i64,
    /// Monotonic time at which the answer to the slot's message was received.
    pub receive_ns: i64,
    /// Kernel receive timestamp of the answer, converted to the monotonic clock.
    pub kernel_rx_ns: i64,
    /// Kernel id of the thread that had the answer at `receive_ns`; `None` if there is no answer.
    pub receive_thread: Option<u32>,
    /// Outcome of the slot: what happened to its message.
    pub outcome: Outcome,
    /// Number of answers to this slot after the first answer.
    pub duplicates: u32,
    /// True if the answer arrived after the answer of a later slot.
    pub out_of_order: bool,
    /// True if the slot is part of the warm-up.
    pub warm_up: bool,
}

/// A decoded row of the pong end: times of one received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoRow {
    /// Sequence number of the received message: `stream << 48 | slot counter`.
    pub seq: u64,
    /// Monotonic time at which the pong end received the message.
    pub in_ns: i64,
    /// Time just before the send call of the answer; [`NO_TIME`] if no answer was sent.
    pub begin_ns: i64,
    /// Monotonic time just after the send call of the pong end's answer.
    pub end_ns: i64,
    /// Kernel receive timestamp of the message, converted to the monotonic clock; [`NO_TIME`] if the kernel reported no
    /// timestamp.
    pub kernel_rx_ns: i64,
    /// Kernel id of the thread that had the message at `in_ns`; `None` if it is unknown.
    pub in_thread: Option<u32>,
}

/// Number of low bits of a sequence number that hold the slot counter; the bits above hold the stream number.
pub const COUNTER_BITS: u32 = 48;

/// Stream number of hops whose datagram had its first bytes in pages of their own, so that its message is not known. The
/// counter in their sequence number numbers the datagrams of one process.
pub const IN_PAGES: u64 = 0xffff;
/// As [`IN_PAGES`], of datagrams that were encrypted or signed.
pub const PROTECTED: u64 = 0xfffe;

/// Whether a sequence number stands for a datagram whose message is not known.
pub fn is_unread(seq: u64) -> bool {
    [IN_PAGES, PROTECTED].contains(&stream_of(seq))
}

/// The stream number that is part of a sequence number.
pub fn stream_of(seq: u64) -> u64 {
    seq >> COUNTER_BITS
}

/// The slot counter that is part of a sequence number.
pub fn counter_of(seq: u64) -> u64 {
    seq & ((1 << COUNTER_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that are written for a cell have the same layout as the cell in memory, because the reader of a record
    /// reads them as cells again.
    #[test]
    fn the_bytes_of_a_cell_are_its_memory() {
        let (time, number) = (|n: i64| AtomicI64::new(n << 40 | n), |n: u32| AtomicU32::new(n << 20 | n));
        let sender = SenderCell {
            wake_ns: time(1),
            send_begin_ns: time(2),
            send_end_ns: time(3),
            receive_ns: time(-4),
            kernel_rx_ns: time(5),
            flags: number(6),
            answers: number(7),
            receive_thread: AtomicU64::new(8 << 40 | 8),
        };
        let echo = EchoCell {
            seq_plus_one: AtomicU64::new(u64::MAX - 1),
            in_ns: time(2),
            begin_ns: time(3),
            end_ns: time(-4),
            kernel_rx_ns: time(5),
            in_thread: AtomicU64::new(6 << 40 | 6),
        };
        // SAFETY: both are atomics without padding, and nothing else uses them.
        let memory = |at: *const u8, size| unsafe { std::slice::from_raw_parts(at, size) }.to_vec();
        assert_eq!(sender.to_bytes(), *memory((&raw const sender).cast(), size_of::<SenderCell>()));
        assert_eq!(echo.to_bytes(), *memory((&raw const echo).cast(), size_of::<EchoCell>()));
        sender.clear();
        echo.clear();
        assert_eq!(sender.to_bytes(), [0; 56]);
        assert_eq!(echo.to_bytes(), [0; 48]);
    }
}
