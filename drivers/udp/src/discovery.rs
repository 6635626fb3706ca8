//! The discovery thread, which sends and answers discovery questions (a writer asks for the readers of its topic)
//! before end points are matched; the thread ends after matching, unless it has to read the stamps of sent messages.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::endpoint::{LINGER_NS, lock};
use crate::endpoints::{Endpoint, Endpoints};
use crate::net;
use crate::reader::Reader;
use crate::writer::Writer;

/// Pause between two rounds in which the writers ask for readers.
const PAUSE: Duration = Duration::from_millis(5);
/// Pause between two rounds of discovery questions if no peer has answered for two seconds.
const LONG_PAUSE: Duration = Duration::from_millis(50);
const PATIENCE_NS: i64 = 2_000_000_000;
/// Time in ns after which the discovery thread stops asking for an end point that no call waits for.
const GIVE_UP_NS: i64 = 60_000_000_000;

/// The thread that does discovery for a session, with the state by which it is ended.
#[derive(Default)]
pub struct Discovery {
    state: Mutex<State>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Thread id of the discovery thread; 0 if the thread does not run.
    pub thread_id: AtomicI32,
}

#[derive(Default)]
struct State {
    running: bool,
    /// Whether an end point was added while the thread was working.
    again: bool,
    stop: bool,
}

impl Discovery {
    /// Starts the session's discovery thread if it does not run.
    pub fn start(self: &Arc<Self>, endpoints: &Arc<Endpoints>) -> std::io::Result<()> {
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
        let (own, endpoints) = (self.clone(), endpoints.clone());
        let run = move || own.run(&endpoints);
        *thread = Some(std::thread::Builder::new().name("tb-udp-disc".to_owned()).spawn(run)?);
        state.running = true;
        Ok(())
    }

    /// Ends the session's discovery thread and waits for its end.
    pub fn stop(&self) {
        lock(&self.state).stop = true;
        self.changed.notify_all();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn run(&self, endpoints: &Endpoints) {
        // SAFETY: the call has no arguments.
        self.thread_id.store(unsafe { libc::gettid() }, Ordering::SeqCst);
        loop {
            let now = net::monotonic_ns();
            let (mut active, mut fresh) = (false, false);
            for endpoint in endpoints.open() {
                let (busy, common) = match endpoint {
                    Endpoint::Reader(reader) => (read(reader, now), &reader.common),
                    Endpoint::Writer(writer) => (write(writer, now, endpoints), &writer.common),
                };
                active |= busy;
                // Such a writer only reads stamps.
                let is_done = matches!(endpoint, Endpoint::Writer(_)) && common.settled.load(Ordering::SeqCst);
                fresh |= busy && !is_done && now - common.heard_ns.load(Ordering::Relaxed) < PATIENCE_NS;
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

/// Receives for a reader before it is matched; returns whether the reader still needs the discovery thread.
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

/// Asks for readers of a writer, or reads the stamps of its messages; returns whether the writer still needs the discovery thread.
fn write(writer: &Writer, now: i64, endpoints: &Endpoints) -> bool {
    if writer.common.settled.load(Ordering::SeqCst) && writer.stamps.is_some() {
        let inside = writer.common.enter();
        inside.iter().for_each(|_| writer.hear());
        return inside.is_some();
    }
    let silence = now - writer.common.heard_ns.load(Ordering::Relaxed);
    let given_up = silence > GIVE_UP_NS && writer.common.waiting.load(Ordering::SeqCst) == 0;
    if writer.common.settled.load(Ordering::SeqCst) || given_up {
        return false;
    }
    match writer.common.enter() {
        Some(_inside) => writer.ask(&endpoints.options),
        None => return false,
    }
    true
}
