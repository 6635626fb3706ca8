//! Other programs beside drivers: which of their figures are of one definition, and which are not, and why.

use crate::condition::{ConditionReport, QuantileReport};
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use crate::number::{count, three_digits, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{Length, Measure, PrintedLatency, Rate, ToolMetric, ToolWindow, TrialSpec};
use tailbound_record::Manifest;
use tailbound_stats::Quantile;

/// Two conditions that differ in what sends, at least one of them another program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// The condition of another program.
    pub a: usize,
    /// The other condition.
    pub b: usize,
    /// What each of them is: the name of the tool or of the driver.
    pub names: [String; 2],
    /// Figures of one definition.
    pub same: Vec<SameFigure>,
    /// What is not set side by side, and why: a sentence each.
    pub apart: Vec<String>,
}

/// A figure that both have by one definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SameFigure {
    /// What it is of, with its unit.
    pub what: String,
    /// `mean`, `p50` ...
    pub statistic: String,
    /// Of the other program.
    pub a: f64,
    /// Of the other condition.
    pub b: f64,
    /// a / b.
    pub ratio: f64,
}

/// What one condition has to show.
struct Side {
    condition: usize,
    name: String,
    /// What its messages are like: the driver, or that of which the tool file says so.
    like: Option<String>,
    tool: bool,
    /// It prints half round trips, which were doubled.
    doubled: bool,
    /// Median of the trials, with the number of messages.
    figures: BTreeMap<(ToolMetric, String), f64>,
    /// What it has no figure of the whole run of.
    each_second: Vec<String>,
    samples: u64,
    /// How many messages rate and duration give, where the study has both.
    due: Option<u64>,
    lost: u64,
    trials: usize,
}

/// All pairs of a record.
pub(crate) fn of(manifest: &Manifest, conditions: &[ConditionReport]) -> Vec<SideBySide> {
    let sides: Vec<Side> = conditions.iter().filter_map(|c| side(manifest, c)).collect();
    let rest = |side: &Side| -> BTreeMap<&String, &String> {
        let of_driver = |key: &str| key == "driver" || key.starts_with("driver.");
        conditions[side.condition].levels.iter().filter(|(key, _)| !of_driver(key)).collect()
    };
    let mut all = Vec::new();
    for (i, first) in sides.iter().enumerate() {
        for second in sides[i + 1..].iter().filter(|s| (s.tool || first.tool) && rest(s) == rest(first)) {
            // The other program first; of two, in the order of the plan.
            let (a, b) = if first.tool { (first, second) } else { (second, first) };
            all.push(pair(a, b));
        }
    }
    all
}

fn side(manifest: &Manifest, condition: &ConditionReport) -> Option<Side> {
    let spec = &manifest.plan.conditions[condition.id].spec;
    if spec.has_tool() { of_tool(manifest, condition) } else { of_driver(condition, spec.driver_names()) }
}

fn of_driver(condition: &ConditionReport, name: String) -> Option<Side> {
    let mut figures = BTreeMap::new();
    let mut samples = condition.counts.answered + condition.counts.after_timeout;
    if let Some(round_trip) = &condition.round_trip {
        figures.extend(round_trip.mean_ns.map(|v| ((ToolMetric::RoundTripNs, "mean".to_owned()), v)));
        for quantile in &round_trip.quantiles {
            if let QuantileReport::Value { q, value_ns, .. } = quantile {
                figures.insert((ToolMetric::RoundTripNs, crate::number::label(*q)), *value_ns as f64);
            }
        }
    }
    let mut lost = condition.counts.lost;
    if let Some(flow) = &condition.flow {
        let mean = |what, of: Option<crate::flow::Spread>| Some(((what, "mean".to_owned()), of?.median));
        figures.extend(mean(ToolMetric::PayloadMbitPerS, flow.payload_mbit_s));
        figures.extend(mean(ToolMetric::SamplesPerS, flow.samples_per_s));
        (samples, lost) = (flow.sent - flow.lost.min(flow.sent), flow.lost);
    }
    (!figures.is_empty()).then(|| Side {
        condition: condition.id,
        like: Some(name.clone()),
        name,
        tool: false,
        doubled: false,
        figures,
        each_second: Vec::new(),
        samples,
        due: None,
        lost,
        trials: condition.used_trial_ids.len(),
    })
}

