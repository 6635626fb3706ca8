//! Divides the one-way latency of messages by the stamps of the kernel and of the network card, and by the times at which executors took
//! messages.
//!
//! Input: the samples, the stages that messages passed, and the schedules of gates. Output: for each end that sent, the parts of the
//! latency. The definitions are those of the chapter "How the numbers are made".

use crate::clocks::{Clocks, Legs};
use crate::durations::Durations;
use crate::gates::of_trial as gates_of_trial;
use std::collections::BTreeMap;
use tailbound_document::{StagePart, StageReport, StageWord};
use tailbound_gates::Gate;
use tailbound_model::{Condition, Metric, NO_TIME, StageRow};
use tailbound_record::{Columns, Record, RecordError, SlotBatch};

/// The parts of the latencies of a condition's messages in these trials, for each end whose messages have stamps.
pub(crate) fn of(
    record: &Record,
    condition: &Condition,
    (trials, clocks): (&[usize], &Clocks),
) -> Result<Vec<StageReport>, RecordError> {
    let launch_lead_ns = condition.spec.stream.and_then(|stream| stream.launch).map(|launch| launch.lead.0);
    let mut reports = Vec::new();
    for (end, other) in [("ping", "pong"), ("pong", "ping")] {
        let mut table = Table::default();
        for trial in trials {
            let rows = Rows { sent: record.stages(*trial, end)?, received: record.stages(*trial, other)? };
            if rows.sent.is_empty() && rows.received.iter().all(|row| row.taken_ns == NO_TIME) {
                continue;
            }
            let gates = gates_of_trial(record, *trial, &condition.spec);
            let way = Way {
                by_ping: end == "ping",
                legs: clocks.legs(*trial),
                gate: gates.iter().find(|(name, _)| name == end).map(|(_, gate)| gate),
                launch_lead_ns: launch_lead_ns.filter(|_| end == "ping"),
                errors: table.add_facts(record, *trial, [end, other]),
            };
            record.scan(*trial, &columns(), &mut |batch| table.add(batch, &rows, &way))?;
        }
        reports.extend(table.report(end));
    }
    Ok(reports)
}

fn columns() -> Columns {
    let metrics = [Metric::FromIntended, Metric::Out, Metric::OutNetwork, Metric::Back, Metric::BackNetwork];
    Columns::of(&metrics).with_clocks().with_seq()
}

/// The stamps of the messages of an end in a trial, by the sender and by the receiver, in rising order of the sequence numbers.
struct Rows {
    sent: Vec<StageRow>,
    received: Vec<StageRow>,
}

/// What is known about all messages of an end in a trial.
struct Way<'a> {
    by_ping: bool,
    legs: Legs<'a>,
    gate: Option<&'a Gate>,
    /// Time from the due time of a message to its launch time, ns.
    launch_lead_ns: Option<i64>,
    errors: Errors,
}

impl Way<'_> {
    fn has_one_clock(&self) -> bool {
        matches!(self.legs, Legs::Exact)
    }
}

/// Largest errors of stamps, ns: by the kernel and by the network card, at the sender and at the receiver.
#[derive(Clone, Copy, Default)]
struct Errors {
    kernel_ns: i64,
    card_ns: i64,
    kernel_rx_ns: i64,
    card_rx_ns: i64,
}

/// Times of one message, monotonic ns of the sender's host, or of the receiver's host (`..._rx_ns`, `received_ns`). `None` = there is no
/// stamp.
#[derive(Default)]
struct Times {
    /// Due time, or begin of the send call.
    begin_ns: i64,
    launch_ns: Option<i64>,
    queued_ns: Option<i64>,
    /// Time at which the driver of the interface had the message before this one.
    previous_ns: Option<i64>,
    /// Time at which the message left, and the largest error of this time.
    left: Option<(i64, i64)>,
    card_rx_ns: Option<i64>,
    kernel_rx_ns: Option<i64>,
    taken_ns: Option<i64>,
    received_ns: i64,
}

#[derive(Default)]
struct Table {
    messages: u64,
    /// Durations of the parts, each with its largest error.
    parts: BTreeMap<Vec<StageWord>, (Durations, Option<i64>)>,
    without: [u64; 6],
    has_card: bool,
    has_card_rx: bool,
    has_taken: bool,
    clocks_differ: bool,
    /// Smallest and largest possible times from the sender to the receiver's network card, between two clocks.
    wire: [Durations; 2],
    without_wire: u64,
    unused: u64,
    width_ns: Option<i64>,
    card_width_ns: Option<i64>,
    receiver_card_width_ns: Option<i64>,
}

