//! The thread that asks and answers before matching, and ends with it.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::endpoint::{LINGER_NS, lock};
use crate::net;
use crate::reader::Reader;
use crate::session::{Endpoint, Inner};
use crate::writer::Writer;

/// Pause between two rounds of questions.
const PAUSE: Duration = Duration::from_millis(5);
/// The same, when nobody has answered for two seconds.
const LONG_PAUSE: Duration = Duration::from_millis(50);
const PATIENCE_NS: i64 = 2_000_000_000;
/// An end point that nobody waits for is given up after this long.
const GIVE_UP_NS: i64 = 60_000_000_000;

/// The thread and how to end it.
#[derive(Default)]
pub struct Discovery {
    state: Mutex<State>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Thread id; 0 = not running.
    pub thread_id: AtomicI32,
}

#[derive(Default)]
struct State {
    running: bool,
    /// Something new came while the thread was looking.
    again: bool,
    stop: bool,
}

impl Discovery {
    /// Makes sure that the thread runs.
    pub fn start(&self, inner: &Arc<Inner>) -> std::io::Result<()> {
        let mut state = lock(&self.state);
        state.again = true;
        self.changed.notify_all();
        if state.running || state.stop {
            return Ok(());
        }
        let mut thread = lock(&self.thread);
        if let Some(ended) = thread.take() {
            let _ = ended.join();
        }
        let inner = inner.clone();
        let run = move || inner.discovery.run(&inner);
        *thread = Some(std::thread::Builder::new().name("tb-udp-disc".to_owned()).spawn(run)?);
        state.running = true;
        Ok(())
    }

    /// Ends the thread for good.
    pub fn stop(&self) {
        lock(&self.state).stop = true;
        self.changed.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn run(&self, inner: &Inner) {
        // SAFETY: no arguments.
        self.thread_id.store(unsafe { libc::gettid() }, Ordering::SeqCst);
        loop {
            let now = net::monotonic_ns();
            let (mut active, mut fresh) = (false, false);
            for endpoint in inner.endpoints() {
                let (busy, common) = match &**endpoint {
                    Endpoint::Reader(reader) => (read(reader, now), &reader.common),
                    Endpoint::Writer(writer) => (write(writer, now, inner), &writer.common),
                };
                active |= busy;
                fresh |= busy && now - common.heard_ns.load(Ordering::Relaxed) < PATIENCE_NS;
            }
            let mut state = lock(&self.state);
            if state.stop || (!active && !state.again) {
                state.running = false;
                break;
            }
            state.again = false;
            let pause = if fresh { PAUSE } else { LONG_PAUSE };
            drop(self.changed.wait_timeout(state, pause).unwrap_or_else(|e| e.into_inner()));
        }
        self.thread_id.store(0, Ordering::SeqCst);
    }
}

/// Whether the reader still needs this thread.
fn read(reader: &Reader, now: i64) -> bool {
    let silence = now - reader.common.heard_ns.load(Ordering::Relaxed);
    let limit = match reader.common.settled.load(Ordering::SeqCst) {
        true => LINGER_NS,
        false if reader.common.waiting.load(Ordering::SeqCst) > 0 => i64::MAX,
        false => GIVE_UP_NS,
    };
    let own_thread = reader.mode == tailbound_abi::TB_LISTENER;
    if own_thread || reader.in_use.load(Ordering::Relaxed) || silence > limit {
        return false;
    }
    match reader.common.enter() {
        Some(_inside) => reader.pump(),
        None => return false,
    }
    true
}

/// Whether the writer still needs this thread.
fn write(writer: &Writer, now: i64, inner: &Inner) -> bool {
    let silence = now - writer.common.heard_ns.load(Ordering::Relaxed);
    let given_up = silence > GIVE_UP_NS && writer.common.waiting.load(Ordering::SeqCst) == 0;
    if writer.common.settled.load(Ordering::SeqCst) || given_up {
        return false;
    }
    match writer.common.enter() {
        Some(_inside) => writer.ask(&inner.options),
        None => return false,
    }
    true
}
