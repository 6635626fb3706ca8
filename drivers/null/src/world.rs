//! Virtual time: the clock and the events of one scripted domain, that is, of all sessions of the `null` driver in this
//! process with the same domain number and `clock=scripted`.
//!
//! Only one thread may use the virtual time. Each callback runs at the time at which its event is due, as if the
//! callback had its own thread. Time that a callback uses (send cost, stalls) delays the next sample of the same
//! listener and nothing else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use tailbound_abi::side::{Outcome, fail};
use tailbound_abi::{TB_ETIMEDOUT, TB_EWOULDBLOCK, TB_FOREVER, tb_clock, tb_view};

use crate::endpoint::Endpoint;
use crate::lock::lock;
use crate::script::{Direction, Script};
use crate::topic::Connected;

/// Virtual time in ns at which the clock of a scripted domain (`clock=scripted`) begins.
const START_NS: i64 = 1_000_000_000;
/// Virtual time that an empty `take` costs in ns, so that a loop of such calls ends.
const IDLE_POLL_NS: i64 = 1_000;

/// The virtual clock and the future events of one scripted domain of the `null` driver.
#[derive(Default)]
pub struct World {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    script: Arc<Script>,
    now: i64,
    first_send: Option<i64>,
    order: u64,
    events: BinaryHeap<Reverse<Event>>,
    jump: Option<Jump>,
    lost: u64,
}

/// A turnaround stall that takes effect when the clock is read for the second time.
#[derive(Clone, Copy)]
struct Jump {
    to: i64,
    read_once: bool,
}

/// The future arrival of a message at its reader.
struct Event {
    due: i64,
    order: u64,
    reader: Arc<Endpoint>,
    writer: u64,
    seq: u64,
    source_ns: i64,
    kernel_rx_ns: i64,
    payload: Arc<[u8]>,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

impl State {
    fn since_first_send(&self, at: i64) -> Option<i64> {
        self.first_send.map(|first| at - first)
    }

    fn realtime(&self, at: i64) -> i64 {
        let stepped = self.since_first_send(at).map_or(0, |t| self.script.stepped_by_ns(t));
        self.script.realtime_offset_ns + at + stepped
    }

    fn schedule(&mut self, mut event: Event) {
        self.order += 1;
        event.order = self.order;
        self.events.push(Reverse(event));
    }
}

impl World {
    /// Starts the virtual time of the scripted domain again, with a script.
    pub fn reset(&self, script: Script) {
        *lock(&self.state) = State { script: Arc::new(script), now: START_NS, ..State::default() };
    }

    /// Discards all messages of the scripted domain that have not arrived.
    pub fn clear(&self) {
        let events = std::mem::take(&mut lock(&self.state).events);
        drop(events); // outside the lock: end points go with them
    }

    /// Returns the current script of the scripted domain.
    pub fn script(&self) -> Arc<Script> {
        lock(&self.state).script.clone()
    }

    /// Number of messages that were lost because the script loses them.
    pub fn lost(&self) -> u64 {
        lock(&self.state).lost
    }

    /// Returns the virtual clock of the scripted domain as the C struct of the ABI.
    pub fn clock(&'static self) -> tb_clock {
        tb_clock {
            size: size_of::<tb_clock>() as u32,
            reserved: 0,
            ctx: std::ptr::from_ref(self).cast_mut().cast(),
            now: Some(clock_now),
            sleep_until: Some(clock_sleep_until),
            realtime: Some(clock_realtime),
        }
    }

    /// Returns the clock of the receiving ends as the C struct of the ABI, if the script has such a clock. Only reading
    /// uses this clock; sleeping uses the domain's clock.
    pub fn far_clock(&'static self) -> Option<tb_clock> {
        let far = self.script().pong_clock.is_some();
        far.then(|| tb_clock { now: Some(far_clock_now), ..self.clock() })
    }

    fn far_now(&self) -> i64 {
        let now = self.now();
        let state = lock(&self.state);
        let at_ns = state.since_first_send(now).unwrap_or(0);
        let ahead = state.script.pong_clock.as_ref().map_or(0, |clock| clock.ahead_ns(at_ns));
        // Zero would mean that the timestamp is missing.
        if now.wrapping_add(ahead) == 0 { 1 } else { now.wrapping_add(ahead) }
    }

    /// Returns the virtual time to the program that loaded the driver. If the script has stalled the turnaround, the
    /// second reading advances the virtual time by this stall.
    pub fn now(&self) -> i64 {
        let mut state = lock(&self.state);
        match state.jump {
            Some(Jump { to, read_once: true }) => {
                state.now = state.now.max(to);
                state.jump = None;
            }
            Some(Jump { to, read_once: false }) => state.jump = Some(Jump { to, read_once: true }),
            None => {}
        }
        state.now
    }

    /// Advances the virtual time to the deadline and runs the events on the way.
    pub fn sleep_until(&self, deadline: i64) {
        while self.step(deadline).is_some() {}
        let mut state = lock(&self.state);
        state.now = state.now.max(deadline);
    }