fn some(ns: i64) -> Option<i64> {
    Some(ns).filter(|ns| *ns != NO_TIME)
}

impl Table {
    /// Adds what the record says about the stamps of a trial, by the sender and by the receiver. Returns the largest errors.
    fn add_facts(&mut self, record: &Record, trial: usize, ends: [&str; 2]) -> Errors {
        let trial = record.manifest.trials.iter().find(|done| done.id == trial);
        let [sender, receiver] = ends.map(|end| trial.and_then(|trial| trial.ends.get(end)));
        let [sent, received] = [sender, receiver].map(|end| end?.stages.as_ref());
        if let Some(fact) = sent {
            self.unused += fact.unread + fact.left_out + fact.unconverted;
            self.width_ns = self.width_ns.max(fact.width_ns);
            self.card_width_ns = self.card_width_ns.max(fact.card_width_ns);
        }
        let receiver_card_width_ns = received.and_then(|fact| fact.card_width_ns);
        self.receiver_card_width_ns = self.receiver_card_width_ns.max(receiver_card_width_ns);
        Errors {
            kernel_ns: sent.and_then(|fact| fact.width_ns).unwrap_or(0),
            card_ns: sent.and_then(|fact| fact.card_width_ns).unwrap_or(0),
            kernel_rx_ns: receiver.and_then(|end| end.clock_width_ns).unwrap_or(0),
            card_rx_ns: receiver_card_width_ns.unwrap_or(0),
        }
    }

    /// Adds the messages of a batch that were sent and received. `rows` are the stages of the trial.
    fn add(&mut self, batch: &SlotBatch, rows: &Rows, way: &Way) {
        self.clocks_differ |= !way.has_one_clock();
        for (i, sent_ns, received_ns) in batch.ways(way.by_ping).filter(|(i, ..)| !batch.warm_up[*i]) {
            let [at, at_receiver] =
                [&rows.sent, &rows.received].map(|rows| rows.binary_search_by_key(&batch.seq[i], |row| row.seq).ok());
            let of = |stage: fn(&StageRow) -> i64| at.map(|at| stage(&rows.sent[at])).and_then(some);
            let of_receiver =
                |stage: fn(&StageRow) -> i64| at_receiver.map(|at| stage(&rows.received[at])).and_then(some);
            let (sent, card) = (of(|row| row.sent_ns), of(|row| row.card_ns));
            let kernel_rx_ns = if way.by_ping { batch.echo_kernel_rx_ns[i] } else { batch.kernel_rx_ns[i] };
            let due_ns = some(batch.intended_ns[i]).filter(|_| way.by_ping);
            let by_driver =
                sent.filter(|_| !way.gate.is_some_and(Gate::is_by_card)).map(|ns| (ns, way.errors.kernel_ns));
            let times = Times {
                begin_ns: due_ns.unwrap_or(sent_ns),
                launch_ns: due_ns.zip(way.launch_lead_ns).map(|(due_ns, lead_ns)| due_ns + lead_ns),
                queued_ns: of(|row| row.queued_ns),
                previous_ns: at.and_then(|at| some(rows.sent[at.checked_sub(1)?].sent_ns)),
                left: card.map(|ns| (ns, way.errors.card_ns)).or(by_driver),
                card_rx_ns: of_receiver(|row| row.card_rx_ns),
                taken_ns: of_receiver(|row| row.taken_ns),
                kernel_rx_ns: some(kernel_rx_ns),
                received_ns,
            };
            if !way.has_one_clock() && times.left.is_some() && times.card_rx_ns.is_some() {
                match wire_ns(&times, way, batch.send_begin_ns[i]) {
                    Some(range) => self.wire.iter_mut().zip(range).for_each(|(of, ns)| of.add(ns)),
                    None => self.without_wire += 1,
                }
            }
            self.messages += 1;
            self.has_card |= card.is_some();
            self.has_card_rx |= times.card_rx_ns.is_some();
            self.has_taken |= times.taken_ns.is_some();
            let missing = [times.queued_ns, sent, card, times.card_rx_ns, times.kernel_rx_ns, times.taken_ns];
            self.without.iter_mut().zip(missing).for_each(|(without, stamp)| *without += u64::from(stamp.is_none()));
            for Part { stages, ns, error_ns } in parts(&times, way) {
                let (durations, largest_ns) = self.parts.entry(stages).or_default();
                durations.add(ns);
                *largest_ns = (*largest_ns).max(error_ns);
            }
        }
    }

