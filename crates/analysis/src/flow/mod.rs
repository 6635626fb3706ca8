//! Computes the figures of a flow from the counters of a record.

mod addressing;
mod latency;

use crate::clocks;
use tailbound_document::{ConditionReport, FlowReport, FlowSecond, FlowSubscriber, FlowTrial, Spread};
use tailbound_model::{
    Condition, Flow, FlowCounts, FlowPart, FlowRows, MOST_SUBSCRIBERS, PartCounts, Severity, Warning, is_publisher,
    subscriber_end,
};
use tailbound_record::{EndRecord, Record, RecordError, TrialRecord};
use tailbound_stats::Quantile;

const PUBLISHER: &str = "ping";

/// Computes the figures of the flow of a condition; `None` if the condition does not measure a flow, or no message was
/// counted.
///
/// # Errors
/// The rows of samples of a trial cannot be read.
pub(crate) fn of(
    record: &Record,
    condition: &Condition,
    used: &[usize],
    quantiles: &[Quantile],
) -> Result<Option<FlowReport>, RecordError> {
    let Some(flow) = condition.spec.measure.flow() else { return Ok(None) };
    let records = record.manifest.trials.iter().filter(|t| used.contains(&t.id));
    let trials: Vec<FlowTrial> = records.filter_map(|t| trial(t, flow, condition.spec.payload.0)).collect();
    if trials.is_empty() {
        return Ok(None);
    }
    let latency = latency::of(record, flow, used, quantiles)?;
    let pack = f64::from(flow.pack);
    // A subscriber that received nothing counts as the slowest.
    let of_slowest = |value: fn(&FlowSubscriber) -> Option<f64>| {
        let least = |t: &FlowTrial| t.subscribers.iter().map(|s| value(s).unwrap_or(0.0)).reduce(f64::min);
        spread(trials.iter().filter_map(least)).filter(|s| s.high > 0.0)
    };
    let per = |part: Option<i64>, whole: u64| part.filter(|_| whole > 0).map(|part| part as f64 / whole as f64);
    let wire = |t: &FlowTrial| {
        let per_s = t.sent as f64 / pack / (t.window_ns as f64 / 1e9);
        Some(t.wire_bytes_per_message? * per_s * 8.0 / 1e6).filter(|v| v.is_finite())
    };
    let subscriber_cpu = |t: &FlowTrial| {
        let all: Vec<f64> = t.subscribers.iter().filter_map(|s| per(s.cpu_ns, s.received)).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    // Calls that were refused at the end of the window come after its last message.
    let whole = |t: &FlowTrial| (t.window_ns * i64::from(flow.publishers)).max(t.send_ns).max(1);
    let slow = |t: &FlowTrial| t.slow_calls_ns as f64 / whole(t) as f64;
    let controller = record.manifest.trials.iter().filter(|t| used.contains(&t.id)).filter_map(|t| t.controller);
    let controller = controller.filter(|c| c.span_ns > 0).map(|c| c.cpu_ns as f64 / c.span_ns as f64);
    let sum = |value: fn(&FlowSubscriber) -> u64| trials.iter().flat_map(|t| &t.subscribers).map(value).sum();
    Ok(Some(FlowReport {
        publishers: flow.publishers,
        subscribers: flow.subscribers,
        pack: flow.pack,
        samples_per_s: of_slowest(|s| s.samples_per_s),
        payload_mbit_s: of_slowest(|s| s.payload_mbit_s),
        wire_mbit_s: spread(trials.iter().filter_map(wire)),
        slow_calls_share: spread(trials.iter().filter(|t| t.window_ns > 0).map(slow)),
        publisher_cpu_ns: spread(trials.iter().filter_map(|t| per(t.cpu_ns, t.sent))),
        subscriber_cpu_ns: spread(trials.iter().filter_map(subscriber_cpu)),
        discovery_ns: spread(trials.iter().filter_map(|t| t.discovery_ns.map(|ns| ns as f64))),
        controller_share: spread(controller),
        sent: trials.iter().map(|t| t.sent).sum(),
        lost: sum(|s| s.lost),
        out_of_order: sum(|s| s.out_of_order),
        duplicates: sum(|s| s.duplicates),
        one_way: latency.one_way,
        slowest: latency.slowest,
        slowest_from_intended: latency.from_intended,
        trials,
    }))
}

/// Warning about latencies of a flow that are unknown because the publisher and subscribers have different clocks.
pub(crate) fn without_latency(record: &Record, report: &ConditionReport) -> Option<Warning> {
    let plan = &record.manifest.plan;
    let flow = plan.conditions[report.id].spec.measure.flow().filter(|f| f.rows == FlowRows::OneWay)?;
    let names = (1..=flow.subscribers.clamp(1, MOST_SUBSCRIBERS) as u8).map(subscriber_end);
    let apart = |end: &&str| report.used_trial_ids.iter().any(|id| clocks::apart_in(record, *id, end));
    let apart: Vec<&str> = names.filter(apart).collect();
    let (first, more) = apart.split_first()?;
    let whom = if more.is_empty() { (*first).to_owned() } else { format!("{first} and {} more", more.len()) };
    let text = format!(
        "{}: the latencies of messages to {whom} are not known: the publisher has another clock, and no message goes \
         back, so the clock offset has no known limits",
        report.name
    );
    let remedy = "Measure ping-pong between the places of the publisher and of the subscriber: the report then gives \
        the smallest and largest possible legs.";
    Some(Warning::new("one_way_between_clocks", Severity::Warning, text, remedy))
}

/// Computes the figures of one trial of a flow.
pub fn of_trial(record: &Record, condition: &Condition, id: usize) -> Option<FlowTrial> {
    let flow = condition.spec.measure.flow()?;
    trial(record.manifest.trials.iter().find(|t| t.id == id)?, flow, condition.spec.payload.0)
}

/// Median, minimum and maximum of the values of a figure, one value for each trial.
fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    let n = values.len();
    Some(Spread { median: (values[(n - 1) / 2] + values[n / 2]) / 2.0, low, high })
}

