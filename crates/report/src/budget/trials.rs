//! Limits of figures that a trial has one of: means, and what a flow carries. Their intervals are over trials.

use super::BudgetOutcome;
use super::absolute::{Judged, lost, per_cent};
use crate::compare::{CompareError, mean_of_trial};
use crate::condition::ConditionReport;
use crate::flow::{FlowReport, FlowSubscriber};
use crate::number::{three_digits, time};
use tailbound_model::{FlowLimit, Metric};
use tailbound_record::Record;
use tailbound_stats::compare::{WELCH_TRIALS, mean_interval};

/// The mean of the answered messages, trial by trial.
pub(super) fn mean(
    record: &Record,
    condition: &ConditionReport,
    metric: Metric,
    limit: i64,
) -> Result<Judged, CompareError> {
    let means = condition.used_trial_ids.iter().map(|id| mean_of_trial(record, *id, metric));
    Ok(match means.collect::<Result<Option<Vec<f64>>, _>>()? {
        Some(trials) => judged(&trials, limit as f64, false, time),
        None => (BudgetOutcome::Undecided, String::new(), "in a trial no message has a value".into()),
    })
}

/// What a flow carries, or loses.
pub(super) fn flow(flow: &FlowReport, limit: FlowLimit) -> Judged {
    let slowest = |of: fn(&FlowSubscriber) -> Option<f64>| -> Vec<f64> {
        // A subscriber that nothing reached is the slowest.
        let least = |all: &[FlowSubscriber]| all.iter().map(|s| of(s).unwrap_or(0.0)).reduce(f64::min);
        flow.trials.iter().map(|t| least(&t.subscribers).unwrap_or(0.0)).collect()
    };
    match limit {
        FlowLimit::SamplesPerSecond(least) => judged(&slowest(|s| s.samples_per_s), least, true, samples),
        FlowLimit::PayloadMbitPerSecond(least) => judged(&slowest(|s| s.payload_mbit_s), least, true, mbit),
        FlowLimit::Lost(most) => {
            // What is in one message is lost with it.
            let messages = |samples: u64| samples / u64::from(flow.pack.max(1));
            lost((messages(flow.lost), messages(flow.sent) * u64::from(flow.subscribers)), most)
        }
    }
}

/// The limit of a flow in words.
pub(super) fn flow_limit(limit: FlowLimit) -> String {
    match limit {
        FlowLimit::SamplesPerSecond(least) => format!("at least {}", samples(least)),
        FlowLimit::PayloadMbitPerSecond(least) => format!("at least {}", mbit(least)),
        FlowLimit::Lost(None) => "none".into(),
        FlowLimit::Lost(Some(most)) => format!("at most {}", per_cent(most)),
    }
}

fn samples(per_s: f64) -> String {
    format!("{}/s", three_digits(per_s))
}

fn mbit(per_s: f64) -> String {
    format!("{} Mbit/s", three_digits(per_s))
}

/// The mean over trials against a limit from above, or from below.
fn judged(trials: &[f64], limit: f64, at_least: bool, shown: fn(f64) -> String) -> Judged {
    use BudgetOutcome::*;
    // On the scale of `compare`; only what is not above zero in every trial has no logarithm.
    let logarithms = !trials.is_empty() && trials.iter().all(|v| *v > 0.0);
    let to = |v: f64| if logarithms { v.ln() } else { v };
    let back = |v: f64| if logarithms { v.exp() } else { v };
    let trials: Vec<f64> = trials.iter().map(|v| to(*v)).collect();
    let mean = back(trials.iter().sum::<f64>() / trials.len().max(1) as f64);
    let Some((low, high)) = mean_interval(&trials).map(|(low, high)| (back(low), back(high))) else {
        let more = WELCH_TRIALS.saturating_sub(trials.len());
        let many = if trials.len() == 1 { "trial" } else { "trials" };
        return (
            Undecided,
            format!("{} in {} {many}", shown(mean), trials.len()),
            format!("it takes {more} more: the interval is one over trials (`--set repeat={WELCH_TRIALS}`)"),
        );
    };
    let found = format!("{} (95 %: {} to {})", shown(mean), shown(low), shown(high));
    let outcome = match at_least {
        false if high <= limit => Holds,
        false if low > limit => Broken,
        true if low >= limit => Holds,
        true if high < limit => Broken,
        _ => Undecided,
    };
    let why = if outcome == Undecided { "the limit lies inside the interval: more trials would tell" } else { "" };
    (outcome, found, why.into())
}
