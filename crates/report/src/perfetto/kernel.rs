//! The recorded events of the kernel as ftrace events, from which the viewer draws CPUs, threads and interrupts.
//!
//! The viewer draws a thread on a CPU from one context switch to the next one. Between two recorded time spans, and
//! where the kernel did not report a switch, this would be wrong. Context switches to and from a thread with the name
//! "not recorded" are therefore added: at the end and at the begin of each time span, and around the time in which an
//! unreported switch must have happened.

use crate::perfetto::machines::CPUS;
use crate::perfetto::names::{Names, not_recorded};
use crate::perfetto::packets::{Packets, time};
use crate::perfetto::schema::{
    Ftrace, FtraceEvent, FtraceEventBundle, IrqEntry, IrqExit, SchedMigrateTask, SchedSwitch, SchedWaking, Softirq,
    TracePacket,
};
use crate::perfetto::spans::{Span, joined, meeting, without};
use crate::perfetto::wakes::Wakes;
use std::collections::BTreeMap;
use std::io;
use tailbound_model::{Interruption, SleepState, SwitchEvent, SwitchKind, SwitchScope, Switches};

/// Largest number of events in one packet.
const MOST_IN_PACKET: usize = 1_000;

/// States of a thread that left its CPU, as the tracepoint `sched_switch` reports them.
const RUNNABLE: i64 = 0x00;
const INTERRUPTIBLE: i64 = 0x01;
const UNINTERRUPTIBLE: i64 = 0x02;
const STOPPED: i64 = 0x04;
const DEAD: i64 = 0x10;
/// A state that no kernel since 4.14 reports: the viewer shows it as unknown.
const UNKNOWN: i64 = 0x400;

/// Return value of the handler of an interrupt. The record does not have it; without a value the viewer would show each
/// interrupt as not handled.
const HANDLED: i32 = 1;
/// Flags of a wake-up that an interrupt caused.
const FROM_INTERRUPT: u32 = 0x08;
const FROM_SOFTIRQ: u32 = 0x10;

/// Numbers about the events of a trial that were written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// Context switches that the kernel must have made and did not report.
    pub unreported: u64,
    /// Recorded events that were left out, because the viewer does not have their CPU.
    pub beyond: u64,
}

/// An event of a CPU with its place among the events of the same time.
struct Placed {
    at_ns: i64,
    rank: u8,
    event: FtraceEvent,
}

/// Ends of interrupts come first, and begins of interrupts come last, so that interrupts lie inside each other.
const ENDS: u8 = 0;
const BETWEEN: u8 = 1;
const BEGINS: u8 = 2;
const ENDS_AT_ONCE: u8 = 3;

/// Writes the events that one machine recorded in a trial, CPU by CPU.
pub(super) fn write(packets: &mut Packets, names: &Names, seen: &[Switches]) -> io::Result<Written> {
    let mut written = Written::default();
    let mut cpus: BTreeMap<u32, Course> = BTreeMap::new();
    let mut covered: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    let mut wakes = Wakes::default();
    for agent in seen {
        let mut events: BTreeMap<u32, Vec<&SwitchEvent>> = BTreeMap::new();
        let new = agent.events.iter().filter(|event| !wakes.has(event));
        new.for_each(|event| events.entry(event.cpu).or_default().push(event));
        let windows = joined(agent.windows.iter().copied());
        for (cpu, events) in events {
            if cpu >= CPUS {
                written.beyond += events.len() as u64;
                continue;
            }
            let spans = without(&windows, covered.get(&cpu).map_or(&[], Vec::as_slice));
            let course = cpus.entry(cpu).or_insert_with(|| Course::of(cpu, names));
            course.add(&events, &spans);
        }
        wakes.add(&agent.events);
        // Two agents that record the same CPU see the same events of this CPU. Wake-ups and moves can be those of
        // different threads.
        if let SwitchScope::Cpus(watched) = &agent.scope {
            for cpu in &watched.0 {
                let before = covered.remove(cpu).unwrap_or_default();
                covered.insert(*cpu, joined(before.into_iter().chain(windows.iter().copied())));
            }
        }
    }
    let gaps = joined(seen.iter().flat_map(|s| s.gaps.iter().copied()));
    for (cpu, course) in cpus {
        written.unreported += course.unreported;
        course.write(packets, cpu, &gaps)?;
    }
    Ok(written)
}

/// The events of one CPU.
struct Course<'a> {
    cpu: u32,
    names: &'a Names,
    placed: Vec<Placed>,
    /// Thread that has the CPU; `None` if it is not recorded.
    running: Option<i32>,
    /// Time at which this thread got the CPU, or last woke another thread there, ns.
    ran_ns: i64,
    /// Time since which it is not recorded which thread has the CPU, ns.
    unknown_since_ns: i64,
    unreported: u64,
}

