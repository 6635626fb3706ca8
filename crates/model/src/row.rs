//! Rows of samples, in memory and as decoded values.
//!
//! The in-memory form lies in memory that the measuring process shares with its supervisor: plain atomics, no pointers,
//! valid at any instant. Zero means "not yet".

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// "No value" in decoded columns.
pub const NO_TIME: i64 = i64::MIN;

/// One slot of the sender, 48 bytes. Times are ns of the end's monotonic clock; 0 = not happened.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SenderCell {
    /// The sender was running and turned to this slot.
    pub wake_ns: AtomicI64,
    /// Just before the send call.
    pub send_begin_ns: AtomicI64,
    /// Just after it.
    pub send_end_ns: AtomicI64,
    /// The answer was received.
    pub receive_ns: AtomicI64,
    /// Kernel receive stamp of the answer, as the kernel gave it (CLOCK_REALTIME).
    pub kernel_rx_ns: AtomicI64,
    /// `CELL_*` flags.
    pub flags: AtomicU32,
    /// How many answers came; above 1 the rest are duplicates.
    pub answers: AtomicU32,
}

/// The slot was skipped (`on_overrun: skip`).
pub const CELL_SKIPPED: u32 = 1;
/// The send call failed.
pub const CELL_SEND_FAILED: u32 = 2;
/// The answer arrived after an answer of a later slot.
pub const CELL_OUT_OF_ORDER: u32 = 4;

/// One message that the pong side received, 40 bytes. `seq_plus_one` is written last: 0 = row not complete.
#[repr(C)]
#[derive(Debug, Default)]
pub struct EchoCell {
    /// Sequence number + 1.
    pub seq_plus_one: AtomicU64,
    /// Received.
    pub in_ns: AtomicI64,
    /// Just before the answer's send call.
    pub begin_ns: AtomicI64,
    /// Just after it.
    pub end_ns: AtomicI64,
    /// Kernel receive stamp (CLOCK_REALTIME).
    pub kernel_rx_ns: AtomicI64,
}

/// How a slot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Outcome {
    /// Answered within the timeout.
    Answered = 0,
    /// Answered later than the timeout; keeps its time.
    AfterTimeout = 1,
    /// Never answered.
    Lost = 2,
    /// Never sent.
    NotSent = 3,
}

impl Outcome {
    /// All outcomes, by their number.
    pub const ALL: [Outcome; 4] = [Outcome::Answered, Outcome::AfterTimeout, Outcome::Lost, Outcome::NotSent];
    /// The word in files.
    pub fn word(self) -> &'static str {
        ["answered", "after_timeout", "lost", "not_sent"][self as usize]
    }
}

/// A decoded slot of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderRow {
    /// stream << 48 | counter.
    pub seq: u64,
    /// When it was due; [`NO_TIME`] for stop-and-wait.
    pub intended_ns: i64,
    /// See [`SenderCell`]; [`NO_TIME`] = not happened.
    pub wake_ns: i64,
    /// Just before the send call.
    pub send_begin_ns: i64,
    /// Just after it.
    pub send_end_ns: i64,
    /// The answer was received.
    pub receive_ns: i64,
    /// Kernel receive stamp of the answer, converted to the monotonic clock.
    pub kernel_rx_ns: i64,
    /// How the slot ended.
    pub outcome: Outcome,
    /// Answers beyond the first.
    pub duplicates: u32,
    /// The answer was overtaken.
    pub out_of_order: bool,
    /// Part of the warm-up.
    pub warm_up: bool,
}

/// A decoded row of the pong side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoRow {
    /// stream << 48 | counter.
    pub seq: u64,
    /// Received.
    pub in_ns: i64,
    /// Just before the answer's send call; [`NO_TIME`] = it was never sent.
    pub begin_ns: i64,
    /// Just after it.
    pub end_ns: i64,
    /// Kernel receive stamp, converted to the monotonic clock; [`NO_TIME`] = none.
    pub kernel_rx_ns: i64,
}

/// Bits of `seq` that count slots; above them is the stream.
pub const COUNTER_BITS: u32 = 48;

/// The slot counter of a sequence number.
pub fn counter_of(seq: u64) -> u64 {
    seq & ((1 << COUNTER_BITS) - 1)
}
