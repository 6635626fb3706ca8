//! From the counts of a record to the figures of a flow, and the sentences about them.

use super::{FlowReport, FlowSecond, FlowSubscriber, FlowTrial, Spread, cast, latency};
use crate::clocks;
use crate::condition::ConditionReport;
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use crate::number::{count, three_digits, time};
use tailbound_model::{
    Condition, Flow, FlowCounts, FlowPart, FlowRows, MOST_SUBSCRIBERS, PartCounts, Severity, Warning, is_publisher,
    subscriber_end,
};
use tailbound_record::{EndRecord, Record, RecordError, TrialRecord};
use tailbound_stats::Quantile;

const PUBLISHER: &str = "ping";
/// From this share of lost samples on the loss is the news.
const MANY_LOST: f64 = 0.1;

/// The flow of a condition; `None` where it measures something else, or nothing was counted.
///
/// # Errors
/// The rows of a trial cannot be read.
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
    // A subscriber that nothing reached is the slowest of all.
    let of_slowest = |value: fn(&FlowSubscriber) -> Option<f64>| {
        let least = |t: &FlowTrial| t.subscribers.iter().map(|s| value(s).unwrap_or(0.0)).reduce(f64::min);
        spread(trials.iter().filter_map(least)).filter(|s| s.high > 0.0)
    };
    let per = |part: Option<i64>, whole: u64| part.filter(|_| whole > 0).map(|part| part as f64 / whole as f64);
    let wire = |t: &FlowTrial| {
        let per_s = t.sent as f64 / pack / (t.window_ns as f64 / 1e9);
        Some(t.wire_octets_per_message? * per_s * 8.0 / 1e6).filter(|v| v.is_finite())
    };
    let subscriber_cpu = |t: &FlowTrial| {
        let all: Vec<f64> = t.subscribers.iter().filter_map(|s| per(s.cpu_ns, s.received)).collect();
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    // Calls that were refused at the end of the window lie beyond its last message.
    let whole = |t: &FlowTrial| (t.window_ns * i64::from(flow.publishers)).max(t.send_ns).max(1);
    let blocked = |t: &FlowTrial| t.blocked_ns as f64 / whole(t) as f64;
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
        blocked_share: spread(trials.iter().filter(|t| t.window_ns > 0).map(blocked)),
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

/// The latencies that nobody knows, since the publisher's clock is not that of subscribers.
pub(crate) fn without_latency(record: &Record, report: &ConditionReport) -> Option<Warning> {
    let plan = &record.manifest.plan;
    let flow = plan.conditions[report.id].spec.measure.flow().filter(|f| f.rows == FlowRows::OneWay)?;
    let names = (1..=flow.subscribers.clamp(1, MOST_SUBSCRIBERS) as u8).map(subscriber_end);
    let apart = |end: &&str| report.used_trial_ids.iter().any(|id| clocks::apart_in(record, *id, end));
    let apart: Vec<&str> = names.filter(apart).collect();
    let (first, more) = apart.split_first()?;
    let whom = if more.is_empty() { (*first).to_owned() } else { format!("{first} and {} more", more.len()) };
    let text = format!(
        "{}: how long messages took to {whom} cannot be told: the clock there is another one than the publisher's, and \
         no message goes back that would bound their difference",
        report.name
    );
    let mend = "Measure ping-pong between these places: its legs are given from a least to a most.";
    Some(Warning::new("one_way_between_clocks", Severity::Warning, text, mend))
}

/// One trial of a flow.
pub(crate) fn of_trial(record: &Record, condition: &Condition, id: usize) -> Option<FlowTrial> {
    let flow = condition.spec.measure.flow()?;
    trial(record.manifest.trials.iter().find(|t| t.id == id)?, flow, condition.spec.payload.0)
}

/// Median, least and most.
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
    // What was counted in the first one's network namespace: of all that share it.
    let sent_there = if flow.apart { of_first } else { sent };
    let window = sent.part(FlowPart::Window);
    let pack = u64::from(flow.pack);
    let receiving = trial.ends.iter().filter(|(name, _)| !is_publisher(name));
    let mut subscribers: Vec<FlowSubscriber> =
        receiving.filter_map(|(name, end)| subscriber(name, end, window, (pack, payload))).collect();
    subscribers.sort_by_key(|s| s.end.trim_start_matches("pong").parse::<u32>().unwrap_or(1));
    // Publisher and subscriber are one process: its CPU time is of both.
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
        blocked_ns: sent.blocked_ns,
        longest_ns: sent.longest_ns,
        cpu_ns: sent.cpu_ns(),
        wire_octets_per_message: wire_octets(trial, sent_there),
        cast: cast::of(trial, sent_there, flow.subscribers),
        told: publisher.flow_told.clone(),
        matched_after_ns: publisher.matched_after_ns,
        discovery_ns,
        seconds: seconds(sent, window, pack),
        subscribers,
    })
}

/// From the first to the last publisher's first message at most, by the controller's clock.
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

