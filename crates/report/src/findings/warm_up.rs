//! Finding about a warm-up that was detected at the beginning of trials.

use crate::findings::finding::finding;
use crate::findings::rounding::round_up;
use tailbound_document::number::{Unit, count};
use tailbound_document::{ConditionReport, Finding, FindingLevel, Report, WarmUpReport};

/// Finding about the warm-up, for the condition whose warm-up differs most from the rest of its trials.
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
        1 => "; the first messages of one more condition also differ".to_owned(),
        n => format!("; the first messages of {n} more conditions also differ"),
    };
    // The warm-up slots that were left out already come before the detected warm-up.
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