    fn report(self, end: &str) -> Option<StageReport> {
        let [without_queued, without_sent, without_card, without_card_rx, without_received, without_taken] =
            self.without;
        let part = |(stages, (of, error_ns)): (Vec<StageWord>, (Durations, Option<i64>))| StagePart {
            histogram: if stages == [StageWord::Thread] { of.buckets() } else { Vec::new() },
            stages,
            messages: of.count(),
            mean_ns: of.mean_ns(),
            p50_ns: of.at(0.5),
            p99_ns: of.at(0.99),
            max_ns: of.max_ns,
            error_ns,
        };
        let wire = |of: &Durations, at: fn(&Durations, f64) -> i64| StagePart {
            stages: vec![StageWord::Wire],
            messages: of.count(),
            mean_ns: of.mean_ns(),
            p50_ns: at(of, 0.5),
            p99_ns: at(of, 0.99),
            max_ns: of.max_ns,
            histogram: Vec::new(),
            error_ns: None,
        };
        let [low, high] = &self.wire;
        let wire_range = (low.count() > 0).then(|| [wire(low, Durations::at_least), wire(high, Durations::at)].into());
        (self.messages > 0).then(|| StageReport {
            end: end.to_owned(),
            messages: self.messages,
            parts: self.parts.into_iter().map(part).collect(),
            without_queued,
            without_sent,
            without_card: self.has_card.then_some(without_card),
            without_card_rx: self.has_card_rx.then_some(without_card_rx),
            without_received: Some(without_received),
            without_taken: self.has_taken.then_some(without_taken),
            clocks_differ: self.clocks_differ,
            wire_range,
            without_wire: self.without_wire,
            unused: self.unused,
            width_ns: self.width_ns,
            card_width_ns: self.card_width_ns,
            receiver_card_width_ns: self.receiver_card_width_ns.filter(|_| self.has_card_rx),
        })
    }
}

/// One part of a message's latency.
#[derive(Debug, PartialEq)]
struct Part {
    stages: Vec<StageWord>,
    ns: i64,
    /// Largest error of `ns`; `None` = the part ends at a time that the schedule of a gate or the launch time decides.
    error_ns: Option<i64>,
}

/// The end of a stage of a message.
#[derive(Clone, Copy)]
struct Border {
    stage: StageWord,
    /// `None` = it is not known.
    at_ns: Option<i64>,
    /// Largest error of `at_ns`; `None` = no stamp shows `at_ns`.
    error_ns: Option<i64>,
}

/// The parts of a message's latency, which follow each other without a gap. If sender and receiver have different clocks, the parts of the
/// receiver begin at its first stamp.
fn parts(times: &Times, way: &Way) -> Vec<Part> {
    let mut borders = borders(times, way);
    let received = [
        Border { stage: StageWord::Wire, at_ns: times.card_rx_ns, error_ns: Some(way.errors.card_rx_ns) },
        Border { stage: StageWord::ReceivePath, at_ns: times.kernel_rx_ns, error_ns: Some(way.errors.kernel_rx_ns) },
        Border { stage: StageWord::Thread, at_ns: times.taken_ns.or(Some(times.received_ns)), error_ns: Some(0) },
        Border { stage: StageWord::Executor, at_ns: times.taken_ns.map(|_| times.received_ns), error_ns: Some(0) },
    ];
    let begin = (times.begin_ns, Some(0));
    if way.has_one_clock() {
        borders.extend(received);
        return between(begin, &borders);
    }
    let mut parts = between(begin, &borders);
    if let Some(first) = received.iter().position(|border| border.at_ns.is_some()) {
        let Border { at_ns, error_ns, .. } = received[first];
        parts.extend(between((at_ns.unwrap_or_default(), error_ns), &received[first + 1..]));
    }
    parts
}