impl<'a> Course<'a> {
    fn of(cpu: u32, names: &'a Names) -> Course<'a> {
        Course { cpu, names, placed: Vec::new(), running: None, ran_ns: 0, unknown_since_ns: 0, unreported: 0 }
    }

    /// Adds the events of an agent: wake-ups and moves, and all other events within these time spans.
    fn add(&mut self, events: &[&SwitchEvent], spans: &[Span]) {
        (self.running, self.unknown_since_ns) = (None, i64::MIN);
        let mut at_span = 0;
        for event in events {
            while spans.get(at_span).is_some_and(|(_, end)| *end < event.at_ns) {
                self.close(spans[at_span].1);
                at_span += 1;
            }
            let begin_ns = spans.get(at_span).map(|(begin, _)| *begin).filter(|begin| *begin <= event.at_ns);
            if let Some(begin_ns) = begin_ns {
                self.unknown_since_ns = self.unknown_since_ns.max(begin_ns);
            }
            match event.what {
                SwitchKind::Wake { .. } | SwitchKind::Moved { .. } => self.of_thread(event),
                SwitchKind::Interrupted { by, ns } => {
                    let end_ns = event.at_ns.saturating_add(i64::from(ns));
                    if meeting(spans, event.at_ns, end_ns).is_some() {
                        self.interrupted(event.at_ns, end_ns, by);
                    }
                }
                // These have no ftrace event, or none with an end.
                SwitchKind::PageFault { .. }
                | SwitchKind::Reclaim { .. }
                | SwitchKind::NoTick { .. }
                | SwitchKind::Frequency { .. }
                | SwitchKind::FairServer { .. }
                | SwitchKind::Limited { .. } => {}
                _ if begin_ns.is_none() => {}
                SwitchKind::Switch { out, into, preempted, state, .. } => {
                    // Perf events report a thread that ends without its id.
                    let out = self.running.filter(|_| out < 0).unwrap_or(out);
                    self.expect(out, event.at_ns);
                    self.switch(event.at_ns, (out, state_of(preempted, state)), into);
                    (self.running, self.ran_ns) = (Some(into), event.at_ns);
                }
                SwitchKind::In(thread) if self.running == Some(thread) => {}
                SwitchKind::In(thread) => {
                    self.lose();
                    self.switch(event.at_ns, (not_recorded(self.cpu), RUNNABLE), thread);
                    (self.running, self.ran_ns) = (Some(thread), event.at_ns);
                }
                SwitchKind::Out { thread, preempted } => {
                    self.expect(thread, event.at_ns);
                    self.switch(event.at_ns, (thread, state_of(preempted, None)), not_recorded(self.cpu));
                    (self.running, self.unknown_since_ns) = (None, event.at_ns);
                }
            }
        }
        spans[at_span.min(spans.len())..].first().into_iter().for_each(|(_, end)| self.close(*end));
    }

    /// Ends a recorded time span.
    fn close(&mut self, end_ns: i64) {
        if let Some(running) = self.running.take() {
            self.switch(end_ns, (running, UNKNOWN), not_recorded(self.cpu));
        }
        self.unknown_since_ns = end_ns;
    }

    /// Adds context switches if the record does not say that `thread`, which leaves the CPU at this time, had it.
    fn expect(&mut self, thread: i32, at_ns: i64) {
        if self.running == Some(thread) {
            return;
        }
        let since_ns = if self.running.is_some() { at_ns } else { self.unknown_since_ns };
        self.lose();
        self.switch(since_ns, (not_recorded(self.cpu), RUNNABLE), thread);
    }

    /// Ends the time for which it is known which thread has the CPU, if it is: the kernel did not report that this
    /// thread left the CPU.
    fn lose(&mut self) {
        if let Some(running) = self.running.take() {
            self.unreported += 1;
            self.switch(self.ran_ns, (running, UNKNOWN), not_recorded(self.cpu));
        }
    }

    fn switch(&mut self, at_ns: i64, (out, state): (i32, i64), into: i32) {
        let event = SchedSwitch {
            prev_comm: Some(self.names.comm(out, self.cpu)),
            prev_pid: Some(out),
            prev_prio: self.names.prio(out),
            prev_state: Some(state),
            next_comm: Some(self.names.comm(into, self.cpu)),
            next_pid: Some(into),
            next_prio: self.names.prio(into),
        };
        self.place(at_ns, BETWEEN, out, 0, Ftrace::SchedSwitch(event));
    }

    /// Adds a wake-up or a move of a thread.
    fn of_thread(&mut self, event: &SwitchEvent) {
        match event.what {
            SwitchKind::Wake { thread, by, interrupt, packet, .. } => {
                if !interrupt && self.running == Some(by) {
                    self.ran_ns = event.at_ns;
                }
                let flags = match (packet, interrupt) {
                    (true, _) => FROM_SOFTIRQ,
                    (_, true) => FROM_INTERRUPT,
                    _ => 0,
                };
                let (comm, prio) = (Some(self.names.comm(thread, event.cpu)), self.names.prio(thread));
                let waking = SchedWaking { comm, pid: Some(thread), prio };
                self.place(event.at_ns, BETWEEN, by, flags, Ftrace::SchedWaking(waking));
            }
            SwitchKind::Moved { thread, to } => {
                let (comm, prio) = (Some(self.names.comm(thread, event.cpu)), self.names.prio(thread));
                let dest_cpu = i32::try_from(to).ok();
                let moved = SchedMigrateTask { comm, pid: Some(thread), prio, dest_cpu };
                let running = self.running.unwrap_or(not_recorded(self.cpu));
                self.place(event.at_ns, BETWEEN, running, 0, Ftrace::SchedMigrateTask(moved));
            }
            _ => {}
        }
    }

    fn interrupted(&mut self, begin_ns: i64, end_ns: i64, by: Interruption) {
        let irq = |number: u32, name: String| {
            let irq = i32::try_from(number).ok();
            let entry = Ftrace::IrqHandlerEntry(IrqEntry { irq, name: Some(name) });
            (entry, Ftrace::IrqHandlerExit(IrqExit { irq, ret: Some(HANDLED) }))
        };
        let (entry, exit) = match by {
            Interruption::Irq(number) => irq(number, format!("irq {number}")),
            Interruption::Vector(number) => irq(number, format!("vector {number}")),
            Interruption::Softirq(number) => {
                let softirq = Softirq { vec: Some(number) };
                (Ftrace::SoftirqEntry(softirq), Ftrace::SoftirqExit(softirq))
            }
        };
        let running = self.running.unwrap_or(not_recorded(self.cpu));
        self.place(begin_ns, BEGINS, running, 0, entry);
        self.place(end_ns, if end_ns > begin_ns { ENDS } else { ENDS_AT_ONCE }, running, 0, exit);
    }

    fn place(&mut self, at_ns: i64, rank: u8, current: i32, flags: u32, event: Ftrace) {
        let event = FtraceEvent {
            timestamp: Some(time(at_ns)),
            // A thread without a visible id is -1 here too.
            pid: Some(current.cast_unsigned()),
            common_flags: Some(flags).filter(|flags| *flags > 0),
            event: Some(event),
        };
        self.placed.push(Placed { at_ns, rank, event });
    }

    /// Writes the events in the order of time. The first packet after a gap says that events were lost.
    fn write(mut self, packets: &mut Packets, cpu: u32, gaps: &[Span]) -> io::Result<()> {
        self.placed.sort_by_key(|placed| (placed.at_ns, placed.rank));
        let mut bundle = FtraceEventBundle { cpu: Some(cpu), ..FtraceEventBundle::default() };
        let mut gaps = gaps.iter().peekable();
        for Placed { at_ns, event, .. } in self.placed {
            let lost = std::iter::from_fn(|| gaps.next_if(|(_, end)| *end <= at_ns)).count() > 0;
            if lost || bundle.event.len() == MOST_IN_PACKET {
                send(packets, &mut bundle)?;
            }
            if lost {
                bundle.lost_events = Some(true);
            }
            bundle.event.push(event);
        }
        send(packets, &mut bundle)
    }
}

fn send(packets: &mut Packets, bundle: &mut FtraceEventBundle) -> io::Result<()> {
    if bundle.event.is_empty() {
        return Ok(());
    }
    let next = FtraceEventBundle { cpu: bundle.cpu, ..FtraceEventBundle::default() };
    let full = std::mem::replace(bundle, next);
    packets.write(TracePacket { ftrace_events: Some(full), ..TracePacket::default() })
}

/// State of a thread that left its CPU. The kernel's tracepoint does not say for what a thread waits. A thread that was
/// not ready, and whose state was not recorded, is shown as sleeping.
fn state_of(preempted: bool, state: Option<SleepState>) -> i64 {
    match state {
        _ if preempted => RUNNABLE,
        None | Some(SleepState::Interruptible) => INTERRUPTIBLE,
        Some(SleepState::Stopped) => STOPPED,
        Some(SleepState::Ended) => DEAD,
        Some(_) => UNINTERRUPTIBLE,
    }
}
