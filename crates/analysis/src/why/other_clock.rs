//! Recordings in other clocks than the ping's: of the pong, and of the host of the guests in which the ends run.
//!
//! The pong's times are converted to the clock of the ping by one line (offset and drift) of those that the times of the
//! messages permit, and the host's times by one of those that readings of both clocks permit. Threads and CPUs of the pong and
//! of the host get ids that no thread and no CPU of the ping's machine has. After that, all events look as if one machine had recorded them.
//! What depends on the choice of the lines is found by converting with other lines too.

use crate::clocks::{Clocks, Legs, OWN};
use crate::why::stamps::Stamps;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tailbound_document::OtherClock;
use tailbound_model::{SwitchScope, Switches};
use tailbound_record::bounds_of_readings;
use tailbound_stats::{ClockBounds, ClockLine};

/// Distance of the ids of a machine's threads from the ids of the machine before. The kernel gives no id above 4,194,304
/// (PID_MAX_LIMIT).
const THREADS: i32 = 1 << 24;
/// Distance of the numbers of a machine's CPUs from the numbers of the machine before. A kernel has at most 8,192 CPUs (NR_CPUS).
const CPUS: u32 = 1 << 16;

/// A machine whose events were recorded, if the machines have different clocks. With one clock, all threads and CPUs
/// belong to the ping's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Machine {
    /// The machine of the ping.
    Ping,
    /// The machine of the pong.
    Pong,
    /// The host of the guests in which the ends run.
    Host,
}

impl Machine {
    /// The id that stands for a thread of this machine. The idle thread and threads without an id keep theirs.
    pub fn thread(self, thread: i32) -> i32 {
        if thread > 0 { thread.saturating_add(THREADS * self as i32) } else { thread }
    }

    /// The number that stands for a CPU of this machine.
    pub(crate) fn cpu(self, cpu: u32) -> u32 {
        cpu + CPUS * self as u32
    }

    /// The machine that has the CPU for which this number stands.
    pub(crate) fn of_cpu(cpu: u32) -> Machine {
        match cpu / CPUS {
            0 => Machine::Ping,
            1 => Machine::Pong,
            _ => Machine::Host,
        }
    }

    /// The machine that has the thread for which this id stands.
    pub fn of_thread(thread: i32) -> Machine {
        match thread.max(0) / THREADS {
            0 => Machine::Ping,
            1 => Machine::Pong,
            _ => Machine::Host,
        }
    }
}

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

/// The lines with which the times of the pong and of the host of guests are converted; `None` if nothing is converted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lines {
    pub pong: Option<ClockLine>,
    pub host: Option<ClockLine>,
}

impl Lines {
    /// The lines in the middle of what is possible.
    pub fn middle(pong: &Pong, host: Option<&ClockBounds>) -> Lines {
        Lines { pong: pong.bounds().map(ClockBounds::middle), host: host.map(ClockBounds::middle) }
    }

    /// The lines at the borders of what is possible at these times, ns, each of the pong with each of the host.
    pub fn extremes(pong: &Pong, host: Option<&ClockBounds>, times_ns: &[i64]) -> Vec<Lines> {
        let of = |bounds: Option<&ClockBounds>| match bounds {
            Some(bounds) => bounds.extremes(times_ns.iter().copied()).into_iter().map(Some).collect(),
            None => vec![None],
        };
        let of_host: Vec<Option<ClockLine>> = of(host);
        let each =
            of(pong.bounds()).into_iter().flat_map(|pong| of_host.iter().map(move |host| Lines { pong, host: *host }));
        each.filter(|lines| lines.pong.is_some() || lines.host.is_some()).collect()
    }
}

/// Events and times of a trial, all in the clock of the ping.
pub(crate) struct View<'a> {
    pub seen: Cow<'a, [Switches]>,
    /// Times of the messages, by row number.
    pub messages: Cow<'a, BTreeMap<u64, Stamps>>,
}

