//! Limits relative to a baseline record, by the comparison of both.

use super::absolute::per_cent;
use super::{BudgetCheck, BudgetOutcome};
use crate::compare::{CompareError, CompareOptions, Compared, Pair, VerdictWord, compare_records};
use crate::number::three_digits;
use tailbound_model::{BaselineBudget, Metric};
use tailbound_record::Record;

pub(super) fn checks(
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
    let options = CompareOptions { metrics, margin: Some(budget.tolerance) };
    let comparison = compare_records(baseline, record, &options)?;
    let functional = [&comparison.a, &comparison.b].into_iter().find_map(|s| s.functional_only.as_ref());
    let mut checks = Vec::new();
    let mut pairs: Vec<&Pair> = comparison.pairs.iter().collect();
    pairs.sort_by_key(|p| p.b.condition);
    for pair in pairs {
        for (metric, statistics) in &budget.statistics {
            let wanted = |c: &&Compared| c.metric == metric.key() && statistics.contains(&c.statistic);
            for compared in pair.statistics.iter().filter(wanted) {
                let mut check = check(pair, compared, budget.tolerance);
                if let Some(why) = functional {
                    check.outcome = BudgetOutcome::Undecided;
                    check.why = format!("a record is good for function only: {why}");
                }
                checks.push(check);
            }
        }
    }
    Ok(checks)
}

fn check(pair: &Pair, c: &Compared, tolerance: f64) -> BudgetCheck {
    use BudgetOutcome::*;
    let found = match (c.ratio, c.interval) {
        (Some(ratio), Some([low, high])) => {
            format!("{} times (95 %: {} to {})", three_digits(ratio), three_digits(low), three_digits(high))
        }
        (Some(ratio), None) => format!("{} times", three_digits(ratio)),
        _ => String::new(),
    };
    let most = 1.0 + tolerance;
    let (mut outcome, mut why) = match (c.verdict, c.interval) {
        (VerdictWord::NotEnoughData, _) => (Undecided, c.why.clone().unwrap_or_else(|| too_few(c))),
        (_, Some([_, high])) if high <= most => (Holds, String::new()),
        (_, Some([low, _])) if low > most => (Broken, String::new()),
        // Later than everything, in trials enough to tell.
        (VerdictWord::Slower, None) => (Broken, c.why.clone().unwrap_or_default()),
        _ => (Undecided, "the tolerance lies inside the interval: more trials would tell".into()),
    };
    if let Some(trial) = pair.b.left_out.first().or(pair.a.left_out.first()) {
        (outcome, why) = (Undecided, format!("trial {trial} is invalid or did not end"));
    }
    BudgetCheck {
        condition: pair.name.clone(),
        what: format!("{} {} against the baseline", c.metric, c.statistic),
        limit: format!("{} more", per_cent(tolerance)),
        found,
        outcome,
        why,
    }
}

fn too_few(c: &Compared) -> String {
    match c.more_trials {
        Some(1) => "it takes 1 more trial a side".into(),
        Some(more) => format!("it takes {more} more trials a side"),
        None => "there is not enough data".into(),
    }
}