    /// Sends a message in virtual time: the time of its arrival is decided at this moment.
    #[cold]
    pub fn send(&self, writer: &Connected, seq: u64, payload: &[u8]) {
        let mut state = lock(&self.state);
        let script = state.script.clone();
        let direction = writer.endpoint.direction;
        let now = state.now;
        let first = *state.first_send.get_or_insert(now);
        state.now = first + script.send_held_until(state.now - first);
        state.now += script.link(direction).send_cost_ns as i64;
        let departure = state.now;
        let fate = script.fate(direction, seq);
        if fate.lost {
            state.lost += 1;
            return;
        }
        let source_ns = state.realtime(departure);
        let arrival = departure.saturating_add(fate.travel_ns as i64);
        let after_kernel_ns = script.link(direction).after_kernel_ns.min(fate.travel_ns) as i64;
        let payload: Arc<[u8]> = payload.into();
        let copies = [Some(0), fate.duplicate_after_ns];
        for extra in copies.into_iter().flatten() {
            let due = first + script.held_until(direction, arrival.saturating_add(extra as i64) - first);
            for reader in writer.topic.readers() {
                let (reader, payload) = (reader.clone(), payload.clone());
                let kernel_rx_ns = state.realtime(due - after_kernel_ns);
                let event = Event {
                    due,
                    order: 0,
                    reader,
                    writer: writer.endpoint.identity,
                    seq,
                    source_ns,
                    kernel_rx_ns,
                    payload,
                };
                state.schedule(event);
            }
        }
    }

    /// Runs events until `done` returns a value; the virtual time advances to the event that caused the value.
    pub fn wait<T>(&self, deadline: i64, mut done: impl FnMut() -> Option<T>) -> Outcome<T> {
        loop {
            if let Some(value) = done() {
                return Ok(value);
            }
            let Some(due) = self.step(deadline) else {
                if deadline == TB_FOREVER {
                    return fail(TB_EWOULDBLOCK, "no message is on its way: this wait would never end in virtual time");
                }
                let mut state = lock(&self.state);
                state.now = state.now.max(deadline);
                return fail(TB_ETIMEDOUT, "no sample arrived until the deadline");
            };
            let mut state = lock(&self.state);
            state.now = state.now.max(due);
        }
    }

    /// Advances the virtual time to the next event or, if there is no event, by a short time (one iteration of a
    /// polling reader).
    pub fn spin(&self) {
        let due = self.step(i64::MAX);
        let mut state = lock(&self.state);
        state.now = due.map_or(state.now + IDLE_POLL_NS, |due| state.now.max(due));
    }

    /// Runs the next event that is due by `deadline`, and returns the time of the event.
    fn step(&self, deadline: i64) -> Option<i64> {
        let mut state = lock(&self.state);
        let event = loop {
            if state.events.peek().is_none_or(|Reverse(e)| e.due > deadline) {
                return None;
            }
            let Reverse(mut event) = state.events.pop()?;
            let free = event.reader.busy_until.load(Ordering::Relaxed) as i64;
            if free <= event.due {
                break event;
            }
            event.due = free; // the listener is still at an earlier sample
            state.events.push(Reverse(event));
        };
        let resume = (state.now, state.jump.take());
        state.now = event.due;
        if event.reader.queue.is_none() && event.reader.direction == Direction::Out {
            let stalled = state.since_first_send(event.due).map(|t| state.script.turnaround_held_until(t) - t);
            state.jump = stalled.filter(|d| *d > 0).map(|d| Jump { to: event.due + d, read_once: false });
        }
        let mut view = tb_view {
            seq: event.seq,
            data: event.payload.as_ptr(),
            len: event.payload.len() as u64,
            writer: event.writer,
            ..tb_view::default()
        };
        if event.reader.timestamps {
            (view.source_ns, view.kernel_rx_ns) = (event.source_ns, event.kernel_rx_ns);
        }
        drop(state);
        event.reader.deliver(&view);
        let mut state = lock(&self.state);
        if event.reader.queue.is_none() {
            event.reader.busy_until.store(state.now as u64, Ordering::Relaxed);
        }
        (state.now, state.jump) = resume;
        Some(event.due)
    }
}

unsafe extern "C" fn clock_now(ctx: *mut c_void) -> i64 {
    // SAFETY: `ctx` is a world, which is never freed.
    unsafe { &*ctx.cast::<World>() }.now()
}

unsafe extern "C" fn far_clock_now(ctx: *mut c_void) -> i64 {
    // SAFETY: `ctx` is a world, which is never freed.
    unsafe { &*ctx.cast::<World>() }.far_now()
}

unsafe extern "C" fn clock_sleep_until(ctx: *mut c_void, deadline_ns: i64) {
    // SAFETY: `ctx` is a world, which is never freed.
    unsafe { &*ctx.cast::<World>() }.sleep_until(deadline_ns);
}

unsafe extern "C" fn clock_realtime(ctx: *mut c_void) -> i64 {
    // SAFETY: `ctx` is a world, which is never freed.
    let state = lock(&unsafe { &*ctx.cast::<World>() }.state);
    state.realtime(state.now)
}
