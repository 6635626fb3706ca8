//! Divides the one-way latency of messages by the stamps of the kernel and of the network card.
//!
//! Input: the samples, the stages that messages passed, and the schedules of gates. Output: for each end that sent, the parts of the
//! latency. The definitions are those of the chapter "How the numbers are made".

use crate::clocks::has_one_clock;
use crate::durations::Durations;
use crate::gates::of_trial as gates_of_trial;
use std::collections::BTreeMap;
use tailbound_document::{StagePart, StageReport, StageWord};
use tailbound_gates::Gate;
use tailbound_model::{Condition, Metric, NO_TIME, StageRow};
use tailbound_record::{Columns, Record, RecordError, SlotBatch};

/// The parts of the latencies of a condition's messages in these trials, for each end whose messages have stamps.
pub(crate) fn of(record: &Record, condition: &Condition, trials: &[usize]) -> Result<Vec<StageReport>, RecordError> {
    let launch_lead_ns = condition.spec.stream.and_then(|stream| stream.launch).map(|launch| launch.lead.0);
    let mut reports = Vec::new();
    for end in ["ping", "pong"] {
        let mut table = Table::default();
        for trial in trials {
            let rows = record.stages(*trial, end)?;
            if rows.is_empty() {
                continue;
            }
            table.add_fact(record, *trial, end);
            let gates = gates_of_trial(record, *trial, &condition.spec);
            let way = Way {
                by_ping: end == "ping",
                has_one_clock: has_one_clock(record, *trial),
                gate: gates.iter().find(|(name, _)| name == end).map(|(_, gate)| gate),
                launch_lead_ns: launch_lead_ns.filter(|_| end == "ping"),
            };
            record.scan(*trial, &columns(), &mut |batch| table.add(batch, &rows, &way))?;
        }
        reports.extend(table.report(end));
    }
    Ok(reports)
}

fn columns() -> Columns {
    let metrics = [Metric::FromIntended, Metric::Out, Metric::OutNetwork, Metric::Back, Metric::BackNetwork];
    Columns::of(&metrics).with_echo_begin().with_seq()
}

/// What is known about all messages of an end in a trial.
struct Way<'a> {
    by_ping: bool,
    has_one_clock: bool,
    gate: Option<&'a Gate>,
    /// Time from the due time of a message to its launch time, ns.
    launch_lead_ns: Option<i64>,
}

/// Times of one message, monotonic ns. `None` = there is no stamp.
#[derive(Default)]
struct Times {
    /// Due time, or begin of the send call.
    begin_ns: i64,
    launch_ns: Option<i64>,
    queued_ns: Option<i64>,
    /// Time at which the driver of the interface had the message before this one.
    previous_ns: Option<i64>,
    /// Time at which the message left.
    left_ns: Option<i64>,
    kernel_rx_ns: Option<i64>,
    received_ns: i64,
}

#[derive(Default)]
struct Table {
    messages: u64,
    parts: BTreeMap<Vec<StageWord>, Durations>,
    without: [u64; 4],
    has_card: bool,
    has_one_clock: bool,
    unused: u64,
    width_ns: Option<i64>,
    card_width_ns: Option<i64>,
}

fn some(ns: i64) -> Option<i64> {
    Some(ns).filter(|ns| *ns != NO_TIME)
}

impl Table {
    fn add_fact(&mut self, record: &Record, trial: usize, end: &str) {
        let trial = record.manifest.trials.iter().find(|done| done.id == trial);
        let Some(fact) = trial.and_then(|trial| trial.ends.get(end)?.stages.as_ref()) else { return };
        self.unused += fact.unread + fact.left_out + fact.unconverted;
        self.width_ns = self.width_ns.max(fact.width_ns);
        self.card_width_ns = self.card_width_ns.max(fact.card_width_ns);
    }