fn of_tool(manifest: &Manifest, condition: &ConditionReport) -> Option<Side> {
    let used = |id: &usize| manifest.trials.iter().find(|t| t.id == *id)?.summary.as_ref();
    let runs: Vec<_> = condition.used_trial_ids.iter().filter_map(used).filter(|s| !s.figures.is_empty()).collect();
    let first = runs.first()?;
    let (mut all, mut each_second) = (BTreeMap::<_, Vec<f64>>::new(), Vec::new());
    let (mut samples, mut lost) = (0.0, 0.0);
    for run in &runs {
        let counts: Vec<f64> =
            run.figures.iter().find(|f| f.what == ToolMetric::Samples).map(|f| f.values.clone()).unwrap_or_default();
        samples += counts.iter().sum::<f64>();
        lost += run.figures.iter().filter(|f| f.what == ToolMetric::Lost).flat_map(|f| &f.values).sum::<f64>();
        for figure in &run.figures {
            let whole = match (run.definition.window, figure.statistic.as_str()) {
                (_, "total" | "min" | "max") => None,
                (ToolWindow::WholeRun, _) => figure.values.first().copied(),
                // The mean of all follows from those of its parts.
                (ToolWindow::EachSecond, "mean") => weighted(&figure.values, &counts),
                (ToolWindow::EachSecond, _) => {
                    each_second.push(figure.statistic.clone());
                    None
                }
            };
            if let Some(value) = whole {
                all.entry((figure.what, figure.statistic.clone())).or_default().push(value);
            }
        }
    }
    each_second.sort();
    each_second.dedup();
    Some(Side {
        condition: condition.id,
        name: first.tool.clone(),
        like: first.definition.like.clone(),
        tool: true,
        doubled: first.definition.latency == Some(PrintedLatency::HalfRoundTrip),
        figures: all.into_iter().map(|(key, values)| (key, median(values))).collect(),
        each_second,
        samples: samples as u64,
        due: due(&manifest.plan.conditions[condition.id].spec).map(|due| due * runs.len() as u64),
        lost: lost as u64,
        trials: runs.len(),
    })
}

fn due(spec: &TrialSpec) -> Option<u64> {
    let Measure::PingPong(keys) = &spec.measure else { return None };
    match (keys.length, spec.rate) {
        (Length::Duration(d), Rate::Period(period)) => Some((d.0 / period.0.max(1)) as u64),
        (Length::Duration(_), Rate::Max) => None,
        (Length::Slots(n), _) => Some(n),
    }
}

