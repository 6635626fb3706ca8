//! Checks absolute limits of a budget against the intervals of the report.

use crate::budget::judged::{Judged, lost, per_cent};
use crate::budget::{misses, trials};
use crate::compare::CompareError;
use std::collections::BTreeSet;
use tailbound_document::number::{count, time};
use tailbound_document::{
    BudgetCheck, BudgetOutcome, ConditionReport, ConditionStatus, LegRange, MetricReport, QuantileReport, Report,
};
use tailbound_model::{
    AtMost, Flow, Limit, LimitSet, MISSES, Metric, MissesLimit, MissesLimits, THROUGHPUT, TrialStatus, is_same_level,
};
use tailbound_record::Record;
use tailbound_stats::{Quantile, share_interval};

/// Computes the checks of one set of limits, condition by condition.
pub(crate) fn checks(record: &Record, report: &Report, set: &LimitSet) -> Result<Vec<BudgetCheck>, CompareError> {
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
        if let Some(limits) = &set.misses {
            checks.extend(misses_checks(record, report, condition, limits)?);
        }
    }
    Ok(checks)
}

/// Checks the limits for runs of late and lost messages of one condition.
fn misses_checks(
    record: &Record,
    report: &Report,
    condition: &ConditionReport,
    limits: &MissesLimits,
) -> Result<Vec<BudgetCheck>, CompareError> {
    let reason = not_measured(report, condition);
    let answers =
        |c: &ConditionReport| record.manifest.plan.conditions[c.id].spec.measure.flow().is_none_or(Flow::has_answers);
    if reason.is_none() && !answers(condition) {
        return Err(lacking(MISSES, condition));
    }
    let found = if reason.is_none() { misses::read(record, condition, limits)? } else { Vec::new() };
    let check = |limit: &MissesLimit| {
        let mut check = BudgetCheck {
            condition: condition.name.clone(),
            what: misses::what(limits, *limit),
            limit: misses::limit(limits, *limit),
            found: String::new(),
            outcome: BudgetOutcome::Undecided,
            why: reason.clone().unwrap_or_default(),
        };
        if reason.is_none() {
            (check.outcome, check.found, check.why) = misses::judged(&found, limits.window, *limit);
            distrust(&mut check, report, condition);
        }
        check
    };
    Ok(limits.limits.iter().map(check).collect())
}

