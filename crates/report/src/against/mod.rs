//! What each level of a factor costs against one of them: `report.against` of a study.
//!
//! The ratios and intervals are those of `compare` with the same two levels, told as overheads in %.

mod csv;
mod table;

pub(crate) use csv::{HEADS as CSV_HEADS, rows as csv_rows};
pub(crate) use table::{columns, notes, of_rows, set, title};

use crate::compare::{self, CompareOptions, Compared, Comparison, VerdictWord};
use crate::condition::ConditionReport;
use crate::document::{ReportWarning, WarningSeverity};
use crate::names::short;
use crate::number::count;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailbound_model::{Condition, Metric};
use tailbound_record::Record;

/// What each condition costs against the one that has another level of one factor and is equal in all else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstReport {
    /// The factor, e.g. `place.network`.
    pub factor: String,
    /// The level that the others are set against: the baseline.
    pub level: String,
    /// Every condition with another level, in the order of the plan.
    pub rows: Vec<AgainstRow>,
}

/// One condition beside its baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgainstRow {
    /// The condition.
    pub condition: usize,
    /// The condition that it is set against; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<usize>,
    /// Why there are no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Figure by figure; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overheads: Vec<Overhead>,
}

/// What one figure costs. Above zero is a cost: less payload, later answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// `throughput` or `round_trip`.
    pub metric: String,
    /// `Mbit/s` of payload (`samples/s` where payloads differ), `p50`, `p99`.
    pub statistic: String,
    /// Unit of `baseline` and `value`: `Mbit/s`, `1/s` or `ns`.
    pub unit: String,
    /// Of the baseline: geometric mean over its trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// The same of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// `100 (value / baseline - 1)` of times, `100 (1 - value / baseline)` of rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_cent: Option<f64>,
    /// Its interval. Unless `within_runs`, those of one level hold together in 95 % of documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The interval is of these very runs only: it knows nothing of how one trial differs from the next.
    pub within_runs: bool,
    /// What is said about the condition.
    pub verdict: VerdictWord,
    /// How many more trials a side a verdict takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_trials: Option<usize>,
    /// Why there is no overhead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A figure: metric and statistic of a comparison, and whether more is better.
pub(crate) type Which = (&'static str, &'static str, bool);

/// What is told.
pub(crate) const FIGURES: [Which; 3] =
    [("throughput", "samples/s", true), ("round_trip", "p50", false), ("round_trip", "p99", false)];

impl AgainstReport {
    /// `network host`.
    pub(crate) fn name(&self) -> String {
        self.name_of(&self.level)
    }

    pub(crate) fn name_of(&self, level: &str) -> String {
        format!("{} {level}", short(&self.factor))
    }
}

impl Overhead {
    /// It is told of this entry of [`FIGURES`].
    pub(crate) fn is_of(&self, (metric, statistic, rate): Which) -> bool {
        self.metric == metric && (rate || self.statistic == statistic)
    }
}

/// What the study asks for; `None` where it asks for nothing.
pub(crate) fn of(record: &Record, conditions: &[ConditionReport], warnings: &[ReportWarning]) -> Option<AgainstReport> {
    let plan = &record.manifest.plan;
    let asked = plan.report.against.as_ref()?;
    let mut report = AgainstReport { factor: asked.factor.clone(), level: asked.level.clone(), rows: Vec::new() };
    let level = |c: &Condition| c.levels.get(&asked.factor).cloned().unwrap_or_default();
    let options = CompareOptions { metrics: vec![Metric::RoundTrip], margin: None };
    let equal =
        |a: &Condition, b: &Condition| a.levels.iter().all(|(f, l)| *f == asked.factor || b.levels.get(f) == Some(l));
    let mut levels: Vec<String> = Vec::new();
    for condition in plan.conditions.iter().filter(|c| level(c) != asked.level) {
        let baseline = plan.conditions.iter().find(|b| level(b) == asked.level && equal(condition, b));
        let failed = |c: &Condition| failed(&conditions[c.id], warnings);
        let why = failed(condition).or_else(|| match baseline {
            None => Some(format!("there is no {} with it", report.name())),
            Some(b) => failed(b)
                .map(|why| format!("{}: {why}", report.name()))
                .or_else(|| compare::apart((record, b), (record, condition), Some(&asked.factor), &options)),
        });
        if why.is_none() && !levels.contains(&level(condition)) {
            levels.push(level(condition));
        }
        let baseline = baseline.map(|b| b.id);
        report.rows.push(AgainstRow { condition: condition.id, baseline, why, overheads: Vec::new() });
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
                // The rest of the report stands without it.
                Err(e) => row.why = Some(e.to_string()),
            }
        }
    }
    Some(report)
}

/// Why a condition has no figures, in the words that the run left behind.
fn failed(condition: &ConditionReport, warnings: &[ReportWarning]) -> Option<String> {
    if let Some(why) = &condition.not_possible {
        return Some(format!("not possible: {why}"));
    }
    let (counts, flow) = (&condition.counts, condition.flow.as_ref());
    let received = |f: &crate::flow::FlowReport| f.trials.iter().flat_map(|t| &t.subscribers).map(|s| s.received).sum();
    let (arrived, sent): (u64, u64) = match flow {
        Some(flow) => (received(flow), flow.sent),
        None => (counts.answered + counts.after_timeout, counts.scheduled),
    };
    let used = condition.status != crate::ConditionStatus::Invalid && !condition.used_trial_ids.is_empty();
    if used && arrived > 0 {
        return None;
    }
    let invalid = |w: &&ReportWarning| {
        w.severity == WarningSeverity::Invalid && w.trial.is_some_and(|t| condition.trial_ids.contains(&t))
    };
    let said = condition.finding.as_ref().or_else(|| warnings.iter().find(invalid).map(|w| &w.text));
    let what = match (condition.status, used && sent > 0) {
        (_, true) => format!("nothing of {} messages arrived", count(sent)),
        (crate::ConditionStatus::Invalid, _) => "every trial of it is invalid".into(),
        _ => "no trial of it has ended".into(),
    };
    Some(said.map_or(what.clone(), |said| format!("{what}: {}", said.trim_end_matches('.'))))
}

fn overheads(comparison: &Comparison, condition: &Condition, factor: &str, names: &[String; 2]) -> Vec<Overhead> {
    let Some(pair) = comparison.pairs.iter().find(|p| p.b.condition == condition.id) else { return Vec::new() };
    let found = |(metric, statistic, rate): Which| {
        let compared = pair.statistics.iter().find(|c| c.metric == metric && c.statistic == statistic)?;
        // With one payload on both sides the ratio of Mbit/s is that of samples/s.
        let mbit = (rate && factor != "payload").then_some(condition.spec.payload.0 as f64 * 8e-6);
        Some(overhead(compared, rate, mbit, names))
    };
    FIGURES.into_iter().filter_map(found).collect()
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
