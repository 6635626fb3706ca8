//! The side of a pong whose clock is not the clock of the ping.
//!
//! The pong's times are converted to the clock of the ping by one line (offset and drift) of those that the times of the
//! messages permit, and its threads and CPUs get ids that no thread and no CPU of the ping's host has. After that, all
//! events are those of one host. What depends on the choice of the line is found by converting with other lines too.

use crate::clocks::{Clocks, Legs, OWN};
use crate::why::stamps::Stamps;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tailbound_document::OtherClock;
use tailbound_model::{CounterSeries, CpuList, SwitchEvent, SwitchKind, SwitchScope, Switches};
use tailbound_stats::{ClockBounds, ClockLine};

/// Distance of the ids of the pong's threads from the kernel's, if the pong has another clock. The kernel gives no id above
/// 4,194,304 (PID_MAX_LIMIT).
const THREADS: i32 = 1 << 24;
/// Distance of the numbers of the pong's CPUs from the kernel's, which has at most 8,192 CPUs (NR_CPUS).
const CPUS: u32 = 1 << 16;

/// How the times of the pong of a trial relate to those of the ping.
#[derive(Debug)]
pub(crate) enum Pong {
    /// The pong has the clock of the ping.
    SameClock,
    /// The pong has another clock, and the difference between the clocks has these bounds.
    Bounded(ClockBounds),
    /// The pong has another clock, and its side is not followed for this reason, in words without a full stop.
    NotFollowed(String),
}

/// Events and times of a trial, all in the clock of the ping.
pub(crate) struct View<'a> {
    pub seen: Cow<'a, [Switches]>,
    /// Times of the messages, by row number.
    pub messages: Cow<'a, BTreeMap<u64, Stamps>>,
}

impl Pong {
    /// How the times of the pong end of a trial relate to those of the ping end. `seen`: the events that the agents of the
    /// trial recorded.
    pub fn of(clocks: &Clocks, trial: usize, seen: &[Switches]) -> Pong {
        let bounds = match clocks.legs(trial) {
            Legs::Exact => return Pong::SameClock,
            Legs::Bounded(bounds) => match bounds.clocks.whole() {
                Some(bounds) => bounds.clone(),
                None => {
                    let why = "one of the clocks of ping and pong changed during the trial";
                    return Pong::NotFollowed(why.to_owned());
                }
            },
            Legs::Unknown => {
                return Pong::NotFollowed("the difference between the clocks of ping and pong is not known".to_owned());
            }
        };
        let without = "no events were recorded at the pong".to_owned();
        match seen.iter().find(|s| !is_of_ping(s)).map(|s| &s.scope) {
            None | Some(SwitchScope::Off) => Pong::NotFollowed(without),
            Some(SwitchScope::Nothing(why)) => Pong::NotFollowed(format!("{without}: {why}")),
            Some(_) => Pong::Bounded(bounds),
        }
    }

    /// True if the times of the pong are known, exactly or within bounds.
    pub fn is_followed(&self) -> bool {
        !matches!(self, Pong::NotFollowed(_))
    }

    /// The line with which the pong's times are converted; `None` if nothing is converted.
    pub fn middle(&self) -> Option<ClockLine> {
        match self {
            Pong::Bounded(bounds) => Some(bounds.middle()),
            _ => None,
        }
    }

    /// The lines at the borders of what is possible at these times, ns.
    pub fn extremes(&self, at_ns: impl Iterator<Item = i64>) -> Vec<ClockLine> {
        match self {
            Pong::Bounded(bounds) => bounds.extremes(at_ns),
            _ => Vec::new(),
        }
    }

    /// All events and times in the clock of the ping, if those of the pong are converted with this line.
    pub fn view<'a>(line: Option<&ClockLine>, seen: &'a [Switches], messages: &'a BTreeMap<u64, Stamps>) -> View<'a> {
        let Some(line) = line else { return View { seen: seen.into(), messages: Cow::Borrowed(messages) } };
        let one = |s: &Switches| if is_of_ping(s) { s.clone() } else { converted(s, line) };
        let echoed = |stamps: &Stamps| Stamps {
            echo: stamps.echo.map(|times| times.map(|at| line.at_a_ns(at))),
            receivers: [stamps.receivers[0].map(id_of_pong), stamps.receivers[1]],
            ..*stamps
        };
        let messages = messages.iter().map(|(row, stamps)| (*row, echoed(stamps))).collect();
        View { seen: seen.iter().map(one).collect(), messages: Cow::Owned(messages) }
    }