/// Smallest and largest possible time in which a message came from its sender to the receiver's network card, ns, between two clocks.
/// `ping_sent_ns`: begin of the send call of the ping. `None` = the stamps are missing, or there are no bounds of the clocks.
fn wire_ns(times: &Times, way: &Way, ping_sent_ns: i64) -> Option<[i64; 2]> {
    let Legs::Bounded(bounds) = way.legs else { return None };
    let ((left_ns, left_error_ns), card_rx_ns) = times.left.zip(times.card_rx_ns)?;
    let clocks = bounds.clocks.at(some(ping_sent_ns)?)?;
    let [low, high] = match way.by_ping {
        true => clocks.there_ns(left_ns, card_rx_ns),
        false => clocks.back_ns(left_ns, card_rx_ns),
    };
    let error_ns = left_error_ns + way.errors.card_rx_ns;
    // No message arrives before it left.
    Some([low - error_ns, high + error_ns].map(|ns| ns.max(0)))
}

/// The parts between these borders. `begin`: time at which the first part begins, and its largest error.
fn between(begin: (i64, Option<i64>), borders: &[Border]) -> Vec<Part> {
    // A clock is known within bounds, and a message can leave before its gate permits it: no border is later than the next one. A time
    // in place of which the time of another border is used is not more exact than the other border.
    let worse = |one: Option<i64>, other: Option<i64>| one.zip(other).map(|(one, other)| one.max(other));
    let mut latest = (i64::MAX, Some(0));
    let mut ends = Vec::new();
    for Border { stage, at_ns, error_ns } in borders.iter().rev() {
        let border = at_ns.map(|ns| match ns > latest.0 {
            true => (latest.0, worse(*error_ns, latest.1)),
            false => (ns, *error_ns),
        });
        latest = border.unwrap_or(latest);
        ends.push((*stage, border));
    }
    let (mut at, mut stages, mut parts) = (begin, Vec::new(), Vec::new());
    for (stage, end) in ends.into_iter().rev() {
        stages.push(stage);
        if let Some((end_ns, error_ns)) = end {
            let end = if end_ns < at.0 { (at.0, worse(error_ns, at.1)) } else { (end_ns, error_ns) };
            let error_ns = at.1.zip(end.1).map(|(begin, end)| begin + end);
            parts.push(Part { stages: std::mem::take(&mut stages), ns: end.0 - at.0, error_ns });
            at = end;
        }
    }
    parts
}

