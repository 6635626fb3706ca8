//! Absolute limits, against the intervals of the report.

use super::{BudgetCheck, BudgetOutcome, trials};
use crate::circumstances::TrialState;
use crate::compare::CompareError;
use crate::condition::{ConditionReport, ConditionStatus, LegRange, MetricReport, QuantileReport};
use crate::document::Report;
use crate::number::{count, three_digits, time};
use std::collections::BTreeSet;
use tailbound_model::{AtMost, Limit, LimitSet, Metric, THROUGHPUT};
use tailbound_record::Record;
use tailbound_stats::{Quantile, rule_of_three, share_interval};

/// The checks of one set of limits, condition by condition.
pub(super) fn checks(record: &Record, report: &Report, set: &LimitSet) -> Result<Vec<BudgetCheck>, CompareError> {
    let selected = selected(report, set)?;
    let mut checks = Vec::new();
    for condition in selected {
        for limit in &set.limits {
            checks.push(check(record, report, condition, limit)?);
        }
        for limit in &set.throughput {
            let mut check = BudgetCheck {
                condition: condition.name.clone(),
                what: format!("{THROUGHPUT} {}", limit.key()),
                limit: trials::flow_limit(*limit),
                found: String::new(),
                outcome: BudgetOutcome::Undecided,
                why: String::new(),
            };
            if let Some(why) = &condition.not_possible {
                check.why = format!("the condition was not possible: {why}");
            } else if let Some(flow) = &condition.flow {
                (check.outcome, check.found, check.why) = trials::flow(flow, *limit);
                distrust(&mut check, report, condition);
            } else if condition.used_trial_ids.is_empty() {
                check.why = untrusted(report, condition).unwrap_or_else(|| "nothing was measured".into());
            } else {
                return Err(lacking(THROUGHPUT, condition));
            }
            checks.push(check);
        }
    }
    Ok(checks)
}

/// `64B` and `64 B` are one level.
fn tight(text: &str) -> String {
    text.replace(' ', "")
}

fn selected<'r>(report: &'r Report, set: &LimitSet) -> Result<Vec<&'r ConditionReport>, CompareError> {
    for (factor, level) in &set.levels {
        let all: BTreeSet<&String> = report.conditions.iter().filter_map(|c| c.levels.get(factor)).collect();
        if all.is_empty() {
            let factors: BTreeSet<&str> =
                report.conditions.iter().flat_map(|c| c.levels.keys()).map(String::as_str).collect();
            let factors: Vec<&str> = factors.into_iter().collect();
            return Err(CompareError::refused(format!(
                "the budget names the factor `{factor}`, which the record lacks\n  there is: {}",
                factors.join(", ")
            )));
        }
        if !all.iter().any(|l| tight(l) == tight(level)) {
            let all: Vec<&str> = all.into_iter().map(String::as_str).collect();
            return Err(CompareError::refused(format!(
                "the budget names {factor} `{level}`, which the record lacks\n  there is: {}",
                all.join(", ")
            )));
        }
    }
    let has = |c: &ConditionReport, f: &str, l: &str| c.levels.get(f).is_some_and(|own| tight(own) == tight(l));
    let meant = |c: &&ConditionReport| set.levels.iter().all(|(f, l)| has(c, f, l));
    let found: Vec<&ConditionReport> = report.conditions.iter().filter(meant).collect();
    if found.is_empty() {
        let levels: Vec<String> = set.levels.iter().map(|(f, l)| format!("{f} {l}")).collect();
        let there: Vec<&str> = report.conditions.iter().map(|c| c.name.as_str()).collect();
        return Err(CompareError::refused(format!(
            "the record has no condition with {}\n  there is: {}",
            levels.join(", "),
            there.join("; ")
        )));
    }
    Ok(found)
}

