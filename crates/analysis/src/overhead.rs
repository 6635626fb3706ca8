//! Computes the overhead of each level of a factor relative to one baseline level, for the key `report.against` of a
//! study.
//!
//! The ratios and intervals are the same as for `compare` with the same two levels, expressed as overheads in %.

use crate::compare;
use crate::compare::CompareOptions;
use tailbound_document::number::count;
use tailbound_document::{
    AgainstReport, AgainstRow, Compared, Comparison, ConditionReport, OVERHEAD_FIGURES, Overhead, OverheadFigure,
};
use tailbound_model::{Condition, Metric, Severity, Warning};
use tailbound_record::Record;

/// Computes the overheads that the study asks for; `None` if the study does not ask for overheads.
pub(crate) fn of(record: &Record, conditions: &[ConditionReport], warnings: &[Warning]) -> Option<AgainstReport> {
    let plan = &record.manifest.plan;
    let asked = plan.report.against.as_ref()?;
    let mut report = AgainstReport { factor: asked.factor.clone(), level: asked.level.clone(), rows: Vec::new() };
    let level = |c: &Condition| c.levels.get(&asked.factor).cloned().unwrap_or_default();
    let options = CompareOptions { metrics: vec![Metric::RoundTrip], margin: None };
    let equal = |a: &Condition, b: &Condition| {
        let same =
            |(f, l): (&String, &String)| compare::belongs_to(plan, &asked.factor, f) || b.levels.get(f) == Some(l);
        a.levels.iter().all(same)
    };
    let mut levels: Vec<String> = Vec::new();
    for condition in plan.conditions.iter().filter(|c| level(c) != asked.level) {
        let baseline = plan.conditions.iter().find(|b| level(b) == asked.level && equal(condition, b));
        let failed = |c: &Condition| failed(&conditions[c.id], warnings);
        let why = failed(condition).or_else(|| match baseline {
            None => {
                let why = "has the same levels of the other factors as this condition";
                Some(format!("no condition with {} {why}", report.name()))
            }
            Some(b) => failed(b)
                .map(|why| format!("{}: {why}", report.name()))
                .or_else(|| compare::apart((record, b), (record, condition), Some(&asked.factor), &options)),
        });
        if why.is_none() && !levels.contains(&level(condition)) {
            levels.push(level(condition));
        }
        let baseline = baseline.map(|b| b.id);
        let both = baseline.filter(|_| why.is_none()).map(|b| conditions[condition.id].differences(&conditions[b]));
        let differences = both.unwrap_or_default();
        report.rows.push(AgainstRow { condition: condition.id, baseline, why, overheads: Vec::new(), differences });
    }
    for other in levels {
        let sides = Some([asked.level.as_str(), other.as_str()]);
        let compared = compare::compare_levels(record, Some(&asked.factor), sides, &options);
        let names = [report.name(), report.name_of(&other)];
        for row in report.rows.iter_mut().filter(|r| r.why.is_none()) {
            let condition = &plan.conditions[row.condition];
            if level(condition) != other {
                continue;
            }
            match &compared {
                Ok(comparison) => row.overheads = overheads(comparison, condition, &asked.factor, &names),
                // The rest of the report does not depend on the overhead.
                Err(e) => row.why = Some(e.to_string()),
            }
        }
    }
    Some(report)
}

/// Reason why a condition has no figures, taken from the findings and warnings of the run; `None` if it has figures.
fn failed(condition: &ConditionReport, warnings: &[Warning]) -> Option<String> {
    if let Some(why) = &condition.not_possible {
        return Some(format!("not possible: {why}"));
    }
    let (counts, flow) = (&condition.counts, condition.flow.as_ref());
    let received =
        |f: &tailbound_document::FlowReport| f.trials.iter().flat_map(|t| &t.subscribers).map(|s| s.received).sum();
    let (arrived, sent): (u64, u64) = match flow {
        Some(flow) => (received(flow), flow.sent),
        None => (counts.answered + counts.after_timeout, counts.scheduled),
    };
    let used = condition.status != tailbound_document::ConditionStatus::Invalid && !condition.used_trial_ids.is_empty();
    if used && arrived > 0 {
        return None;
    }
    let invalid =
        |w: &&Warning| w.severity == Severity::Invalid && w.trial.is_some_and(|t| condition.trial_ids.contains(&t));
    let said = condition.finding.as_ref().or_else(|| warnings.iter().find(invalid).map(|w| &w.problem.what));
    let what = match (condition.status, used && sent > 0) {
        (_, true) => format!("nothing of {} messages arrived", count(sent)),
        (tailbound_document::ConditionStatus::Invalid, _) => "every trial of this condition is invalid".into(),
        _ => "no trial of this condition has ended".into(),
    };
    Some(said.map_or(what.clone(), |said| format!("{what}: {}", said.trim_end_matches('.'))))
}

fn overheads(comparison: &Comparison, condition: &Condition, factor: &str, names: &[String; 2]) -> Vec<Overhead> {
    let Some(pair) = comparison.pairs.iter().find(|p| p.b.condition == condition.id) else { return Vec::new() };
    let found = |(metric, statistic, rate): OverheadFigure| {
        let compared = pair.statistics.iter().find(|c| c.metric == metric && c.statistic == statistic)?;
        // If both sides have the same payload, the ratio of Mbit/s equals the ratio of samples/s.
        let mbit = (rate && factor != "payload").then_some(condition.spec.payload.0 as f64 * 8e-6);
        Some(overhead(compared, rate, mbit, names))
    };
    OVERHEAD_FIGURES.into_iter().filter_map(found).collect()
}

fn overhead(compared: &Compared, rate: bool, mbit: Option<f64>, [a, b]: &[String; 2]) -> Overhead {
    let cost = |ratio: f64| 100.0 * if rate { 1.0 - ratio } else { ratio - 1.0 };
    let interval =
        compared.interval.map(|[low, high]| if rate { [cost(high), cost(low)] } else { [cost(low), cost(high)] });
    let scale = mbit.unwrap_or(1.0);
    let sided = |why: &String| {
        why.replace("trials of A ", &format!("trials of {a} ")).replace("trials of B ", &format!("trials of {b} "))
    };
    Overhead {
        metric: compared.metric.clone(),
        statistic: mbit.map_or(compared.statistic.clone(), |_| "Mbit/s".into()),
        unit: mbit.map_or(compared.unit.clone(), |_| "Mbit/s".into()),
        baseline: compared.a.map(|v| v * scale),
        value: compared.b.map(|v| v * scale),
        per_cent: compared.ratio.map(cost),
        interval,
        within_runs: compared.within_runs,
        verdict: compared.verdict,
        more_trials: compared.more_trials,
        why: compared.why.as_ref().map(sided),
    }
}