/// What the interface of the publisher sent for each message, less what it sends without messages.
fn wire_octets(trial: &TrialRecord, sent: &FlowCounts) -> Option<f64> {
    let space = trial.proof.as_ref()?.spaces.iter().find(|s| s.ends.iter().any(|e| e == PUBLISHER))?;
    let interface = space.path.first()?;
    let octets = space.data.interfaces.get(interface)?.tx_bytes as f64;
    let quiet = space.quiet.as_ref().and_then(|q| Some((q.interfaces.get(interface)?.tx_bytes, q.ns)));
    let without = quiet.map_or(0.0, |(octets, ns)| octets as f64 * space.data.ns as f64 / ns.max(1) as f64);
    (sent.messages() > 0).then(|| (octets - without).max(0.0) / sent.messages() as f64)
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

/// The whole seconds within a part.
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
        blocked_ns: s.blocked_ns,
    };
    within.map(second).collect()
}

/// What each flow came to, the largest loss first.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let mut told: Vec<(f64, Finding)> = report.conditions.iter().filter_map(told).collect();
    told.sort_by(|a, b| b.0.total_cmp(&a.0));
    told.into_iter().map(|(_, finding)| finding).collect()
}

fn told(condition: &ConditionReport) -> Option<(f64, Finding)> {
    let flow = condition.flow.as_ref()?;
    let expected = flow.sent * u64::from(flow.subscribers);
    let lost = if expected == 0 { 1.0 } else { flow.lost as f64 / expected as f64 };
    let whom = match flow.subscribers {
        1 => "the subscriber".to_owned(),
        n => format!("the slowest of {n} subscribers"),
    };
    let Some((samples, octets)) = flow.samples_per_s.zip(flow.payload_mbit_s) else {
        // Told already, of the pings among them.
        if condition.finding.is_some() && condition.counts.scheduled > 0 {
            return None;
        }
        let why = condition.finding.clone().unwrap_or_else(|| no_rate(flow, &whom));
        let text = format!("{}: {why}.", condition.name);
        return Some((lost, finding(FindingLevel::Failed, "flow_lost", text, &[condition.id])));
    };
    let share = match flow.lost {
        0 => "none lost".to_owned(),
        n => format!("{} of {} lost ({} %)", count(n), count(expected), three_digits(100.0 * lost)),
    };
    let blocked = flow.blocked_share.filter(|b| b.median >= 0.01);
    let blocked = blocked.map_or(String::new(), |b| {
        format!("; the publisher was blocked {} % of the time", three_digits(100.0 * b.median))
    });
    let late = flow.slowest.as_ref().and_then(|m| m.quantile(0.5)?.value_ns());
    let late = late.map_or(String::new(), |ns| format!("; half of them have reached all within {}", time(ns as f64)));
    let text = format!(
        "{}: {} samples/s ({} Mbit/s of payload) reach {whom}, {share}{blocked}{late}.",
        condition.name,
        three_digits(samples.median),
        three_digits(octets.median)
    );
    let text = match flow.publishers {
        1 => text,
        n => {
            let begun = flow.trials.iter().filter_map(|t| t.begun_within_ns).max();
            let begun = begun.map_or(String::new(), |ns| format!(" They began within {}.", time(ns as f64)));
            format!("{text} {n} publishers send.{begun}")
        }
    };
    let level = if lost >= MANY_LOST { FindingLevel::Failed } else { FindingLevel::Result };
    let code = if lost >= MANY_LOST { "flow_lost" } else { "flow" };
    Some((lost, finding(level, code, text, &[condition.id])))
}

/// Why there are no samples per second.
fn no_rate(flow: &FlowReport, whom: &str) -> String {
    let sent = count(flow.sent);
    match flow.trials.iter().flat_map(|t| &t.subscribers).map(|s| s.received).sum() {
        _ if flow.sent == 0 => {
            let refused: u64 = flow.trials.iter().map(|t| t.refused).sum();
            format!(
                "nothing was sent in the window, and the driver refused {} calls that send: one began before it and did \
                 not return in time, or the publisher was not given a CPU",
                count(refused)
            )
        }
        0 => format!("of {sent} samples sent none reached {whom}"),
        n => format!("of {sent} samples sent only {} reached {whom}, too few for a rate", count(n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flow_without_a_rate_says_why() {
        let flow = |sent: u64, received: u64| -> FlowReport {
            serde_json::from_value(json!({
                "subscribers": 1, "pack": 1, "sent": sent, "lost": sent - received, "out_of_order": 0, "duplicates": 0,
                "trials": [{
                    "trial": 0, "first": 0, "end": sent, "window_ns": 0, "sent": sent, "refused": 0, "send_ns": 0,
                    "blocked_ns": 0, "longest_ns": 0, "seconds": [], "subscribers": [{
                        "end": "pong", "received": received, "lost": sent - received, "out_of_order": 0,
                        "duplicates": 0, "seconds": []
                    }]
                }]
            }))
            .unwrap()
        };
        let why = |sent, received| no_rate(&flow(sent, received), "the subscriber");
        assert!(
            why(0, 0).starts_with("nothing was sent in the window, and the driver refused 0 calls"),
            "{}",
            why(0, 0)
        );
        assert_eq!(why(4_000, 0), "of 4,000 samples sent none reached the subscriber");
        assert_eq!(why(4_000, 1), "of 4,000 samples sent only 1 reached the subscriber, too few for a rate");
    }
}
