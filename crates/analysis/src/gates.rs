//! Compares the waits for gates that the schedules predict with the times of the messages.
//!
//! Input: for each trial, the schedule that the kernel reported, and the samples. Output: the table of predicted and measured
//! waits of each end with gates, and the messages that waited longest.

mod longest;

use crate::clocks::has_one_clock;
use crate::durations::Durations;
use longest::{Longest, Passed, worst_of};
use std::collections::BTreeMap;
use tailbound_document::{GateClassReport, GateLeft, GatePhase, GateReport, GateWaits, Message};
use tailbound_gates::{Gate, windows_of_classes};
use tailbound_model::{Condition, GatesSpec, Metric, NO_TIME, PathEnd, TrialSpec, counter_of};
use tailbound_record::{Columns, Departure, Departures, Record, RecordError, SlotBatch};

/// Number of parts into which the predicted waits are divided; messages that do not wait are a part of their own.
const PARTS: i64 = 4;
/// Number of parts into which a cycle is divided.
const PHASES: i64 = 200;

/// The waits for gates in these trials of a condition, for each end with gates; `worst`: the worst messages of the condition. In
/// trials whose ends have different clocks, a message counts only if its sender's stamps show when it left.
pub(crate) fn of(
    record: &Record,
    condition: &Condition,
    trials: &[usize],
    worst: &[Message],
) -> Result<Vec<GateReport>, RecordError> {
    let spec = &condition.spec;
    if spec.ping.gates.is_none() && spec.pong.gates.is_none() {
        return Ok(Vec::new());
    }
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    for trial in trials {
        let mut ways = Vec::new();
        for (end, gate) in of_trial(record, *trial, spec) {
            let classes = || classes(record, *trial, spec, &end);
            tables.entry(end.clone()).or_insert_with(|| Table::of(gate.clone(), classes()));
            ways.push(Way {
                trial: *trial,
                departures: Departures::of(record, *trial, &end)?,
                has_one_clock: has_one_clock(record, *trial),
                worst: worst_of(worst, *trial),
                launch_ns: if end == "ping" { record.manifest.launch_wait_ns(*trial) } else { 0 },
                end,
                gate,
            });
        }
        record.scan(*trial, &with_due(), &mut |batch| {
            for way in &ways {
                tables.entry(way.end.clone()).and_modify(|table| table.add(batch, way));
            }
        })?;
    }
    let named = |(end, table): (String, Table)| {
        let class = class_name(gates_of(spec, &end), table.gate.class() as usize);
        table.report(end, class)
    };
    // Without anything to compare, there is nothing to say about a gate.
    let filled = tables.into_iter().filter(|(_, table)| table.left.is_some() || !table.phases.is_empty());
    Ok(filled.map(named).collect())
}

/// What is known about all messages of an end in a trial.
struct Way {
    trial: usize,
    end: String,
    gate: Gate,
    departures: Departures,
    has_one_clock: bool,
    /// Time by which messages are due before their launch time lets them leave, ns.
    launch_ns: i64,
    /// Slots of the worst messages in this trial, and their places among the worst ones.
    worst: Vec<(u64, usize)>,
}

/// The gates of an end, as the study asks for them.
fn gates_of<'s>(spec: &'s TrialSpec, end: &str) -> Option<&'s GatesSpec> {
    if end == "ping" { spec.ping.gates.as_ref() } else { spec.pong.gates.as_ref() }
}

/// Name of a class in the study; its number if the study does not name it.
fn class_name(gates: Option<&GatesSpec>, class: usize) -> String {
    let named = gates.and_then(|gates| gates.classes.get(class));
    named.map_or_else(|| class.to_string(), |class| class.name.clone())
}

fn ends_of(record: &Record, trial: usize) -> &[PathEnd] {
    let done = record.manifest.trials.iter().find(|done| done.id == trial);
    done.and_then(|done| done.path.as_ref()).map_or(&[], |path| &path.ends)
}