fn trial(trial: &TrialRecord, flow: &Flow, payload: u64) -> Option<FlowTrial> {
    let publisher = trial.ends.get(PUBLISHER)?;
    let of_first = publisher.flow.as_ref()?;
    let sending = || trial.ends.iter().filter(|(name, _)| is_publisher(name)).map(|(_, end)| end);
    let sent = &FlowCounts::of_all(sending().filter_map(|end| end.flow.as_ref()))?;
    // Messages of the publishers whose datagrams the counters of the first publisher's network namespace include.
    let sent_there = if flow.apart { of_first } else { sent };
    let window = sent.part(FlowPart::Window);
    let pack = u64::from(flow.pack);
    let receiving = trial.ends.iter().filter(|(name, _)| !is_publisher(name));
    let mut subscribers: Vec<FlowSubscriber> =
        receiving.filter_map(|(name, end)| subscriber(name, end, window, (pack, payload))).collect();
    subscribers.sort_by_key(|s| s.end.trim_start_matches("pong").parse::<u32>().unwrap_or(1));
    // If publisher and subscriber share a process, its CPU time belongs to both.
    let together = trial.proof.as_ref().is_some_and(|p| p.processes.iter().any(|p| p.ends.len() > 1));
    if together {
        subscribers.iter_mut().for_each(|s| s.cpu_ns = None);
    }
    let one_clock = trial.ends.keys().all(|end| !clocks::apart(trial, end));
    let ends = trial.ends.values().filter(|_| one_clock);
    let spans = || ends.clone().filter_map(|e| Some((e.opened_ns?, e.opened_ns? + e.matched_after_ns?)));
    let discovery_ns = spans().map(|s| s.1).max().zip(spans().map(|s| s.0).min()).map(|(last, first)| last - first);
    Some(FlowTrial {
        trial: trial.id,
        first: of_first.part(FlowPart::Window).first,
        end: of_first.part(FlowPart::Drain).first.max(of_first.part(FlowPart::Window).first),
        begun_within_ns: begun_within(sending()),
        window_ns: window.last_ns - window.first_ns,
        sent: window.messages * pack,
        refused: sent.refused,
        send_ns: sent.send_ns,
        slow_calls_ns: sent.blocked_ns,
        longest_ns: sent.longest_ns,
        cpu_ns: sent.cpu_ns(),
        wire_bytes_per_message: wire_bytes(trial, sent_there),
        cast: addressing::of(trial, sent_there, flow.subscribers),
        told: publisher.flow_answer.clone(),
        matched_after_ns: publisher.matched_after_ns,
        discovery_ns,
        seconds: seconds(sent, window, pack),
        subscribers,
    })
}