fn check(
    record: &Record,
    report: &Report,
    condition: &ConditionReport,
    limit: &Limit,
) -> Result<BudgetCheck, CompareError> {
    let mut check = BudgetCheck {
        condition: condition.name.clone(),
        what: format!("{} {}", limit.metric.key(), limit.at_most.key()),
        limit: match &limit.at_most {
            AtMost::Quantile(_, ns) | AtMost::Max(ns) | AtMost::Mean(ns) => format!("at most {}", time(ns.0 as f64)),
            AtMost::Lost(None) => "none".into(),
            AtMost::Lost(Some(share)) => format!("at most {}", per_cent(*share)),
        },
        found: String::new(),
        outcome: BudgetOutcome::Undecided,
        why: String::new(),
    };
    if let Some(why) = &condition.not_possible {
        check.why = format!("the condition was not possible: {why}");
        return Ok(check);
    }
    if let Some(tool) = &condition.tool {
        check.why = format!("{tool} is another program, whose figures have no intervals");
        return Ok(check);
    }
    if condition.counts.scheduled == 0 && condition.flow.is_none() {
        check.why = untrusted(report, condition).unwrap_or_else(|| "no message was measured".into());
        return Ok(check);
    }
    if let Some(range) = condition.range(limit.metric) {
        (check.outcome, check.found, check.why) = between_clocks(condition, range, &limit.at_most);
        distrust(&mut check, report, condition);
        return Ok(check);
    }
    let Some(figures) = condition.metric(limit.metric) else {
        // A trial that is not to be trusted may lack what the others have.
        if let Some(why) = untrusted(report, condition) {
            check.why = why;
            return Ok(check);
        }
        return Err(lacking(limit.metric.key(), condition));
    };
    let (outcome, found, why) = match &limit.at_most {
        AtMost::Quantile(label, ns) => quantile(condition, figures, label, ns.0),
        AtMost::Max(ns) => maximum(figures, ns.0),
        AtMost::Mean(ns) => trials::mean(record, condition, limit.metric, ns.0)?,
        AtMost::Lost(share) => lost((condition.counts.lost, condition.counts.scheduled), *share),
    };
    (check.outcome, check.found, check.why) = (outcome, found, why);
    distrust(&mut check, report, condition);
    Ok(check)
}

/// Figures that are not to be trusted decide nothing.
fn distrust(check: &mut BudgetCheck, report: &Report, condition: &ConditionReport) {
    if let Some(why) = untrusted(report, condition) {
        (check.outcome, check.why) = (BudgetOutcome::Undecided, why);
    }
}

/// The budget names a metric that the condition lacks.
fn lacking(metric: &str, condition: &ConditionReport) -> CompareError {
    CompareError::refused(format!(
        "the budget names `{metric}`, which {} lacks\n  there is: {}",
        condition.name,
        there_is(condition).join(", ")
    ))
}

/// What a budget can name of a condition.
pub(super) fn there_is(condition: &ConditionReport) -> Vec<&'static str> {
    let some = |m: &Metric| condition.metric(*m).is_some() || condition.range(*m).is_some();
    let known = |m: &Metric| *m != Metric::HalfRoundTrip && some(m);
    let metrics = Metric::ALL.into_iter().filter(known).map(Metric::key);
    metrics.chain(condition.flow.as_ref().map(|_| THROUGHPUT)).collect()
}

/// Why no figure of the condition decides anything.
fn untrusted(report: &Report, condition: &ConditionReport) -> Option<String> {
    if let Some(why) = &report.functional_only {
        return Some(format!("the record is good for function only: {why}"));
    }
    let trials = || report.trials.iter().filter(|t| t.condition == condition.id);
    if let Some(trial) = trials().find(|t| t.status == TrialState::Invalid) {
        return Some(format!("trial {} is invalid and not to be trusted", trial.id));
    }
    let ended = trials().filter(|t| t.status == TrialState::Valid).count();
    (condition.status == ConditionStatus::Incomplete)
        .then(|| format!("the record is incomplete: {ended} of {} trials ended", condition.trials))
}

pub(super) type Judged = (BudgetOutcome, String, String);