/// The classes of the interface of an end in a trial.
fn classes(record: &Record, trial: usize, spec: &TrialSpec, end: &str) -> Vec<GateClassReport> {
    let fact = ends_of(record, trial).iter().find(|of| of.end == end).and_then(|of| of.gates.as_ref());
    let class = |(class, windows): (usize, tailbound_gates::Windows)| GateClassReport {
        name: class_name(gates_of(spec, end), class),
        open: windows.open.into_iter().map(|(from_ns, to_ns)| [from_ns as i64, to_ns as i64]).collect(),
    };
    fact.map_or_else(Vec::new, |fact| windows_of_classes(fact).into_iter().enumerate().map(class).collect())
}

/// The gates of the ends of a trial, each with the name of its end.
pub(crate) fn of_trial(record: &Record, trial: usize, spec: &TrialSpec) -> Vec<(String, Gate)> {
    Gate::of_ends(ends_of(record, trial), spec)
}

/// The columns that the ways of messages and answers need.
pub(crate) fn columns() -> Columns {
    Columns::of(&[Metric::Out, Metric::Turnaround, Metric::Back]).with_echo_begin()
}

/// The columns that the ways, the due times and the slots of messages need.
fn with_due() -> Columns {
    let metrics = [Metric::FromIntended, Metric::Out, Metric::Turnaround, Metric::Back];
    Columns::of(&metrics).with_echo_begin().with_seq()
}

/// The waits for one gate.
struct Table {
    gate: Gate,
    classes: Vec<GateClassReport>,
    longest: Longest,
    worst_wait_ns: i64,
    /// By the number of the part: 0 = without a wait.
    parts: BTreeMap<i64, Part>,
    phases: BTreeMap<i64, GatePhase>,
    cycles_later: [u64; 3],
    outside: u64,
    left: Option<GateLeft>,
}

/// Messages with similar predicted waits.
#[derive(Default)]
struct Part {
    messages: u64,
    predicted_ns: i128,
    way_ns: i128,
    beyond: Durations,
}

impl Table {
    fn of(gate: Gate, classes: Vec<GateClassReport>) -> Table {
        let worst_wait_ns = gate.prediction().worst_wait_ns.map_or(0, |ns| ns as i64) + gate.delay_ns();
        Table {
            gate,
            classes,
            longest: Longest::default(),
            worst_wait_ns,
            parts: BTreeMap::new(),
            phases: BTreeMap::new(),
            cycles_later: [0; 3],
            outside: 0,
            left: None,
        }
    }

    /// Adds the messages of the ping, or the answers of the pong.
    fn add(&mut self, batch: &SlotBatch, way: &Way) {
        let by_ping = way.end == "ping";
        for (i, sent_ns, received_ns) in batch.ways(by_ping).filter(|(i, ..)| !batch.warm_up[*i]) {
            let due_ns = Some(batch.intended_ns[i]).filter(|ns| by_ping && *ns != NO_TIME);
            let ready_ns = if by_ping { batch.ready_ns(i, sent_ns, way.launch_ns) } else { sent_ns };
            let times = (ready_ns, way.has_one_clock.then_some(received_ns));
            let Some(departure) = way.departures.of_message(batch.seq[i], times, way.gate.is_by_card()) else {
                continue;
            };
            self.add_message(times, departure, &way.gate);
            let slot = counter_of(batch.seq[i]);
            let passed = Passed {
                id: (way.trial, slot),
                due_ns: due_ns.unwrap_or(sent_ns),
                sent_ns,
                received_ns: times.1,
                departure,
                worst: way.worst.iter().find(|(of, _)| *of == slot).map(|(_, place)| *place),
            };
            self.longest.add(&passed, &way.gate);
        }
    }