    /// Adds the messages of a batch that were sent and received. `rows` are the stages of the trial.
    fn add(&mut self, batch: &SlotBatch, rows: &[StageRow], way: &Way) {
        for (i, sent_ns, received_ns) in batch.ways(way.by_ping).filter(|(i, ..)| !batch.warm_up[*i]) {
            let at = rows.binary_search_by_key(&batch.seq[i], |row| row.seq).ok();
            let row = at.map(|at| rows[at]);
            let of = |stage: fn(&StageRow) -> i64| row.as_ref().map(stage).and_then(some);
            let (sent, card) = (of(|row| row.sent_ns), of(|row| row.card_ns));
            let kernel_rx_ns = if way.by_ping { batch.echo_kernel_rx_ns[i] } else { batch.kernel_rx_ns[i] };
            let due_ns = some(batch.intended_ns[i]).filter(|_| way.by_ping);
            let times = Times {
                begin_ns: due_ns.unwrap_or(sent_ns),
                launch_ns: due_ns.zip(way.launch_lead_ns).map(|(due_ns, lead_ns)| due_ns + lead_ns),
                queued_ns: of(|row| row.queued_ns),
                previous_ns: at.and_then(|at| some(rows[at.checked_sub(1)?].sent_ns)),
                left_ns: if way.gate.is_some_and(Gate::is_by_card) { card } else { card.or(sent) },
                kernel_rx_ns: some(kernel_rx_ns),
                received_ns,
            };
            self.messages += 1;
            self.has_card |= card.is_some();
            self.has_one_clock |= way.has_one_clock;
            let missing = [times.queued_ns, sent, card, times.kernel_rx_ns];
            self.without.iter_mut().zip(missing).for_each(|(without, stamp)| *without += u64::from(stamp.is_none()));
            for (stages, ns) in parts(&times, way) {
                self.parts.entry(stages).or_default().add(ns);
            }
        }
    }

    fn report(self, end: &str) -> Option<StageReport> {
        let [without_queued, without_sent, without_card, without_received] = self.without;
        let part = |(stages, of): (Vec<StageWord>, Durations)| StagePart {
            histogram: if stages == [StageWord::Thread] { of.buckets() } else { Vec::new() },
            stages,
            messages: of.count(),
            mean_ns: of.mean_ns(),
            p50_ns: of.at(0.5),
            p99_ns: of.at(0.99),
            max_ns: of.max_ns,
        };
        (self.messages > 0).then(|| StageReport {
            end: end.to_owned(),
            messages: self.messages,
            parts: self.parts.into_iter().map(part).collect(),
            without_queued,
            without_sent,
            without_card: self.has_card.then_some(without_card),
            without_received: self.has_one_clock.then_some(without_received),
            unused: self.unused,
            width_ns: self.width_ns,
            card_width_ns: self.card_width_ns,
        })
    }
}

/// The parts of a message's latency, each with its stages, and its duration in ns. They follow each other without a gap.
fn parts(times: &Times, way: &Way) -> Vec<(Vec<StageWord>, i64)> {
    let borders = borders(times, way);
    // A clock is known within bounds, and a message can leave before its gate permits it: no border is later than the next one.
    let mut latest_ns = i64::MAX;
    let mut ends: Vec<(StageWord, Option<i64>)> = Vec::new();
    for (stage, border) in borders.into_iter().rev() {
        let border = border.map(|ns| ns.min(latest_ns));
        latest_ns = border.unwrap_or(latest_ns);
        ends.push((stage, border));
    }
    let (mut at_ns, mut stages, mut parts) = (times.begin_ns, Vec::new(), Vec::new());
    for (stage, end) in ends.into_iter().rev() {
        stages.push(stage);
        if let Some(end_ns) = end {
            let end_ns = end_ns.max(at_ns);
            parts.push((std::mem::take(&mut stages), end_ns - at_ns));
            at_ns = end_ns;
        }
    }
    parts
}

/// The stages that a message passes, each with the time at which it ends; `None` = that is not known.
fn borders(times: &Times, way: &Way) -> Vec<(StageWord, Option<i64>)> {
    let mut borders = vec![(StageWord::HostLateness, times.queued_ns)];
    let mut ready = times.queued_ns;
    if let Some(launch_ns) = times.launch_ns {
        ready = ready.map(|ready_ns| ready_ns.max(launch_ns));
        borders.push((StageWord::LaunchWait, ready));
    }
    if let Some(gate) = way.gate {
        // The clock of a card is known less and less exactly after it was read.
        ready = ready.filter(|_| !gate.is_by_card()).and_then(|ready_ns| Some(ready_ns + gate.wait_ns(ready_ns)?));
        borders.push((StageWord::GateWait, ready));
        ready = ready.map(|ready_ns| times.previous_ns.map_or(ready_ns, |previous_ns| ready_ns.max(previous_ns)));
        borders.push((StageWord::OwnClassQueue, ready));
    }
    borders.push((StageWord::ReleaseLateness, times.left_ns));
    if way.has_one_clock {
        borders.extend([
            // The receiver's network card stamps no messages here.
            (StageWord::Wire, None),
            (StageWord::ReceivePath, times.kernel_rx_ns),
            (StageWord::Thread, Some(times.received_ns)),
        ]);
    }
    borders
}