fn quantile(condition: &ConditionReport, figures: &MetricReport, label: &str, limit: i64) -> Judged {
    use BudgetOutcome::*;
    let q = label.parse::<Quantile>().map_or(0.5, Quantile::as_f64);
    match figures.quantile(q) {
        Some(QuantileReport::Value { value_ns, low_ns, high_ns, too_narrow, .. }) => {
            let high = high_ns.map_or("never".into(), |h| time(h as f64));
            let found = format!("{} (95 %: {} to {high})", time(*value_ns as f64), time(*low_ns as f64));
            let outcome = match high_ns {
                Some(high) if *high <= limit => Holds,
                _ if *low_ns > limit => Broken,
                _ => Undecided,
            };
            let why = match (outcome, too_narrow) {
                (Undecided, _) => "the limit lies inside the interval: more messages would tell",
                (_, true) => "messages depend on each other: the interval is narrower than it ought to be",
                _ => "",
            };
            (outcome, found, why.into())
        }
        Some(QuantileReport::Needs { needs, .. }) => {
            let (needs, has) = (count(*needs), count(figures.scheduled));
            (Undecided, String::new(), format!("{label} needs {needs} messages; there are {has}"))
        }
        Some(QuantileReport::Beyond { beyond, .. }) => {
            // At least the lower end of what is lost is later than any limit.
            let counts = &condition.counts;
            let (low, _) = share_interval(counts.lost + counts.not_sent, counts.scheduled);
            let outcome = if low > 1.0 - q { Broken } else { Undecided };
            (outcome, format!("among the messages that are {}", beyond.words()), String::new())
        }
        None => (Undecided, String::new(), format!("{label} was not computed")),
    }
}

/// A leg between two clocks holds a limit if the most that messages can have taken does, and breaks it if the least does.
fn between_clocks(condition: &ConditionReport, range: &LegRange, at_most: &AtMost) -> Judged {
    use BudgetOutcome::*;
    let [least, most] = [&range.low, &range.high].map(|figures| match at_most {
        AtMost::Quantile(label, ns) => quantile(condition, figures, label, ns.0),
        AtMost::Max(ns) => maximum(figures, ns.0),
        AtMost::Lost(share) => lost((condition.counts.lost, condition.counts.scheduled), *share),
        AtMost::Mean(_) => {
            (Undecided, String::new(), "a mean between two clocks is not judged: limit a quantile".into())
        }
    });
    let found = if least.1 == most.1 { most.1.clone() } else { format!("{} to {}", least.1, most.1) };
    match (least.0, most.0) {
        (_, Holds) => (Holds, found, most.2),
        (Broken, _) => (Broken, found, least.2),
        (Undecided, Undecided) => (Undecided, found, most.2),
        _ => (Undecided, found, "the limit lies within what two clocks leave possible".into()),
    }
}

/// A statement about this record: a maximum has no interval.
fn maximum(figures: &MetricReport, limit: i64) -> Judged {
    match figures.max_ns {
        None => (BudgetOutcome::Undecided, String::new(), "no message has a value".into()),
        Some(max) => {
            let outcome = if max > limit { BudgetOutcome::Broken } else { BudgetOutcome::Holds };
            let later = rule_of_three(figures.n);
            let why = match outcome {
                BudgetOutcome::Holds => format!(
                    "for these {} messages; up to {} of all may be later (95 %)",
                    count(figures.n),
                    per_cent(later)
                ),
                _ => String::new(),
            };
            (outcome, time(max as f64), why)
        }
    }
}

/// So many of so many.
pub(super) fn lost((lost, all): (u64, u64), limit: Option<f64>) -> Judged {
    use BudgetOutcome::*;
    let (low, high) = share_interval(lost, all);
    let found = format!("{} of {} (95 %: {} to {})", count(lost), count(all), per_cent(low), per_cent(high));
    let outcome = match limit {
        None if lost == 0 => Holds,
        None => Broken,
        Some(limit) if high <= limit => Holds,
        Some(limit) if low > limit => Broken,
        Some(_) => Undecided,
    };
    let why = match (outcome, limit) {
        (Undecided, _) => "the limit lies inside the interval: more messages would tell",
        (Holds, None) => "for these messages",
        _ => "",
    };
    (outcome, found, why.into())
}

pub(super) fn per_cent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}