pub(super) fn selected<'r>(report: &'r Report, set: &LimitSet) -> Result<Vec<&'r ConditionReport>, CompareError> {
    for (factor, level) in &set.levels {
        let all: BTreeSet<&String> = report.conditions.iter().filter_map(|c| c.levels.get(factor)).collect();
        if all.is_empty() {
            let factors: BTreeSet<&str> =
                report.conditions.iter().flat_map(|c| c.levels.keys()).map(String::as_str).collect();
            let factors: Vec<&str> = factors.into_iter().collect();
            return Err(CompareError::refused(
                format!("the budget names the factor `{factor}`, which the record does not have"),
                format!("the record has: {}", factors.join(", ")),
            ));
        }
        if !all.iter().any(|l| is_same_level(l, level)) {
            let all: Vec<&str> = all.into_iter().map(String::as_str).collect();
            return Err(CompareError::refused(
                format!("the budget names {factor} `{level}`, which the record does not have"),
                format!("the record has: {}", all.join(", ")),
            ));
        }
    }
    let has = |c: &ConditionReport, f: &str, l: &str| c.levels.get(f).is_some_and(|own| is_same_level(own, l));
    let meant = |c: &&ConditionReport| set.levels.iter().all(|(f, l)| has(c, f, l));
    let found: Vec<&ConditionReport> = report.conditions.iter().filter(meant).collect();
    if found.is_empty() {
        let levels: Vec<String> = set.levels.iter().map(|(f, l)| format!("{f} {l}")).collect();
        let there: Vec<&str> = report.conditions.iter().map(|c| c.name.as_str()).collect();
        return Err(CompareError::refused(
            format!("the record has no condition with {}", levels.join(", ")),
            format!("the record has: {}", there.join("; ")),
        ));
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
    if let Some(why) = not_measured(report, condition) {
        check.why = why;
        return Ok(check);
    }
    if let Some(range) = condition.range(limit.metric) {
        (check.outcome, check.found, check.why) = between_clocks(condition, range, &limit.at_most);
        distrust(&mut check, report, condition);
        return Ok(check);
    }
    let Some(figures) = condition.metric(limit.metric) else {
        // A trial that cannot be trusted may lack metrics that other trials have.
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

/// Reason why a condition has no messages of its own that could decide a limit; `None` if it has some.
fn not_measured(report: &Report, condition: &ConditionReport) -> Option<String> {
    if let Some(why) = &condition.not_possible {
        return Some(format!("the condition was not possible: {why}"));
    }
    if let Some(tool) = &condition.tool {
        return Some(format!("{tool} is another program, whose figures have no intervals"));
    }
    (condition.counts.scheduled == 0 && condition.flow.is_none())
        .then(|| untrusted(report, condition).unwrap_or_else(|| "no message was measured".into()))
}

/// Marks the check of a budget's limit as undecided, if the figures of the condition cannot be trusted.
fn distrust(check: &mut BudgetCheck, report: &Report, condition: &ConditionReport) {
    if let Some(why) = untrusted(report, condition) {
        (check.outcome, check.why) = (BudgetOutcome::Undecided, why);
    }
}

/// Makes the error that the budget names a metric which the condition does not have.
fn lacking(metric: &str, condition: &ConditionReport) -> CompareError {
    CompareError::refused(
        format!("the budget names `{metric}`, which {} does not have", condition.name),
        format!("the condition has: {}", there_is(condition).join(", ")),
    )
}

/// Names of the metrics of a condition for which a budget can set limits.
pub(crate) fn there_is(condition: &ConditionReport) -> Vec<&'static str> {
    let some = |m: &Metric| condition.metric(*m).is_some() || condition.range(*m).is_some();
    let known = |m: &Metric| *m != Metric::HalfRoundTrip && some(m);
    let metrics = Metric::ALL.into_iter().filter(known).map(Metric::key);
    metrics.chain(condition.flow.as_ref().map(|_| THROUGHPUT)).collect()
}

/// Reason why the figures of a condition cannot decide the check of a limit; `None` if they can.
fn untrusted(report: &Report, condition: &ConditionReport) -> Option<String> {
    if let Some(why) = &report.functional_only {
        return Some(format!("the times of this record say nothing about speed: {why}"));
    }
    let kept = |id: &usize| report.run.repeated.as_ref().is_some_and(|repeated| repeated.kept_trial_ids.contains(id));
    let trials = || report.trials.iter().filter(|t| t.condition == condition.id && !kept(&t.id));
    if let Some(trial) = trials().find(|t| t.status == TrialStatus::Invalid) {
        return Some(format!("trial {} is invalid, so its figures cannot be trusted", trial.id));
    }
    let ended = trials().filter(|t| t.status == TrialStatus::Valid).count();
    (condition.status == ConditionStatus::Incomplete)
        .then(|| format!("the record is incomplete: {ended} of {} trials ended", condition.trials))
}

fn quantile(condition: &ConditionReport, figures: &MetricReport, label: &str, limit: i64) -> Judged {
    use BudgetOutcome::*;
    let q = label.parse::<Quantile>().map_or(0.5, Quantile::as_f64);
    match figures.quantile(q) {
        Some(QuantileReport::Value { value_ns, low_ns, high_ns, too_narrow, .. }) => {
            let high = high_ns.map_or("lost".into(), |h| time(h as f64));
            let found = format!("{} (95 %: {} to {high})", time(*value_ns as f64), time(*low_ns as f64));
            let outcome = match high_ns {
                Some(high) if *high <= limit => Holds,
                _ if *low_ns > limit => Broken,
                _ => Undecided,
            };
            let why = match (outcome, too_narrow) {
                (Undecided, _) => "the limit lies inside the 95 % interval: a decision needs more messages",
                (_, true) => "messages depend on each other, so the interval is too narrow",
                _ => "",
            };
            (outcome, found, why.into())
        }
        Some(QuantileReport::Needs { needs, .. }) => {
            let (needs, has) = (count(*needs), count(figures.scheduled));
            (Undecided, String::new(), format!("{label} needs {needs} messages; there are {has}"))
        }
        Some(QuantileReport::Beyond { beyond, .. }) => {
            // Messages without an answer are later than any limit; their share is at least the lower end of its
            // interval.
            let counts = &condition.counts;
            let (low, _) = share_interval(counts.lost + counts.not_sent, counts.scheduled);
            let outcome = if low > 1.0 - q { Broken } else { Undecided };
            (outcome, format!("the quantile lies among the messages that are {}", beyond.words()), String::new())
        }
        None => (Undecided, String::new(), format!("{label} was not computed")),
    }
}

/// Checks a limit of a leg between two clocks. The limit is kept if even the longest possible times are below the
/// limit, and broken if even the shortest possible times are above the limit.
fn between_clocks(condition: &ConditionReport, range: &LegRange, at_most: &AtMost) -> Judged {
    use BudgetOutcome::*;
    let [least, most] = [&range.low, &range.high].map(|figures| match at_most {
        AtMost::Quantile(label, ns) => quantile(condition, figures, label, ns.0),
        AtMost::Max(ns) => maximum(figures, ns.0),
        AtMost::Lost(share) => lost((condition.counts.lost, condition.counts.scheduled), *share),
        AtMost::Mean(_) => (
            Undecided,
            String::new(),
            "the mean of a leg between two clocks cannot be checked: set a limit for a \
                quantile"
                .into(),
        ),
    });
    let found = if least.1 == most.1 { most.1.clone() } else { format!("{} to {}", least.1, most.1) };
    match (least.0, most.0) {
        (_, Holds) => (Holds, found, most.2),
        (Broken, _) => (Broken, found, least.2),
        (Undecided, Undecided) => (Undecided, found, most.2),
        _ => (
            Undecided,
            found,
            "the limit lies inside the range of times that are possible between the two \
            clocks"
                .into(),
        ),
    }
}

/// Checks a limit of the maximum. The result is about the messages of this record only, because a maximum has no
/// interval.
fn maximum(figures: &MetricReport, limit: i64) -> Judged {
    match figures.max_ns {
        None => (BudgetOutcome::Undecided, String::new(), "no message has a value of this metric".into()),
        Some(max) => {
            let outcome = if max > limit { BudgetOutcome::Broken } else { BudgetOutcome::Holds };
            let why = if outcome == BudgetOutcome::Holds { kept_by(figures) } else { String::new() };
            (outcome, time(max as f64), why)
        }
    }
}

/// Words for what a kept limit of the maximum says about all messages: at most the rule of three.
fn kept_by(figures: &MetricReport) -> String {
    let measured = format!("the {} measured messages keep the limit", count(figures.n));
    match figures.independent_n.zip(figures.rule_of_three) {
        _ if figures.n < figures.scheduled => {
            format!(
                "{measured}; {} have no value, and no limit can be kept by them",
                count(figures.scheduled - figures.n)
            )
        }
        Some((independent, later)) if independent < figures.n => format!(
            "{measured}; they are as informative as {} independent messages, so up to {} of all messages may be later \
             than the limit (95 % confidence)",
            count(independent),
            per_cent(later)
        ),
        Some((_, later)) => {
            format!(
                "{measured}; up to {} of all messages may be later than the limit (95 % confidence)",
                per_cent(later)
            )
        }
        None => format!(
            "{measured}; how many of all messages may be later is not known, because messages depend on each other over \
             too long a time, or trials differ"
        ),
    }
}