#[cfg(test)]
mod tests {
    use super::*;
    use StageWord::*;
    use tailbound_gates::{Entry, Frame, Rule, Schedule};

    /// A gate that is open for 5 of 20 us, from 0 on.
    fn gate() -> Gate {
        let entry = |gates, us: u64| Entry { gates, interval_ns: us * 1_000 };
        let windows = Schedule { entries: vec![entry(1, 5), entry(2, 15)], cycle_ns: 0 }.windows(0, Rule::Kernel);
        let frame = Frame { bytes: 106, speed: "10Gbps".parse().unwrap() };
        Gate::new(0, (windows, frame), 0, 0)
    }

    fn way(gate: Option<&Gate>) -> Way<'_> {
        Way { by_ping: true, has_one_clock: true, gate, launch_lead_ns: None }
    }

    const ALL: Times = Times {
        begin_ns: 6_000,
        launch_ns: Some(9_000),
        queued_ns: Some(7_000),
        previous_ns: Some(20_100),
        left_ns: Some(20_400),
        kernel_rx_ns: Some(20_900),
        received_ns: 25_000,
    };

    #[test]
    fn the_parts_of_a_gated_message_add_up() {
        let gate = gate();
        let found = parts(&ALL, &way(Some(&gate)));
        let expected = [
            (vec![HostLateness], 1_000),
            (vec![LaunchWait], 2_000),
            (vec![GateWait], 11_000),
            (vec![OwnClassQueue], 100),
            (vec![ReleaseLateness], 300),
            (vec![Wire, ReceivePath], 500),
            (vec![Thread], 4_100),
        ];
        assert_eq!(found, expected);
        assert_eq!(found.iter().map(|(_, ns)| ns).sum::<i64>(), ALL.received_ns - ALL.begin_ns);
    }

    #[test]
    fn stages_between_missing_stamps_are_one_part() {
        let without_gate = Times { launch_ns: None, ..ALL };
        let of = |times: Times| parts(&times, &way(None)).into_iter().map(|(stages, _)| stages).collect::<Vec<_>>();
        let whole = [vec![HostLateness], vec![ReleaseLateness], vec![Wire, ReceivePath], vec![Thread]];
        assert_eq!(of(Times { ..without_gate }), whole);
        let no_queue = [vec![HostLateness, ReleaseLateness], vec![Wire, ReceivePath], vec![Thread]];
        assert_eq!(of(Times { queued_ns: None, launch_ns: None, ..ALL }), no_queue);
        let none = Times { queued_ns: None, left_ns: None, kernel_rx_ns: None, launch_ns: None, ..ALL };
        assert_eq!(
            parts(&none, &way(None)),
            [(vec![HostLateness, ReleaseLateness, Wire, ReceivePath, Thread], 19_000)]
        );
        // The clock of the receiver is another one.
        let apart = Way { has_one_clock: false, ..way(None) };
        let sent = parts(&Times { launch_ns: None, ..ALL }, &apart);
        assert_eq!(sent, [(vec![HostLateness], 1_000), (vec![ReleaseLateness], 13_400)]);
    }

    #[test]
    fn a_message_that_left_before_its_gate_opened_waited_until_it_left() {
        let gate = gate();
        let early = Times { left_ns: Some(12_000), previous_ns: None, kernel_rx_ns: Some(12_100), ..ALL };
        let found = parts(&early, &way(Some(&gate)));
        assert_eq!(found[2..5], [(vec![GateWait], 3_000), (vec![OwnClassQueue], 0), (vec![ReleaseLateness], 0)]);
        assert_eq!(found.iter().map(|(_, ns)| ns).sum::<i64>(), early.received_ns - early.begin_ns);
    }
}