/// Maximum time from the first message of the first publisher to the first message of the last publisher, in ns of the
/// controller's clock.
fn begun_within<'a>(sending: impl Iterator<Item = &'a EndRecord>) -> Option<i64> {
    let began = sending.filter_map(|end| {
        let (apart, counts) = (end.clock_apart?, end.flow.as_ref()?);
        let first_ns = counts.parts.iter().map(|p| p.first_ns).find(|ns| *ns > 0)? - apart.offset_ns;
        Some((first_ns - apart.within_ns, first_ns + apart.within_ns))
    });
    let began: Vec<(i64, i64)> = began.collect();
    let (least, most) = (began.iter().map(|b| b.0).min()?, began.iter().map(|b| b.1).max()?);
    (began.len() > 1).then_some(most - least)
}

/// Number of bytes that the publisher's interface sent per message, without the bytes that the interface also sends
/// while no messages are sent.
fn wire_bytes(trial: &TrialRecord, sent: &FlowCounts) -> Option<f64> {
    let space = trial.proof.as_ref()?.spaces.iter().find(|s| s.ends.iter().any(|e| e == PUBLISHER))?;
    let interface = space.path.first()?;
    let bytes = space.data.interfaces.get(interface)?.tx_bytes as f64;
    let quiet = space.quiet.as_ref().and_then(|q| Some((q.interfaces.get(interface)?.tx_bytes, q.ns)));
    let without = quiet.map_or(0.0, |(bytes, ns)| bytes as f64 * space.data.ns as f64 / ns.max(1) as f64);
    (sent.messages() > 0).then(|| (bytes - without).max(0.0) / sent.messages() as f64)
}

fn subscriber(name: &str, end: &EndRecord, sent: &PartCounts, (pack, payload): (u64, u64)) -> Option<FlowSubscriber> {
    let counts = end.flow.as_ref()?;
    let window = counts.part(FlowPart::Window);
    let span_s = (window.last_ns - window.first_ns) as f64 / 1e9;
    let samples_per_s =
        (window.messages > 1 && span_s > 0.0).then(|| (window.messages - 1) as f64 * pack as f64 / span_s);
    Some(FlowSubscriber {
        end: name.to_owned(),
        received: window.messages * pack,
        lost: sent.messages.saturating_sub(window.messages) * pack,
        out_of_order: counts.out_of_order * pack,
        duplicates: counts.duplicates * pack,
        samples_per_s,
        payload_mbit_s: samples_per_s.map(|n| n * payload as f64 * 8.0 / 1e6),
        cpu_ns: counts.cpu_ns(),
        matched_after_ns: end.matched_after_ns,
        seconds: seconds(counts, window, pack),
    })
}

/// Counts of samples for each whole second of `part`, the window of a flow.
fn seconds(counts: &FlowCounts, part: &PartCounts, pack: u64) -> Vec<FlowSecond> {
    const SECOND: i64 = 1_000_000_000;
    let within = counts.seconds.iter().filter(|s| s.second * SECOND >= part.first_ns);
    let within = within.filter(|s| (s.second + 1) * SECOND <= part.last_ns);
    let second = |s: &tailbound_model::SecondCounts| FlowSecond {
        after_ns: s.second * SECOND - part.first_ns,
        samples: s.messages * pack,
        missing: s.missing * pack,
        out_of_order: s.out_of_order * pack,
        duplicates: s.duplicates * pack,
        slow_calls_ns: s.blocked_ns,
    };
    within.map(second).collect()
}