impl<'a> View<'a> {
    /// All events and times in the clock of the ping, if the others are converted with these lines.
    pub fn of(lines: &Lines, seen: &'a [Switches], messages: &'a BTreeMap<u64, Stamps>) -> View<'a> {
        let one = |s: &Switches| match (lines.pong, lines.host) {
            (_, Some(line)) if s.host.is_some() => converted(s, Machine::Host, &line),
            (Some(line), _) if !is_of_ping(s) => converted(s, Machine::Pong, &line),
            _ => s.clone(),
        };
        let is_any = lines.pong.is_some() || lines.host.is_some();
        let seen = if is_any { seen.iter().map(one).collect() } else { seen.into() };
        let Some(line) = lines.pong else { return View { seen, messages: Cow::Borrowed(messages) } };
        let echoed = |stamps: &Stamps| Stamps {
            echo: stamps.echo.map(|times| times.map(|at| line.at_a_ns(at))),
            receivers: [stamps.receivers[0].map(|thread| Machine::Pong.thread(thread)), stamps.receivers[1]],
            ..*stamps
        };
        let messages = messages.iter().map(|(row, stamps)| (*row, echoed(stamps))).collect();
        View { seen, messages: Cow::Owned(messages) }
    }
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
        match seen.iter().find(|s| !is_of_ping(s) && s.host.is_none()).map(|s| &s.scope) {
            None | Some(SwitchScope::Off) => Pong::NotFollowed(without),
            Some(SwitchScope::Nothing(why)) => Pong::NotFollowed(format!("{without}: {why}")),
            Some(_) => Pong::Bounded(bounds),
        }
    }

    /// The same, unless both ends have different clocks and the guest of this end was paused, so that its clock can have stood still: no
    /// two clocks with a constant drift describe the trial then, also if its messages permit some.
    pub fn unless_stopped(self, end: Option<&str>) -> Pong {
        match (self, end) {
            (Pong::SameClock, _) => Pong::SameClock,
            (_, Some(end)) => Pong::NotFollowed(format!(
                "the guest of the {end} was paused, and its clock may have stood still meanwhile"
            )),
            (pong, _) => pong,
        }
    }

    /// True if the times of the pong are known, exactly or within bounds.
    pub fn is_followed(&self) -> bool {
        !matches!(self, Pong::NotFollowed(_))
    }

    fn bounds(&self) -> Option<&ClockBounds> {
        match self {
            Pong::Bounded(bounds) => Some(bounds),
            _ => None,
        }
    }

    /// Smallest and largest time by which an event of the pong that is shown between two times can have been later than
    /// shown, ns; `None` if nothing is converted.
    pub fn shift_ns(&self, (from_ns, to_ns): (i64, i64)) -> Option<[i64; 2]> {
        let bounds = self.bounds()?;
        let line = bounds.middle();
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

/// Bounds of the difference between the clocks of the ping and of the host of the guests in which the ends run; `None` if the host
/// was not recorded, or if there are no bounds.
pub(crate) fn host_clock(seen: &[Switches]) -> Option<ClockBounds> {
    bounds_of_readings(&seen.iter().find_map(|s| s.host.as_ref())?.ping_clock).ok()
}

/// Whether the agent of the ping recorded these events.
pub(crate) fn is_of_ping(seen: &Switches) -> bool {
    seen.ends.iter().any(|end| end == OWN)
}

/// The kernel's id of a thread.
pub(crate) fn kernel_id(thread: i32) -> i32 {
    if thread > 0 { thread % THREADS } else { thread }
}

/// The kernel's number of a CPU.
pub(crate) fn kernel_cpu(cpu: u32) -> u32 {
    cpu % CPUS
}

/// The events of a machine in the clock of the ping, with the ids that stand for its threads and CPUs.
fn converted(seen: &Switches, machine: Machine, line: &ClockLine) -> Switches {
    let mut seen = seen.clone();
    seen.convert_times(|at_ns| line.at_a_ns(at_ns));
    seen.convert_ids(|thread| machine.thread(thread), |cpu| machine.cpu(cpu));
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{ClockReading, CpuList, HostOfGuests, SwitchEvent, SwitchKind, Task};

    #[test]
    fn events_of_the_host_of_guests_are_converted_with_ids_of_their_own() {
        // The clock of the host is ahead by 5 s; a reading takes 2 us.
        let reading = |ping_ns| ClockReading {
            before_ns: 5_000_000_000 + ping_ns - 1_000,
            other_ns: ping_ns,
            after_ns: 5_000_000_000 + ping_ns + 1_000,
        };
        let ping_clock = [0, 1_000_000_000].map(reading).to_vec();
        let what = SwitchKind::In(7);
        let task = Task { name: "qemu".into(), policy: None, process: None, kernel: false };
        let of_host = Switches {
            host: Some(HostOfGuests { name: "h".into(), ping_clock }),
            scope: SwitchScope::Cpus(CpuList::one(1)),
            events: vec![SwitchEvent { at_ns: 5_500_000_000, cpu: 1, what }],
            tasks: [(7, task)].into(),
            ..Switches::default()
        };
        let of_ends = |end: &str| Switches {
            ends: vec![end.into()],
            events: vec![SwitchEvent { at_ns: 500, cpu: 1, what }],
            ..Switches::default()
        };
        let seen = [of_ends("ping"), of_ends("pong"), of_host];
        let (bounds, messages) = (host_clock(&seen), BTreeMap::new());
        let shown = |lines: &Lines| {
            let view = View::of(lines, &seen, &messages);
            let events = view.seen.iter().flat_map(|s| &s.events).map(|e| (e.at_ns, e.cpu, e.what));
            (events.collect::<Vec<_>>(), view.seen[2].tasks.contains_key(&Machine::Host.thread(7)))
        };
        let (events, has_name) = shown(&Lines::middle(&Pong::SameClock, bounds.as_ref()));
        assert_eq!(events[..2], [(500, 1, what); 2]);
        let (at_ns, cpu, what) = events[2];
        assert_eq!((cpu, what), (Machine::Host.cpu(1), SwitchKind::In(Machine::Host.thread(7))));
        assert!(has_name && (499_999_000..=500_001_000).contains(&at_ns), "{at_ns}");
        assert_eq!((kernel_cpu(cpu), kernel_id(Machine::Host.thread(7))), (1, 7));
        assert_eq!((Machine::of_cpu(cpu), Machine::of_thread(Machine::Pong.thread(7))), (Machine::Host, Machine::Pong));
        // The possible lines give times on both sides.
        let all = Lines::extremes(&Pong::SameClock, bounds.as_ref(), &[500_000_000]);
        let times: Vec<i64> = all.iter().map(|lines| shown(lines).0[2].0).collect();
        assert!(times.iter().any(|at| *at < 500_000_000) && times.iter().any(|at| *at > 500_000_000), "{times:?}");
        assert!(Lines::extremes(&Pong::SameClock, None, &[0]).is_empty());
    }
}
