//! Delivery in real time: in the sender's thread, with the sender's octets.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tailbound_abi::{TB_FOREVER, tb_view};

use crate::endpoint::Endpoint;

/// Sends inside callbacks of sends that are delivered on the spot: a ping, its pong. Deeper ones wait until the outermost
/// send has delivered, so that an endless exchange inside callbacks does not grow the stack.
const DEPTH: u32 = 2;

thread_local! {
    static DEPTH_NOW: Cell<u32> = const { Cell::new(0) };
    static LATER: RefCell<VecDeque<Later>> = const { RefCell::new(VecDeque::new()) };
    /// Payload buffers for `LATER`, kept so that a steady exchange does not allocate.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

struct Later {
    writer: Arc<Endpoint>,
    seq: u64,
    payload: Vec<u8>,
}

/// Sends at once. `false` when a reader's queue is full.
#[inline]
pub fn send(writer: &Arc<Endpoint>, seq: u64, payload: &[u8]) -> bool {
    let depth = DEPTH_NOW.get();
    if depth >= DEPTH {
        defer(writer, seq, payload);
        return true;
    }
    DEPTH_NOW.set(depth + 1);
    let ok = deliver(writer, seq, payload);
    if depth == 0 {
        while let Some(later) = LATER.with_borrow_mut(VecDeque::pop_front) {
            // It was counted when it was put off.
            if let Some(_inside) = later.writer.enter() {
                deliver(&later.writer, later.seq, &later.payload);
            }
            SPARE.with_borrow_mut(|spare| spare.push(later.payload));
        }
    }
    DEPTH_NOW.set(depth);
    ok
}

#[inline]
fn deliver(writer: &Endpoint, seq: u64, payload: &[u8]) -> bool {
    let (data, len) = (payload.as_ptr(), payload.len() as u64);
    let mut view = tb_view { seq, data, len, writer: writer.identity, ..tb_view::default() };
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
fn defer(writer: &Arc<Endpoint>, seq: u64, octets: &[u8]) {
    let mut payload = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
    payload.clear();
    payload.extend_from_slice(octets);
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

/// Time until an absolute `CLOCK_MONOTONIC` deadline; `None` = no limit.
pub fn remaining(deadline_ns: i64) -> Option<Duration> {
    (deadline_ns != TB_FOREVER)
        .then(|| Duration::from_nanos((deadline_ns.saturating_sub(clock_ns(libc::CLOCK_MONOTONIC))).max(0) as u64))
}
