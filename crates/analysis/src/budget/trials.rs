//! Checks limits of figures with one value per trial: means, and the throughput and losses of flows. Their intervals
//! are computed over trials.

use crate::budget::judged::{Judged, lost, per_cent};
use crate::compare::CompareError;
use crate::compare::mean_of_trial;
use tailbound_document::number::{three_digits, time};
use tailbound_document::{BudgetOutcome, ConditionReport, FlowReport, FlowSubscriber};
use tailbound_model::{FlowLimit, Metric};
use tailbound_record::Record;
use tailbound_stats::compare::{WELCH_TRIALS, mean_interval};

/// Checks a limit of the mean over the answered messages; the mean is computed for each trial.
pub(crate) fn mean(
    record: &Record,
    condition: &ConditionReport,
    metric: Metric,
    limit: i64,
) -> Result<Judged, CompareError> {
    let means = condition.used_trial_ids.iter().map(|id| mean_of_trial(record, *id, metric));
    Ok(match means.collect::<Result<Option<Vec<f64>>, _>>()? {
        Some(trials) => judged(&trials, limit as f64, false, time),
        None => {
            let why = format!("in at least one trial, no message has a value of {}", metric.key());
            (BudgetOutcome::Undecided, String::new(), why)
        }
    })
}

/// Checks a limit of the throughput or of the losses of a flow.
pub(crate) fn flow(flow: &FlowReport, limit: FlowLimit) -> Judged {
    let slowest = |of: fn(&FlowSubscriber) -> Option<f64>| -> Vec<f64> {
        // A subscriber that received nothing counts as the slowest.
        let least = |all: &[FlowSubscriber]| all.iter().map(|s| of(s).unwrap_or(0.0)).reduce(f64::min);
        flow.trials.iter().map(|t| least(&t.subscribers).unwrap_or(0.0)).collect()
    };
    match limit {
        FlowLimit::SamplesPerSecond(least) => judged(&slowest(|s| s.samples_per_s), least, true, samples),
        FlowLimit::PayloadMbitPerSecond(least) => judged(&slowest(|s| s.payload_mbit_s), least, true, mbit),
        FlowLimit::Lost(most) => {
            // If a message is lost, all samples in the message are lost.
            let messages = |samples: u64| samples / u64::from(flow.pack.max(1));
            lost((messages(flow.lost), messages(flow.sent) * u64::from(flow.subscribers)), most)
        }
    }
}

/// Formats a budget's limit for a statistic of a flow as text.
pub(crate) fn flow_limit(limit: FlowLimit) -> String {
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

/// Checks the mean over trials against an upper limit, or against a lower limit if `at_least` is true.
fn judged(trials: &[f64], limit: f64, at_least: bool, shown: fn(f64) -> String) -> Judged {
    use BudgetOutcome::*;
    // Logarithms are used as in `compare`, unless a value is not above zero and has no logarithm.
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
            format!(
                "a decision needs {more} more trials, because the interval is computed over trials (`--set \
                repeat={WELCH_TRIALS}`)"
            ),
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
    let why =
        if outcome == Undecided { "the limit lies inside the 95 % interval: a decision needs more trials" } else { "" };
    (outcome, found, why.into())
}
