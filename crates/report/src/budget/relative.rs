//! Limits relative to a baseline record, by the comparison of both.

use super::absolute::{Judged, per_cent, there_is};
use super::{BudgetCheck, BudgetOutcome};
use crate::compare::{CompareError, CompareOptions, Compared, Pair, VerdictWord, compare_records};
use crate::condition::ConditionReport;
use crate::document::Report;
use crate::number::{count, three_digits};
use std::collections::BTreeSet;
use tailbound_model::{BaselineBudget, LOST, Metric, THROUGHPUT};
use tailbound_record::Record;
use tailbound_stats::share_difference;

pub(super) fn checks(
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
    // Messages are compared or flows are, whichever a condition has; a name that no condition has is a mistake.
    let there: BTreeSet<&str> = report.conditions.iter().flat_map(comparable).collect();
    if let Some((key, _)) = wanted.iter().find(|(key, _)| !there.is_empty() && !there.contains(key)) {
        return Err(CompareError::refused(format!(
            "the budget names `{key}` against the baseline, which the record lacks\n  there is: {}",
            there.into_iter().collect::<Vec<_>>().join(", ")
        )));
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
            // With one payload on both sides the ratio of Mbit/s is that of samples/s.
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
            if let Some(why) = functional.map(|why| format!("a record is good for function only: {why}")).or(distrust) {
                (check.outcome, check.why) = (BudgetOutcome::Undecided, why);
            }
            checks.push(check);
        }
    }
    Ok(checks)
}

/// What can be compared of a condition: of a flow its throughput alone.
fn comparable(condition: &ConditionReport) -> Vec<&'static str> {
    match condition.flow {
        Some(_) => vec![THROUGHPUT],
        None => there_is(condition),
    }
}

fn limit(key: &str, statistic: &str, tolerance: f64) -> String {
    match statistic {
        LOST => format!("at most {} of all more", per_cent(tolerance)),
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
        // Later than everything, in trials enough to tell.
        (VerdictWord::Slower, None) => (Broken, c.why.clone().unwrap_or_default()),
        _ => (Undecided, "the tolerance lies inside the interval: more trials would tell".into()),
    };
    (outcome, found, why)
}

/// By how much more of all was lost: a share that may be nothing has no ratio.
fn lost(pair: &Pair, pack: u32, tolerance: f64) -> Judged {
    use BudgetOutcome::*;
    // What is in one message is lost with it.
    let messages = |samples: u64| samples / u64::from(pack.max(1));
    let [a, b] = [&pair.a, &pair.b].map(|side| (messages(side.lost), messages(side.scheduled)));
    if a.1 == 0 || b.1 == 0 {
        return (Undecided, String::new(), "on one side nothing was measured".into());
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
        () => (Undecided, found, "the tolerance lies inside the interval: more messages would tell".into()),
    }
}

fn too_few(c: &Compared) -> String {
    match c.more_trials {
        Some(1) => "it takes 1 more trial a side".into(),
        Some(more) => format!("it takes {more} more trials a side"),
        None => "there is not enough data".into(),
    }
}
