//! The machines of a trace. The viewer has one clock, one set of CPUs and one set of thread ids: what was recorded on another
//! machine than the ping's gets the ping's clock, higher CPU numbers than the other machines, and thread ids of its own.
//!
//! Input: bounds of the difference between two clocks. Output: converted events and thread tables, and a sentence that says
//! by how much their times can be wrong.

use crate::perfetto::spans::Span;
use std::cell::Cell;
use tailbound_analysis::Machine;
use tailbound_document::number::count;
use tailbound_model::{Nanos, SwitchEvent, SwitchKind, SwitchScope, Switches, ThreadTable};
use tailbound_stats::{ClockBounds, ClockLine};

/// Number of CPUs that the viewer has; it refuses a whole trace with a higher CPU number.
pub(super) const CPUS: u32 = 1_024;
/// The CPU numbers of each machine begin at a multiple of this number.
const STEP: u32 = 100;
/// The end whose clock all times of a report have.
pub(super) const OWN: &str = "ping";

/// The machine that recorded these events. `one_clock`: whether both ends have the same clock.
pub(super) fn machine_of(seen: &Switches, one_clock: bool) -> Machine {
    if seen.host.is_some() { Machine::Host } else { machine_of_ends(&seen.ends, one_clock) }
}

/// The machine on which these ends run.
pub(super) fn machine_of_ends(ends: &[String], one_clock: bool) -> Machine {
    if one_clock || ends.iter().any(|end| end == OWN) { Machine::Ping } else { Machine::Pong }
}

/// The numbers that the CPUs of each machine have in a trace. They are the same in all trials of the trace.
#[derive(Debug, Default)]
pub(super) struct CpuNumbers {
    /// The highest number of a recorded CPU of each machine, plus one. CPUs that the viewer does not have do not count.
    counts: [u32; 3],
}

impl CpuNumbers {
    /// Adds the CPUs in the events of a trial.
    pub fn add(&mut self, seen: &[Switches], one_clock: bool) {
        let destination = |event: &SwitchEvent| match event.what {
            SwitchKind::Moved { to, .. } => Some(to),
            _ => None,
        };
        for seen in seen {
            let watched = match &seen.scope {
                SwitchScope::Cpus(cpus) => Some(&cpus.0),
                _ => None,
            };
            let of_events = seen.events.iter().flat_map(|event| [Some(event.cpu), destination(event)]).flatten();
            let all = of_events.chain(watched.into_iter().flatten().copied()).filter(|cpu| *cpu < CPUS);
            let known = &mut self.counts[machine_of(seen, one_clock) as usize];
            *known = all.map(|cpu| cpu + 1).fold(*known, u32::max);
        }
    }

    /// The number of a machine's CPU 0.
    fn first(&self, machine: Machine) -> u32 {
        let after = |machine| (self.first(machine) + self.counts[machine as usize]).max(1).next_multiple_of(STEP);
        match machine {
            Machine::Ping => 0,
            Machine::Pong => after(Machine::Ping),
            Machine::Host => after(Machine::Pong),
        }
    }
}

/// How times, threads and CPUs of another machine are converted to the times, threads and CPUs of the trace.
#[derive(Debug)]
pub(super) struct Conversion {
    machine: Machine,
    first_cpu: u32,
    bounds: ClockBounds,
    line: ClockLine,
    /// The first and the last time that was converted, clock of the machine, ns.
    converted: Cell<Option<Span>>,
}

impl Conversion {
    /// The conversion of what this machine recorded; `bounds`: of the time by which its clock is ahead of the ping's clock.
    pub fn new(machine: Machine, bounds: ClockBounds, cpus: &CpuNumbers) -> Conversion {
        let line = bounds.middle();
        Conversion { machine, first_cpu: cpus.first(machine), bounds, line, converted: Cell::new(None) }
    }

    /// The time of the ping's clock, in the middle of what is possible, at a time of the machine's clock, ns.
    pub fn at_ns(&self, at_ns: i64) -> i64 {
        let (first, last) = self.converted.get().unwrap_or((at_ns, at_ns));
        self.converted.set(Some((first.min(at_ns), last.max(at_ns))));
        self.line.at_a_ns(at_ns)
    }

    pub fn events(&self, seen: &mut Switches) {
        // None of these is drawn: how well their times are known says nothing about the trace.
        (seen.counters, seen.away, seen.packets) = (Vec::new(), Vec::new(), None);
        seen.host.iter_mut().for_each(|host| host.ping_clock.clear());
        seen.convert_times(|at_ns| self.at_ns(at_ns));
        seen.convert_ids(|thread| self.machine.thread(thread), |cpu| cpu.saturating_add(self.first_cpu));
    }

    pub fn table(&self, table: &mut ThreadTable) {
        table.pid = self.machine.thread(table.pid);
        table.before.iter_mut().chain(&mut table.after).for_each(|row| row.tid = self.machine.thread(row.tid));
    }

    /// The span of the converted times in the ping's clock, ns, and a sentence without a full stop that says what was
    /// converted and how; `None` if no time was converted.
    pub fn said(&self) -> Option<(Span, String)> {
        let (first_ns, last_ns) = self.converted.get()?;
        let span = (self.line.at_a_ns(first_ns), self.line.at_a_ns(last_ns));
        // The distance of the line from each possible line changes evenly, so that it is largest at an end.
        let possible = |at_ns| self.bounds.at_a_ns(at_ns);
        let wrong_by = |(at_ns, shown_ns): (i64, i64)| possible(at_ns).map(|ns| ns.abs_diff(shown_ns));
        let wrong_ns = [(first_ns, span.0), (last_ns, span.1)].into_iter().flat_map(wrong_by).max()?;
        // Rounded up, so that the sentence does not claim more than is known.
        let wrong = Nanos(i64::try_from(wrong_ns.next_multiple_of(1_000)).unwrap_or(i64::MAX));
        let what = match self.machine {
            Machine::Host => "what was recorded on the host of the guests",
            _ => "the pong's end",
        };
        let (cpus, threads) =
            (count(u64::from(self.first_cpu)), count(u64::from(self.machine.thread(1).unsigned_abs() - 1)));
        let text = format!(
            "times of {what} are converted to the clock of the ping and can be wrong by up to ± {wrong}; {cpus} is added to \
             the numbers of its CPUs, and {threads} to the ids of its processes and threads"
        );
        Some((span, text))
    }
}