    /// Smallest and largest time by which an event of the pong that is shown between two times can have been later than
    /// shown, ns; `None` if nothing is converted.
    pub fn shift_ns(&self, (from_ns, to_ns): (i64, i64)) -> Option<[i64; 2]> {
        let (Pong::Bounded(bounds), Some(line)) = (self, self.middle()) else { return None };
        let one = |at_ns: i64| {
            let at_pong_ns = line.at_b_ns(at_ns);
            bounds.at_a_ns(at_pong_ns).map(|at| at.wrapping_sub(at_ns))
        };
        let (begin, end) = (one(from_ns), one(to_ns));
        Some([begin[0].min(end[0]), begin[1].max(end[1])])
    }

    /// What a report says about the clock of the pong between two times; `None` if the pong has the clock of the ping.
    pub fn report(&self, span: (i64, i64)) -> Option<OtherClock> {
        let width_ns = self.shift_ns(span).map(|[low, high]| high - low);
        match self {
            Pong::SameClock => None,
            Pong::Bounded(_) => Some(OtherClock { width_ns, not_followed: None }),
            Pong::NotFollowed(why) => Some(OtherClock { width_ns, not_followed: Some(why.clone()) }),
        }
    }
}

/// Whether the agent of the ping recorded these events.
pub(crate) fn is_of_ping(seen: &Switches) -> bool {
    seen.ends.iter().any(|end| end == OWN)
}

/// The id that stands for a thread of the pong. The idle thread and threads without an id keep theirs.
pub(crate) fn id_of_pong(thread: i32) -> i32 {
    if thread > 0 { thread + THREADS } else { thread }
}

/// The number that stands for a CPU of the pong's host.
pub(crate) fn cpu_of_pong(cpu: u32) -> u32 {
    cpu + CPUS
}

/// The kernel's id of a thread of either end.
pub(crate) fn kernel_id(thread: i32) -> i32 {
    if thread > THREADS { thread - THREADS } else { thread }
}

/// The kernel's number of a CPU of either end.
pub(crate) fn kernel_cpu(cpu: u32) -> u32 {
    if cpu >= CPUS { cpu - CPUS } else { cpu }
}

/// The events of the pong in the clock of the ping, with the ids that stand for its threads and CPUs.
fn converted(seen: &Switches, line: &ClockLine) -> Switches {
    let mut seen = seen.clone();
    seen.convert_times(|at_ns| line.at_a_ns(at_ns));
    if let SwitchScope::Cpus(cpus) = &mut seen.scope {
        *cpus = CpuList(cpus.0.iter().copied().map(cpu_of_pong).collect());
    }
    seen.events.iter_mut().chain(seen.away.iter_mut().map(|away| &mut away.event)).for_each(of_pong);
    seen.tasks = seen.tasks.into_iter().map(|(thread, task)| (id_of_pong(thread), task)).collect();
    for series in &mut seen.counters {
        if let Some(thread) = series.of.strip_prefix("thread ").and_then(|id| id.parse().ok()) {
            series.of = format!("thread {}", id_of_pong(thread));
        } else if let Some(cpu) = series.of.strip_prefix("cpu ").and_then(|cpu| cpu.parse::<u32>().ok()) {
            series.of = CounterSeries::of_cpu(cpu_of_pong(cpu));
        }
    }
    if let Some(packets) = &mut seen.packets {
        for hop in packets.hops.iter_mut().chain(&mut packets.drops) {
            (hop.cpu, hop.thread) = (cpu_of_pong(hop.cpu), id_of_pong(hop.thread));
        }
        packets.reads.iter_mut().for_each(|read| read.thread = id_of_pong(read.thread));
    }
    seen
}

/// Changes the ids of an event of the pong's host.
fn of_pong(event: &mut SwitchEvent) {
    event.cpu = cpu_of_pong(event.cpu);
    match &mut event.what {
        SwitchKind::Switch { out: one, into: two, .. } | SwitchKind::Wake { thread: one, by: two, .. } => {
            (*one, *two) = (id_of_pong(*one), id_of_pong(*two));
        }
        SwitchKind::In(thread)
        | SwitchKind::Out { thread, .. }
        | SwitchKind::PageFault { thread, .. }
        | SwitchKind::FairServer { thread }
        | SwitchKind::Limited { thread, .. } => {
            *thread = id_of_pong(*thread);
        }
        SwitchKind::Moved { thread, to } => (*thread, *to) = (id_of_pong(*thread), cpu_of_pong(*to)),
        SwitchKind::Interrupted { .. } => {}
    }
}
