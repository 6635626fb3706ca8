//! A flow: the loop that publishes, the sink that counts, and the shared memory of their counts.
//!
//! The sequence number of a message is its publisher, its part of the flow (ramp-up, window, drain) and a counter: nothing
//! else is on the wire, and a subscriber counts a message to the part in which it was sent, whenever it arrives.

mod memory;
mod publisher;
mod seen;
mod subscriber;

pub use memory::{FlowCells, FlowMemory};
pub use publisher::{FlowPace, Publisher};
pub use seen::{Seen, Sight};
pub use subscriber::Subscriber;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};
use tailbound_model::{COUNTER_BITS, FlowPart};

/// Below the publisher's number, from 0.
const PUBLISHER_SHIFT: u32 = 56;

/// The sequence number of a message.
#[inline]
fn seq_of(publisher: u8, part: FlowPart, counter: u64) -> u64 {
    u64::from(publisher) << PUBLISHER_SHIFT | (part as u64) << COUNTER_BITS | counter
}

/// Publisher, part and counter of a sequence number.
#[inline]
fn parts_of(seq: u64) -> (usize, u64, u64) {
    let part = (seq >> COUNTER_BITS) & ((1 << (PUBLISHER_SHIFT - COUNTER_BITS)) - 1);
    ((seq >> PUBLISHER_SHIFT) as usize, part, seq & ((1 << COUNTER_BITS) - 1))
}

/// Adds where one thread writes: a load and a store, no locked instruction.
#[inline]
fn add(cell: &AtomicU64, n: u64) {
    cell.store(cell.load(Relaxed) + n, Relaxed);
}

/// The same for times.
#[inline]
fn add_ns(cell: &AtomicI64, n: i64) {
    cell.store(cell.load(Relaxed) + n, Relaxed);
}

/// CPU time of this process, all its threads. A system call: only where a part of the flow begins.
#[cold]
fn cpu_ns() -> i64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}
