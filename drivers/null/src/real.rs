//! Delivery of samples in real time: in the sender's thread, from the sender's memory.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use tailbound_abi::{TB_FOREVER, tb_view};

use crate::topic::Connected;

/// Depth of nested sends inside callbacks that are delivered immediately: a ping and its pong. Deeper sends are
/// postponed until the outermost send has delivered its sample, so that an endless exchange in callbacks does not grow
/// the stack.
const DEPTH: u32 = 2;

thread_local! {
    static DEPTH_NOW: Cell<u32> = const { Cell::new(0) };
    static LATER: RefCell<VecDeque<Later>> = const { RefCell::new(VecDeque::new()) };
    /// Payload buffers of messages that were delivered. They are used again for the messages that wait in `LATER` for
    /// their delivery, so that a steady exchange does not allocate memory.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

struct Later {
    writer: Connected,
    seq: u64,
    payload: Vec<u8>,
}

/// Sends a sample immediately. Returns `false` if a reader's queue is full.
#[inline]
pub fn send(writer: &Connected, seq: u64, payload: &[u8]) -> bool {
    let depth = DEPTH_NOW.get();
    if depth >= DEPTH {
        defer(writer, seq, payload);
        return true;
    }
    DEPTH_NOW.set(depth + 1);
    let ok = deliver(writer, seq, payload);
    if depth == 0 {
        while let Some(later) = LATER.with_borrow_mut(VecDeque::pop_front) {
            // The sample was counted when it was postponed.
            if let Some(_inside) = later.writer.endpoint.enter() {
                deliver(&later.writer, later.seq, &later.payload);
            }
            SPARE.with_borrow_mut(|spare| spare.push(later.payload));
        }
    }
    DEPTH_NOW.set(depth);
    ok
}

#[inline]
fn deliver(writer: &Connected, seq: u64, payload: &[u8]) -> bool {
    let (data, len) = (payload.as_ptr(), payload.len() as u64);
    let mut view = tb_view { seq, data, len, writer: writer.endpoint.identity, ..tb_view::default() };
    let mut ok = true;
    for reader in writer.topic.readers() {
        if reader.timestamps {
            view.source_ns = realtime_ns();
            view.kernel_rx_ns = view.source_ns;
        }
        ok &= reader.deliver(&view);
    }
    ok
}

#[cold]
fn defer(writer: &Connected, seq: u64, bytes: &[u8]) {
    let mut payload = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
    payload.clear();
    payload.extend_from_slice(bytes);
    LATER.with_borrow_mut(|later| later.push_back(Later { writer: writer.clone(), seq, payload }));
}

fn clock_ns(clock: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn realtime_ns() -> i64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// Time until an absolute `CLOCK_MONOTONIC` deadline; `None` means no limit.
pub fn remaining(deadline_ns: i64) -> Option<Duration> {
    (deadline_ns != TB_FOREVER)
        .then(|| Duration::from_nanos((deadline_ns.saturating_sub(clock_ns(libc::CLOCK_MONOTONIC))).max(0) as u64))
}
