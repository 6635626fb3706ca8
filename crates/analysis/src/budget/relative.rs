//! Checks limits relative to a baseline record, by a comparison of the record with the baseline.

use crate::budget::absolute::there_is;
use crate::budget::judged::{Judged, per_cent};
use crate::compare::compare_records;
use crate::compare::{CompareError, CompareOptions};
use std::collections::BTreeSet;
use tailbound_document::number::{count, three_digits};
use tailbound_document::{BudgetCheck, BudgetOutcome, Compared, ConditionReport, Pair, Report, VerdictWord};
use tailbound_model::{BaselineBudget, LOST, Metric, THROUGHPUT};
use tailbound_record::Record;
use tailbound_stats::share_difference;

pub(crate) fn checks(
    report: &Report,
    record: &Record,
    baseline: &Record,
    budget: &BaselineBudget,
) -> Result<Vec<BudgetCheck>, CompareError> {
    let mut metrics: Vec<Metric> = Vec::new();
    for (metric, _) in &budget.statistics {
        if !metrics.contains(metric) {
            metrics.push(*metric);
        }
    }
    let throughput = (!budget.throughput.is_empty()).then_some((THROUGHPUT, &budget.throughput));
    let wanted: Vec<(&str, &Vec<String>)> =
        budget.statistics.iter().map(|(metric, of)| (metric.key(), of)).chain(throughput).collect();
    // Either messages or flows are compared, depending on what a condition measures. If no condition has a metric with
    // the given name, the budget is wrong.
    let there: BTreeSet<&str> = report.conditions.iter().flat_map(comparable).collect();
    if let Some((key, _)) = wanted.iter().find(|(key, _)| !there.is_empty() && !there.contains(key)) {
        return Err(CompareError::refused(
            format!("the budget compares `{key}` with the baseline, but the record does not have this figure"),
            format!("the record has: {}", there.into_iter().collect::<Vec<_>>().join(", ")),
        ));
    }
    let options = CompareOptions { metrics, margin: Some(budget.tolerance) };
    let comparison = compare_records(baseline, record, &options)?;
    let functional = [&comparison.a, &comparison.b].into_iter().find_map(|s| s.functional_only.as_ref());
    let mut checks = Vec::new();
    let mut pairs: Vec<&Pair> = comparison.pairs.iter().collect();
    pairs.sort_by_key(|p| p.b.condition);
    for pair in pairs {
        let of = report.conditions.iter().find(|c| c.id == pair.b.condition);
        let there = of.map_or(Vec::new(), comparable);
        for (key, statistic) in wanted.iter().flat_map(|(key, all)| all.iter().map(move |s| (*key, s.as_str()))) {
            if !there.is_empty() && !there.contains(&key) {
                continue;
            }
            // If both sides have the same payload, the ratio of Mbit/s equals the ratio of samples/s.
            let compared = if statistic == "Mbit/s" { "samples/s" } else { statistic };
            let compared = pair.statistics.iter().find(|c| c.metric == key && c.statistic == compared);
            let (outcome, found, why) = match (statistic, compared) {
                (LOST, _) => lost(pair, of.and_then(|c| c.flow.as_ref()).map_or(1, |f| f.pack), budget.tolerance),
                (_, Some(compared)) => judged(compared, budget.tolerance),
                (_, None) => continue,
            };
            let mut check = BudgetCheck {
                condition: pair.name.clone(),
                what: format!("{key} {statistic} against the baseline"),
                limit: limit(key, statistic, budget.tolerance),
                found,
                outcome,
                why,
            };
            let left_out = pair.b.left_out.first().or(pair.a.left_out.first());
            let distrust = left_out.map(|trial| format!("trial {trial} is invalid or did not end"));
            if let Some(why) =
                functional.map(|why| format!("the times of a record say nothing about speed: {why}")).or(distrust)
            {
                (check.outcome, check.why) = (BudgetOutcome::Undecided, why);
            }
            checks.push(check);
        }
    }
    Ok(checks)
}

/// Names of the metrics of a condition that can be compared; for a flow, only the throughput.
fn comparable(condition: &ConditionReport) -> Vec<&'static str> {
    match condition.flow {
        Some(_) => vec![THROUGHPUT],
        None => there_is(condition),
    }
}

fn limit(key: &str, statistic: &str, tolerance: f64) -> String {
    match statistic {
        LOST => {
            format!("the losses exceed the losses of the baseline by at most {} of all messages", per_cent(tolerance))
        }
        _ if key == THROUGHPUT => format!("at most {} less", per_cent(tolerance)),
        _ => format!("at most {} more", per_cent(tolerance)),
    }
}

fn judged(c: &Compared, tolerance: f64) -> Judged {
    use BudgetOutcome::*;
    let found = match (c.ratio, c.interval) {
        (Some(ratio), Some([low, high])) => {
            format!("{} times (95 %: {} to {})", three_digits(ratio), three_digits(low), three_digits(high))
        }
        (Some(ratio), None) => format!("{} times", three_digits(ratio)),
        _ => String::new(),
    };
    let at_least = c.metric == THROUGHPUT;
    let within = |ratio: f64| if at_least { ratio >= 1.0 - tolerance } else { ratio <= 1.0 + tolerance };
    let (outcome, why) = match (c.verdict, c.interval) {
        (VerdictWord::NotEnoughData, _) => (Undecided, c.why.clone().unwrap_or_else(|| too_few(c))),
        (_, Some(ends)) if ends.into_iter().all(within) => (Holds, String::new()),
        (_, Some(ends)) if !ends.into_iter().any(within) => (Broken, String::new()),
        // The quantile lies among the messages without an answer, and there are enough trials for a verdict.
        (VerdictWord::Slower, None) => (Broken, c.why.clone().unwrap_or_default()),
        _ => (Undecided, "the tolerance lies inside the 95 % interval: a decision needs more trials".into()),
    };
    (outcome, found, why)
}

/// Checks by how much the share of lost messages exceeds the share in the baseline. The check uses the difference of
/// the shares and not their ratio, because a share can be zero.
fn lost(pair: &Pair, pack: u32, tolerance: f64) -> Judged {
    use BudgetOutcome::*;
    // If a message is lost, all samples in the message are lost.
    let messages = |samples: u64| samples / u64::from(pack.max(1));
    let [a, b] = [&pair.a, &pair.b].map(|side| (messages(side.lost), messages(side.scheduled)));
    if a.1 == 0 || b.1 == 0 {
        return (Undecided, String::new(), "the record or the baseline has no measured message".into());
    }
    let (low, high) = share_difference(a, b);
    let found = format!(
        "{} of {}, in the baseline {} of {}: {} more (95 %: {} to {})",
        count(b.0),
        count(b.1),
        count(a.0),
        count(a.1),
        per_cent(b.0 as f64 / b.1 as f64 - a.0 as f64 / a.1 as f64),
        per_cent(low),
        per_cent(high)
    );
    match () {
        () if high <= tolerance => (Holds, found, String::new()),
        () if low > tolerance => (Broken, found, String::new()),
        () => (Undecided, found, "the tolerance lies inside the 95 % interval: a decision needs more messages".into()),
    }
}

fn too_few(c: &Compared) -> String {
    match c.more_trials {
        Some(1) => "a decision needs 1 more trial in the record and in the baseline".into(),
        Some(more) => format!("a decision needs {more} more trials in the record and in the baseline"),
        None => "there are not enough data for a decision".into(),
    }
}
