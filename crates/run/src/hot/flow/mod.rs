//! A flow: the loop that publishes, the subscriber that counts received messages, and the shared memory for the counts
//! of both.
//!
//! The sequence number of a message consists of the number of the publisher, the part of the flow (ramp-up, window,
//! drain) and a counter. The message carries nothing else but its payload. A subscriber counts a message in the part in
//! which the message was sent, whenever the message arrives.

mod memory;
mod publisher;
mod received;
mod subscriber;

pub use memory::{FlowCells, FlowMemory};
pub use publisher::{FlowPace, Publisher};
pub use received::{CounterStatus, Received};
pub use subscriber::Subscriber;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};
use tailbound_model::{COUNTER_BITS, FlowPart};

/// Position of the lowest bit of the publisher's number in a sequence number.
const PUBLISHER_SHIFT: u32 = 56;

/// Sequence number of a message, made of the index of its publisher, the part of the flow, and its counter.
#[inline]
fn seq_of(publisher: u8, part: FlowPart, counter: u64) -> u64 {
    u64::from(publisher) << PUBLISHER_SHIFT | (part as u64) << COUNTER_BITS | counter
}

/// Splits a sequence number of a flow into publisher, part of the flow, and counter.
#[inline]
fn parts_of(seq: u64) -> (usize, u64, u64) {
    let part = (seq >> COUNTER_BITS) & ((1 << (PUBLISHER_SHIFT - COUNTER_BITS)) - 1);
    ((seq >> PUBLISHER_SHIFT) as usize, part, seq & ((1 << COUNTER_BITS) - 1))
}

/// Adds `n` to a counter that only one thread writes: a load and a store, without a locked instruction.
#[inline]
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Relaxed) + n, Relaxed);
}

/// Adds `n` ns to a sum of times that only one thread writes: a load and a store, without a locked instruction.
#[inline]
fn add_ns(cell: &AtomicI64, n: i64) {
    cell.store(cell.load(Relaxed) + n, Relaxed);
}

/// CPU time of all threads of this process, in ns. This is a system call, so it is made only when a part of the flow
/// begins and when the flow ends.
#[cold]
fn cpu_ns() -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}