    /// Adds a message that was sent at `sent_ns` and received at `received_ns`; `None` = the receiver has another clock.
    fn add_message(&mut self, (sent_ns, received_ns): (i64, Option<i64>), departure: Departure, gate: &Gate) {
        let Some(wait_ns) = gate.wait_ns(sent_ns) else { return };
        let is_outside = departure.left_ns < gate.permitted_ns(departure.ready_ns);
        if let Some(stamped_ns) = departure.stamped_ns {
            let late_ns = if is_outside { 0 } else { gate.closed_for_ns(stamped_ns) };
            let left = self.left.get_or_insert_default();
            left.messages += 1;
            left.late += u64::from(late_ns > 0);
            left.late_max_ns = left.late_max_ns.max(late_ns);
        }
        self.outside += u64::from(is_outside);
        let Some(received_ns) = received_ns else { return };
        self.add_phase(gate.phase_ns(sent_ns), received_ns - sent_ns);
        if is_outside {
            return;
        }
        let (way_ns, beyond_ns) = (received_ns - sent_ns, (received_ns - sent_ns - wait_ns).max(0));
        let cycles = usize::try_from(beyond_ns / gate.cycle_ns().max(1)).unwrap_or(usize::MAX);
        self.cycles_later[cycles.min(2)] += 1;
        let part = self.parts.entry(self.part_of(wait_ns)).or_default();
        part.messages += 1;
        part.predicted_ns += i128::from(wait_ns);
        part.way_ns += i128::from(way_ns);
        part.beyond.add(beyond_ns);
    }

    fn add_phase(&mut self, phase_ns: i64, way_ns: i64) {
        let cycle_ns = self.gate.cycle_ns().max(1);
        let number = i128::from(phase_ns) * i128::from(PHASES) / i128::from(cycle_ns);
        let from_ns = (number * i128::from(cycle_ns) / i128::from(PHASES)) as i64;
        let new = || GatePhase { from_ns, messages: 0, way_min_ns: way_ns, way_max_ns: way_ns };
        let phase = self.phases.entry(from_ns).or_insert_with(new);
        phase.messages += 1;
        phase.way_min_ns = phase.way_min_ns.min(way_ns);
        phase.way_max_ns = phase.way_max_ns.max(way_ns);
    }

    fn part_of(&self, wait_ns: i64) -> i64 {
        (0..PARTS).find(|part| wait_ns <= self.bound(*part)).unwrap_or(PARTS)
    }

    /// Longest predicted wait of this part, ns.
    fn bound(&self, part: i64) -> i64 {
        self.worst_wait_ns * part / PARTS
    }

