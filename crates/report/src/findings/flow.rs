//! Findings about flows: throughput, losses, slow send calls and latency.

use crate::findings::delivery;
use crate::findings::finding::finding;
use tailbound_document::number::{count, three_digits, time};
use tailbound_document::{ConditionReport, Finding, FindingLevel, FlowReport, Report};

/// If at least this share of the samples of a flow is lost, the finding about the flow is a failure.
const MANY_LOST: f64 = 0.1;

/// One finding about each flow, the flow with the largest loss first.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let mut told: Vec<(f64, Finding)> = report.conditions.iter().filter_map(|c| told(report, c)).collect();
    told.sort_by(|a, b| b.0.total_cmp(&a.0));
    told.into_iter().map(|(_, finding)| finding).collect()
}

fn told(report: &Report, condition: &ConditionReport) -> Option<(f64, Finding)> {
    let flow = condition.flow.as_ref()?;
    let expected = flow.sent * u64::from(flow.subscribers);
    let lost = if expected == 0 { 1.0 } else { flow.lost as f64 / expected as f64 };
    let whom = match flow.subscribers {
        1 => "the subscriber".to_owned(),
        n => format!("the slowest of {n} subscribers"),
    };
    let promise = delivery::broken_promise(report, condition);
    let failed = if promise.is_some() { delivery::RELIABLE_LOST } else { "flow_lost" };
    let promise = promise.unwrap_or_default();
    let Some((samples, bytes)) = flow.samples_per_s.zip(flow.payload_mbit_s) else {
        // The pings of this flow have a finding of their own.
        if condition.finding.is_some() && condition.counts.scheduled > 0 {
            return None;
        }
        let why = condition.finding.clone().unwrap_or_else(|| no_rate(flow, &whom));
        let text = format!("{}: {why}.{promise}", condition.name);
        return Some((lost, finding(FindingLevel::Failed, failed, text, &[condition.id])));
    };
    let share = match flow.lost {
        0 => "none lost".to_owned(),
        n => format!("{} of {} lost ({} %)", count(n), count(expected), three_digits(100.0 * lost)),
    };
    let slow = flow.slow_calls_share.filter(|b| b.median >= 0.01);
    let slow = slow.map_or(String::new(), |share| {
        format!(
            "; {} % of the time passed in send calls of at least 100 us or refused ones",
            three_digits(100.0 * share.median)
        )
    });
    let late = flow.slowest.as_ref().and_then(|m| m.quantile(0.5)?.value_ns());
    let late = late.map_or(String::new(), |ns| {
        format!(
            "; half of the messages have reached all subscribers within \
        {}",
            time(ns as f64)
        )
    });
    let text = format!(
        "{}: {} samples/s ({} Mbit/s of payload) reach {whom}, {share}{slow}{late}.",
        condition.name,
        three_digits(samples.median),
        three_digits(bytes.median)
    );
    let text = match flow.publishers {
        1 => text,
        n => {
            let begun = flow.trials.iter().filter_map(|t| t.begun_within_ns).max();
            let begun = begun.map_or(String::new(), |ns| format!(" They began within {}.", time(ns as f64)));
            format!("{text} {n} publishers send.{begun}")
        }
    };
    let (level, code) = match lost >= MANY_LOST || !promise.is_empty() {
        true => (FindingLevel::Failed, failed),
        false => (FindingLevel::Result, "flow"),
    };
    Some((lost, finding(level, code, text + &promise, &[condition.id])))
}

/// Reason why a flow has no figure of samples per second.
fn no_rate(flow: &FlowReport, whom: &str) -> String {
    let sent = count(flow.sent);
    match flow.trials.iter().flat_map(|t| &t.subscribers).map(|s| s.received).sum() {
        _ if flow.sent == 0 => {
            let refused: u64 = flow.trials.iter().map(|t| t.refused).sum();
            format!(
                "nothing was sent in the window, and the driver refused {} send calls: a send call began before the \
                    window and did not return in time, or the publisher was not given a CPU",
                count(refused)
            )
        }
        0 => format!("none of the {sent} sent samples reached {whom}"),
        n => format!("only {} of the {sent} sent samples reached {whom}, too few for a rate", count(n)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Makes the report of a flow of one trial without a rate.
    fn flow(sent: u64, received: u64) -> FlowReport {
        serde_json::from_value(json!({
            "subscribers": 1, "pack": 1, "sent": sent, "lost": sent - received, "out_of_order": 0, "duplicates": 0,
            "trials": [{
                "trial": 0, "first": 0, "end": sent, "window_ns": 0, "sent": sent, "refused": 0, "send_ns": 0,
                "slow_calls_ns": 0, "longest_ns": 0, "seconds": [], "subscribers": [{
                    "end": "pong", "received": received, "lost": sent - received, "out_of_order": 0,
                    "duplicates": 0, "seconds": []
                }]
            }]
        }))
        .unwrap()
    }

    /// Code and text of the finding about a flow whose ends have this reliability and keep all messages.
    fn told(flow: FlowReport, reliability: &str) -> (String, String) {
        let text = include_str!("../../fixtures/report-d26457f.json");
        let mut report: Report = serde_json::from_str(text).unwrap();
        report.conditions[0].flow = Some(flow);
        for end in report.trials.iter_mut().flat_map(|t| t.ends.values_mut()) {
            let qos = [("reliability", reliability), ("history", "keep-all")];
            end.qos = qos.map(|(policy, value)| (policy.to_owned(), value.to_owned())).into();
        }
        let finding = findings(&report).remove(0);
        (finding.code, finding.text.replace('\u{202f}', " "))
    }

    /// Tests that a single lost sample of a reliable flow is a failure with a code of its own.
    #[test]
    fn a_loss_of_a_reliable_flow_breaks_a_promise() {
        let (code, text) = told(flow(4_000, 1), "reliable");
        assert_eq!(code, "reliable_lost");
        let promise = "too few for a rate. The QoS of all ends was `reliable` with `history: keep-all`, which promises \
            the delivery of every message.";
        assert!(text.ends_with(promise), "{text}");
        assert_eq!(told(flow(4_000, 1), "best-effort").0, "flow_lost");
    }

    /// Tests that slow send calls are not called blocked: the publisher may have waited for a CPU, or have worked.
    #[test]
    fn slow_send_calls_are_called_slow() {
        let spread = |median: f64| Some(tailbound_document::Spread { median, low: median, high: median });
        let rates = FlowReport {
            samples_per_s: spread(30_000.0),
            payload_mbit_s: spread(15.4),
            slow_calls_share: spread(0.25),
            ..flow(4_000, 4_000)
        };
        let (code, text) = told(rates, "reliable");
        assert_eq!(code, "flow");
        let words = "none lost; 25 % of the time passed in send calls of at least 100 us or refused ones.";
        assert!(text.ends_with(words), "{text}");
    }

    #[test]
    fn a_flow_without_a_rate_says_why() {
        let why = |sent, received| no_rate(&flow(sent, received), "the subscriber");
        assert!(
            why(0, 0).starts_with("nothing was sent in the window, and the driver refused 0 send calls"),
            "{}",
            why(0, 0)
        );
        assert_eq!(why(4_000, 0), "none of the 4,000 sent samples reached the subscriber");
        assert_eq!(why(4_000, 1), "only 1 of the 4,000 sent samples reached the subscriber, too few for a rate");
    }
}