/// The stages that a message passes at its sender.
fn borders(times: &Times, way: &Way) -> Vec<Border> {
    let kernel_ns = Some(way.errors.kernel_ns);
    let mut borders = vec![Border { stage: StageWord::HostLateness, at_ns: times.queued_ns, error_ns: kernel_ns }];
    let mut ready = times.queued_ns;
    let computed = |stage, at_ns| Border { stage, at_ns, error_ns: None };
    if let Some(launch_ns) = times.launch_ns {
        ready = ready.map(|ready_ns| ready_ns.max(launch_ns));
        borders.push(computed(StageWord::LaunchWait, ready));
    }
    if let Some(gate) = way.gate {
        // The clock of a card is known less and less exactly after it was read.
        ready = ready.filter(|_| !gate.is_by_card()).and_then(|ready_ns| Some(ready_ns + gate.wait_ns(ready_ns)?));
        borders.push(computed(StageWord::GateWait, ready));
        ready = ready.map(|ready_ns| times.previous_ns.map_or(ready_ns, |previous_ns| ready_ns.max(previous_ns)));
        borders.push(computed(StageWord::OwnClassQueue, ready));
    }
    let (left_ns, error_ns) = times.left.unzip();
    borders.push(Border { stage: StageWord::ReleaseLateness, at_ns: left_ns, error_ns });
    borders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::Bounded;
    use StageWord::*;
    use tailbound_gates::{Entry, Frame, Rule, Schedule};
    use tailbound_stats::{ClockMessage, SteadySearch};

    /// A gate that is open for 5 of 20 us, from 0 on.
    fn gate() -> Gate {
        let entry = |gates, us: u64| Entry { gates, interval_ns: us * 1_000 };
        let windows = Schedule { entries: vec![entry(1, 5), entry(2, 15)], cycle_ns: 0 }.windows(0, Rule::Kernel);
        let frame = Frame { bytes: 106, speed: "10Gbps".parse().unwrap() };
        Gate::new(0, (windows, frame), 0, 0)
    }

    fn way(gate: Option<&Gate>) -> Way<'_> {
        Way { by_ping: true, legs: Legs::Exact, gate, launch_lead_ns: None, errors: ERRORS }
    }

    const ERRORS: Errors = Errors { kernel_ns: 10, card_ns: 300, kernel_rx_ns: 20, card_rx_ns: 500 };

    const ALL: Times = Times {
        begin_ns: 6_000,
        launch_ns: Some(9_000),
        queued_ns: Some(7_000),
        previous_ns: Some(20_100),
        left: Some((20_400, 300)),
        card_rx_ns: None,
        kernel_rx_ns: Some(20_900),
        taken_ns: None,
        received_ns: 25_000,
    };

    fn durations(times: &Times, way: &Way) -> Vec<(Vec<StageWord>, i64)> {
        parts(times, way).into_iter().map(|part| (part.stages, part.ns)).collect()
    }

    /// Test: the executor is a part of its own, also if the kernel stamped nothing, and with two clocks.
    #[test]
    fn an_executor_is_the_last_part() {
        let taken = Times { taken_ns: Some(24_000), ..ALL };
        let last = |found: Vec<(Vec<StageWord>, i64)>| found[found.len() - 2..].to_vec();
        assert_eq!(last(durations(&taken, &way(None))), [(vec![Thread], 3_100), (vec![Executor], 1_000)]);
        let alone =
            Times { launch_ns: None, queued_ns: None, previous_ns: None, left: None, kernel_rx_ns: None, ..taken };
        let before = vec![HostLateness, ReleaseLateness, Wire, ReceivePath, Thread];
        assert_eq!(durations(&alone, &way(None)), [(before, 18_000), (vec![Executor], 1_000)]);
        let apart = Way { legs: Legs::Unknown, ..way(None) };
        assert_eq!(durations(&alone, &apart), [(vec![Executor], 1_000)]);
    }

    #[test]
    fn the_parts_of_a_gated_message_add_up() {
        let gate = gate();
        let found = durations(&ALL, &way(Some(&gate)));
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
        let of = |times: Times| parts(&times, &way(None)).into_iter().map(|part| part.stages).collect::<Vec<_>>();
        let whole = [vec![HostLateness], vec![ReleaseLateness], vec![Wire, ReceivePath], vec![Thread]];
        assert_eq!(of(Times { ..without_gate }), whole);
        let no_queue = [vec![HostLateness, ReleaseLateness], vec![Wire, ReceivePath], vec![Thread]];
        assert_eq!(of(Times { queued_ns: None, launch_ns: None, ..ALL }), no_queue);
        let none = Times { queued_ns: None, left: None, kernel_rx_ns: None, launch_ns: None, ..ALL };
        assert_eq!(
            durations(&none, &way(None)),
            [(vec![HostLateness, ReleaseLateness, Wire, ReceivePath, Thread], 19_000)]
        );
    }

    #[test]
    fn the_stamp_of_the_receiving_card_divides_wire_and_receive_path() {
        let gate = gate();
        let stamped = Times { card_rx_ns: Some(20_700), ..ALL };
        let found = parts(&stamped, &way(Some(&gate)));
        let part = |stage, ns, error_ns| Part { stages: vec![stage], ns, error_ns };
        // The error of a part is the sum of the errors of the times at its begin and at its end.
        assert_eq!(found[0], part(HostLateness, 1_000, Some(10)));
        assert!(found[1..5].iter().all(|part| part.error_ns.is_none()), "{found:?}");
        let received =
            [part(Wire, 300, Some(300 + 500)), part(ReceivePath, 200, Some(500 + 20)), part(Thread, 4_100, Some(20))];
        assert_eq!(found[5..], received);
        assert_eq!(found.iter().map(|part| part.ns).sum::<i64>(), ALL.received_ns - ALL.begin_ns);
        // The clock of the receiving card is wrong by more than the receive path: the stamp is not later than the stamp of the kernel.
        let late = parts(&Times { card_rx_ns: Some(21_300), launch_ns: None, ..ALL }, &way(None));
        let [wire, path] = [&late[2], &late[3]];
        assert_eq!([wire, path], [&part(Wire, 500, Some(300 + 500)), &part(ReceivePath, 0, Some(500 + 20))]);
    }

    #[test]
    fn parts_between_two_clocks_are_those_of_each_host() {
        let apart = Way { legs: Legs::Unknown, ..way(None) };
        let with = |card_rx_ns, kernel_rx_ns| Times { launch_ns: None, card_rx_ns, kernel_rx_ns, ..ALL };
        let sent = [(vec![HostLateness], 1_000), (vec![ReleaseLateness], 13_400)];
        let receiver = [(vec![ReceivePath], 200), (vec![Thread], 4_100)];
        assert_eq!(durations(&with(Some(20_700), Some(20_900)), &apart), [&sent[..], &receiver].concat());
        assert_eq!(durations(&with(None, Some(20_900)), &apart), [&sent[..], &receiver[1..]].concat());
        let no_kernel = [&sent[..], &[(vec![ReceivePath, Thread], 4_300)]].concat();
        assert_eq!(durations(&with(Some(20_700), None), &apart), no_kernel);
        assert_eq!(durations(&with(None, None), &apart), sent);
    }

    #[test]
    fn a_message_that_left_before_its_gate_opened_waited_until_it_left() {
        let gate = gate();
        let early = Times { left: Some((12_000, 300)), previous_ns: None, kernel_rx_ns: Some(12_100), ..ALL };
        let found = durations(&early, &way(Some(&gate)));
        assert_eq!(found[2..5], [(vec![GateWait], 3_000), (vec![OwnClassQueue], 0), (vec![ReleaseLateness], 0)]);
        assert_eq!(found.iter().map(|(_, ns)| ns).sum::<i64>(), early.received_ns - early.begin_ns);
    }

    /// Numbers from 0 to below `limit` that look random.
    fn numbers(limit: i64) -> impl FnMut() -> i64 {
        let mut state = 88_172_645_463_325_252_u64;
        move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % limit.unsigned_abs()) as i64
        }
    }

    #[test]
    fn the_wire_between_two_clocks_is_a_range_that_holds_the_truth() {
        // Clock B is 7 s ahead, and 40 ppm faster. The wire takes 2 us, the kernels up to 50 us more.
        const WIRE_NS: i64 = 2_000;
        let by_b = |a_ns: i64| a_ns + 7_000_000_000 + a_ns / 25_000;
        let (mut search, mut random) = (SteadySearch::default(), numbers(50_000));
        // The error of a stamp is smaller than the errors of the two cards.
        let mut stamp = move |ns: i64, error_ns: i64| ns + random() % (2 * error_ns + 1) - error_ns;
        let mut delay = numbers(50_000);
        let mut messages = Vec::new();
        for at_ns in (1..2_000).map(|n| n * 1_000_000) {
            let left_ns = at_ns + 3_000 + delay();
            let arrived_ns = left_ns + WIRE_NS + 3_000 + delay();
            let answered_ns = arrived_ns + 5_000;
            let back_ns = answered_ns + 3_000 + delay();
            let received_ns = back_ns + WIRE_NS + 3_000 + delay();
            let [arrived_b_ns, answered_b_ns] = [arrived_ns, answered_ns].map(|ns| Some(by_b(ns)));
            search.add(&ClockMessage {
                sent_a_ns: at_ns,
                arrived_b_ns,
                answered_b_ns,
                received_a_ns: Some(received_ns),
            });
            let there = [stamp(left_ns, 300), stamp(by_b(left_ns + WIRE_NS), 500)];
            let back = [stamp(by_b(back_ns), 300), stamp(back_ns + WIRE_NS, 500)];
            messages.push((at_ns, there, back));
        }
        let bounds = Bounded { clocks: search.finish().unwrap(), claimed: None, kernel_ns: [0, 0] };
        let mut widest_ns = 0;
        for (sent_ns, there, back) in messages {
            for (by_ping, [left_ns, card_rx_ns]) in [(true, there), (false, back)] {
                let way = Way { by_ping, legs: Legs::Bounded(&bounds), ..way(None) };
                let times = Times { left: Some((left_ns, 300)), card_rx_ns: Some(card_rx_ns), ..ALL };
                let [low, high] = wire_ns(&times, &way, sent_ns).unwrap();
                assert!((low..=high).contains(&WIRE_NS), "{WIRE_NS} is not in {low} to {high}");
                widest_ns = widest_ns.max(high - low);
            }
        }
        // The fastest messages take 8 us each way, so that the clocks are known to about 16 us; both stamps add their errors.
        assert!((10_000..40_000).contains(&widest_ns), "{widest_ns}");
        let unknown = Way { legs: Legs::Unknown, ..way(None) };
        assert_eq!(wire_ns(&Times { card_rx_ns: Some(20_700), ..ALL }, &unknown, 5_000), None);
    }
}
