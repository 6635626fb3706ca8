//! The beginning of trials, where it is unlike the rest.

use crate::condition::ConditionReport;
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use crate::limits::round_up;
use crate::number::{Unit, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_stats::{BlockMedians, WarmUp};

/// Messages at the beginning of trials that are slower or faster than the rest. They are in all figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WarmUpReport {
    /// Measured slots of the beginning, in the trial where it is longest.
    pub slots: u64,
    /// Measured slots of that trial.
    pub of: u64,
    /// Median round trip of the beginning.
    pub before_ns: i64,
    /// Median round trip of the second half.
    pub after_ns: i64,
    /// In how many trials it was found.
    pub trials: u64,
}

/// A warm-up that at least half of the trials have.
pub(crate) fn of(medians: &BTreeMap<usize, BlockMedians>) -> Option<WarmUpReport> {
    let found: Vec<WarmUp> = medians.values().filter_map(BlockMedians::warm_up).collect();
    let longest = found.iter().max_by_key(|w| w.slots).filter(|_| 2 * found.len() >= medians.len())?;
    Some(WarmUpReport {
        slots: longest.slots,
        of: longest.of,
        before_ns: longest.before_ns as i64,
        after_ns: longest.after_ns as i64,
        trials: found.len() as u64,
    })
}

/// Told for the condition whose beginning differs most.
pub(crate) fn finding_of(report: &Report) -> Option<Finding> {
    let told = |c: &ConditionReport| c.warm_up.as_ref().map(|w| (c.id, w.clone()));
    let all: Vec<(usize, WarmUpReport)> = report.conditions.iter().filter_map(told).collect();
    let share = |w: &WarmUpReport| w.before_ns.abs_diff(w.after_ns) as f64 / w.after_ns.max(1) as f64;
    let (id, worst) = all.iter().max_by(|a, b| share(&a.1).total_cmp(&share(&b.1)))?;
    let condition = &report.conditions[*id];
    let unit = Unit::of(worst.after_ns as f64);
    let (before, after) = (unit.with(worst.before_ns as f64), unit.with(worst.after_ns as f64));
    let more = match all.len() - 1 {
        0 => String::new(),
        1 => "; so it is in one more condition".to_owned(),
        n => format!("; so it is in {n} more conditions"),
    };
    // What was left out already comes before.
    let already = |(id, w): &(usize, WarmUpReport)| {
        let condition = &report.conditions[*id];
        w.slots + condition.counts.warm_up.div_ceil(condition.used_trial_ids.len().max(1) as u64)
    };
    let slots = round_up(all.iter().map(already).max().unwrap_or(worst.slots));
    let text = format!(
        "{}: the first {} of {} messages of a trial are {} than the rest (median {before}, later {after}){more}. They look \
         like a warm-up, and are in the figures; `--set measure.warm_up={slots}` leaves them out.",
        condition.name,
        count(worst.slots),
        count(worst.of),
        if worst.before_ns > worst.after_ns { "slower" } else { "faster" },
    );
    let ids: Vec<usize> = all.iter().map(|(id, _)| *id).collect();
    Some(finding(FindingLevel::Caution, "warm_up", text, &ids))
}