    fn report(self, end: String, class: String) -> GateReport {
        let prediction = self.gate.prediction();
        // Of frames with launch times, each one waits for the delay.
        let delay_ns = self.gate.delay_ns();
        let has_launch_times = delay_ns > 0;
        let waits = self.parts.iter().map(|(part, of)| GateWaits {
            above_ns: self.bound((part - 1).max(0)),
            up_to_ns: self.bound(*part),
            messages: of.messages,
            predicted_ns: of.predicted_ns as f64 / of.messages as f64,
            way_ns: of.way_ns as f64 / of.messages as f64,
            beyond_p50_ns: of.beyond.at(0.5),
            beyond_p99_ns: of.beyond.at(0.99),
            beyond_max_ns: of.beyond.max_ns,
        });
        let waits: Vec<GateWaits> = waits.collect();
        let (messages, not_placed) = self.longest.finish();
        GateReport {
            end,
            class,
            frame_bytes: self.gate.frame_bytes(),
            cycle_ns: self.gate.cycle_ns(),
            mean_wait_ns: prediction.mean_wait_ns.map(|ns| ns + delay_ns as f64),
            worst_wait_ns: prediction.worst_wait_ns.map(|ns| ns + delay_ns.unsigned_abs()),
            share_without_wait: prediction.share_without_wait.map(|share| if has_launch_times { 0.0 } else { share }),
            waits,
            permitted: match has_launch_times {
                // They leave at other times than those at which they are ready.
                true => Vec::new(),
                false => self.gate.starts().into_iter().map(|(from_ns, to_ns)| [from_ns, to_ns]).collect(),
            },
            phases: self.phases.values().cloned().collect(),
            cycles_later: self.cycles_later,
            outside: self.outside,
            left: self.left,
            classes: self.classes,
            messages,
            not_placed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_gates::{Entry, Frame, Rule, Schedule};

    const MS: i64 = 1_000_000;

    /// The waits for a gate that is open for 5 of 20 ms, without messages.
    fn empty() -> Table {
        let entry = |gates, ms: u64| Entry { gates, interval_ns: ms * 1_000_000 };
        let windows = Schedule { entries: vec![entry(1, 5), entry(2, 15)], cycle_ns: 0 }.windows(0, Rule::Kernel);
        let frame = Frame { bytes: 106, speed: "10Gbps".parse().unwrap() };
        Table::of(Gate::new(0, (windows, frame), 0, 1_000), Vec::new())
    }

    /// The waits for this gate. Each message has the times of its send call and of its receipt, ms.
    fn table(messages: &[(f64, f64)]) -> GateReport {
        let mut table = empty();
        let gate = table.gate.clone();
        let ns = |ms: f64| (ms * MS as f64) as i64;
        for (sent, received) in messages {
            let (ready_ns, left_ns) = (ns(*sent), ns(*received));
            table.add_message((ready_ns, Some(left_ns)), Departure { ready_ns, left_ns, stamped_ns: None }, &gate);
        }
        table.report("ping".into(), "stream".into())
    }

    #[test]
    fn messages_are_counted_with_those_of_similar_predicted_waits() {
        // Without a wait, a wait of 2 ms, two waits of 14 ms, one of them a cycle later.
        let found = table(&[(1.0, 1.1), (18.0, 20.3), (26.0, 40.2), (46.0, 80.5)]);
        assert_eq!(found.worst_wait_ns, Some(15 * MS as u64 + 103));
        let rows: Vec<_> = found.waits.iter().map(|row| (row.up_to_ns / MS, row.messages, row.beyond_max_ns)).collect();
        assert_eq!(rows, [(0, 1, 100_000), (3, 1, 300_000), (15, 2, 20_500_000)]);
        assert_eq!((found.waits[2].predicted_ns, found.waits[2].way_ns), (14e6, 24.35e6));
        assert_eq!((found.cycles_later, found.outside), ([3, 1, 0], 0));
        // The last two were sent at the same phase.
        let phases: Vec<_> = found.phases.iter().map(|p| (p.from_ns, p.messages, p.way_min_ns, p.way_max_ns)).collect();
        let expected =
            [(MS, 1, 100_000, 100_000), (6 * MS, 2, 14_200_000, 34_500_000), (18 * MS, 1, 2_300_000, 2_300_000)];
        assert_eq!(phases, expected);
        assert_eq!(found.permitted, [[0, 5 * MS - 104]]);
    }

    #[test]
    fn between_two_clocks_only_stamps_show_whether_a_message_left_in_its_window() {
        let mut table = empty();
        let gate = table.gate.clone();
        // Within its window, before it, and after it.
        for (sent_ns, left_ns) in [(MS, 1_100_000), (6 * MS, 19 * MS), (6 * MS, 25_100_000)] {
            let departure = Departure { ready_ns: sent_ns, left_ns, stamped_ns: Some((left_ns, left_ns)) };
            table.add_message((sent_ns, None), departure, &gate);
        }
        let found = table.report("ping".into(), "stream".into());
        assert_eq!((found.outside, found.left.as_ref().map(|left| (left.messages, left.late))), (1, Some((3, 1))));
        assert!(found.waits.is_empty() && found.phases.is_empty());
        assert_eq!(found.cycles_later, [0; 3]);
    }

    #[test]
    fn a_message_that_arrives_before_its_gate_permits_it_is_outside() {
        let found = table(&[(6.0, 6.1), (6.0, 19.9), (6.0, 20.1)]);
        assert_eq!((found.cycles_later, found.outside), ([1, 0, 0], 2));
        // The clock of the schedule is known to within a microsecond.
        assert_eq!(table(&[(6.0, 19.9995)]).outside, 0);
        assert_eq!(table(&[(6.0, 19.9985)]).outside, 1);
    }
}