fn weighted(values: &[f64], counts: &[f64]) -> Option<f64> {
    let all: f64 = counts.iter().sum();
    let sum: f64 = values.iter().zip(counts).map(|(value, count)| value * count).sum();
    (values.len() == counts.len() && all > 0.0).then(|| sum / all)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

fn pair(a: &Side, b: &Side) -> SideBySide {
    let mut pair = SideBySide {
        a: a.condition,
        b: b.condition,
        names: [a.name.clone(), b.name.clone()],
        same: Vec::new(),
        apart: Vec::new(),
    };
    if let (Some(of_a), Some(of_b)) = (&a.like, &b.like)
        && of_a != of_b
    {
        let other = if b.tool { format!("{} as {of_b} does", b.name) } else { format!("not as {of_b}") };
        pair.apart.push(format!("{} sends as {of_a} does, {other}: a ratio would be of these two", a.name));
        return pair;
    }
    let kinds = |side: &Side| -> Vec<ToolMetric> {
        let mut kinds: Vec<ToolMetric> = side.figures.keys().map(|(what, _)| *what).collect();
        kinds.dedup();
        kinds
    };
    let (of_a, of_b) = (kinds(a), kinds(b));
    let words = |kinds: &[ToolMetric]| kinds.iter().map(|k| k.words()).collect::<Vec<_>>().join(" and ");
    if !of_a.iter().any(|kind| of_b.contains(kind)) {
        let reason = format!("{} has figures of {}, {} of {}", a.name, words(&of_a), b.name, words(&of_b));
        pair.apart.push(reason);
        return pair;
    }
    let (lost, samples) = (a.lost + b.lost, a.samples.min(b.samples));
    let (mut few, mut of_lost) = (Vec::new(), false);
    for ((what, statistic), value) in a.figures.iter().filter(|((what, _), _)| of_b.contains(what)) {
        if let Some(q) = quantile(statistic) {
            let needs = Quantile::from_f64(q).map_or(u64::MAX, tailbound_stats::needs);
            if samples < needs {
                few.push((needs, format!("{statistic} (it takes {})", count(needs))));
            }
            of_lost |= lost > 0;
            if lost > 0 || samples < needs {
                continue;
            }
        }
        let Some(other) = b.figures.get(&(*what, statistic.clone())).filter(|v| **v != 0.0) else { continue };
        let what = crate::tools::key(*what);
        pair.same.push(SameFigure { what, statistic: statistic.clone(), a: *value, b: *other, ratio: value / other });
    }
    // The mean first, then quantiles as they rise.
    pair.same.sort_by(|x, y| {
        let rank = |f: &SameFigure| quantile(&f.statistic).unwrap_or(-1.0);
        x.what.cmp(&y.what).then(rank(x).total_cmp(&rank(y)))
    });
    if of_lost {
        pair.apart.push(format!(
            "no quantile: {} messages were lost, which are later than everything here and in no percentile of other \
             programs",
            count(lost)
        ));
    }
    if !few.is_empty() {
        few.sort();
        let few: Vec<String> = few.into_iter().map(|(_, text)| text).collect();
        pair.apart.push(format!("{}: {} messages are too few", few.join(", "), count(samples)));
    }
    for side in [a, b].into_iter().filter(|s| !s.each_second.is_empty()) {
        let which = side.each_second.join(", ");
        pair.apart.push(format!(
            "{which}: those of {} are of one second each, and there is none of the whole run",
            side.name
        ));
    }
    if of_a.iter().any(|what| what.is_time() && of_b.contains(what)) {
        pair.apart.push("minimum and maximum: single messages, of different numbers of them".into());
    }
    let sent = |side: &Side| side.figures.keys().any(|(what, _)| *what == ToolMetric::SentPerS);
    for side in [a, b].into_iter().filter(|s| sent(s)) {
        pair.apart.push(format!("{} counts what it sends, whatever arrives", side.name));
    }
    if pair.same.is_empty() {
        return pair;
    }
    for side in [a, b].into_iter().filter(|s| s.doubled) {
        pair.apart.push(format!("half round trips of {} are doubled", side.name));
    }
    for side in [a, b].into_iter().filter(|s| s.tool) {
        if let Some(due) = side.due.filter(|due| side.samples < *due) {
            let (has, due) = (count(side.samples), count(due));
            pair.apart
                .push(format!("{} has figures of {has} of the {due} messages that rate and time give", side.name));
        }
        if side.trials > 1 {
            pair.apart.push(format!("of the {} trials of {} the median is taken", side.trials, side.name));
        }
    }
    pair
}

/// `p99.9` is 0.999; `None` of another statistic.
fn quantile(statistic: &str) -> Option<f64> {
    let percent: f64 = statistic.strip_prefix('p')?.parse().ok()?;
    Some((percent * 1e9).round() / 1e11)
}

impl SideBySide {
    /// `p50 46.6 us against 52.8 us (0.88 times)`.
    pub(crate) fn figures(&self) -> Vec<String> {
        let set = |figure: &SameFigure, value: f64| match figure.what.ends_with("_ns") {
            true => time(value),
            false if figure.what.contains("mbit") => format!("{} Mbit/s", three_digits(value)),
            false => three_digits(value),
        };
        let words = |f: &SameFigure| {
            let ratio = format!("{} times", three_digits(f.ratio));
            format!("{} {} against {} ({ratio})", f.statistic, set(f, f.a), set(f, f.b))
        };
        self.same.iter().map(words).collect()
    }
}

/// A sentence for each pair: which figures are comparable, with their ratio, and which are not, and why.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let of = |pair: &SideBySide| {
        let [a, b] = &pair.names;
        let begin = format!("{} beside {b}", report.conditions[pair.a].name);
        let apart = pair.apart.join("; ");
        let text = match pair.same.is_empty() {
            true => format!("{begin}: not comparable: {apart}."),
            false => format!(
                "{begin}: comparable are, {a} against {b}, {}; within these runs only. What to know: {apart}.",
                pair.figures().join(", ")
            ),
        };
        Finding { evidence: "tools".into(), ..finding(FindingLevel::Result, "side_by_side", text, &[pair.a, pair.b]) }
    };
    report.side_by_side.iter().map(of).collect()
}
