//! Compares other benchmark programs with drivers: finds the figures that have the same definition, and the reasons why
//! other figures cannot be compared.

use crate::clocks::has_one_clock;
use crate::from_due;
use std::collections::BTreeMap;
use tailbound_document::number::{count, label};
use tailbound_document::{ConditionReport, MetricReport, QuantileReport, SameFigure, SideBySide};
use tailbound_model::{Length, Measure, PrintedLatency, Rate, ToolMetric, ToolWindow, TrialSpec};
use tailbound_record::{Manifest, Record, RecordError};
use tailbound_stats::Quantile;

/// The figures of one condition, in the form in which they can be compared with the figures of another benchmark
/// program.
struct Side {
    condition: usize,
    name: String,
    /// Name of the driver whose kind of messages this condition sends: its own driver, or the driver that the tool file
    /// names.
    like: Option<String>,
    tool: bool,
    /// True if the ends have different clocks, so that a driver has ranges in place of one-way latencies.
    clocks_differ: bool,
    /// True if the program prints half round trips, which were doubled.
    doubled: bool,
    /// Median over the trials of each figure, by metric and statistic.
    figures: BTreeMap<(ToolMetric, String), f64>,
    /// Statistics for which the program prints figures for each second, but not for the whole run.
    each_second: Vec<String>,
    samples: u64,
    /// Number of messages that follows from the rate and the duration, if the study has both.
    due: Option<u64>,
    lost: u64,
    trials: usize,
}

/// Finds all pairs of conditions of a record that can be compared.
///
/// # Errors
/// The samples cannot be read. They are read only if a program prints latencies from the due time of messages.
pub(crate) fn of(
    record: &Record,
    conditions: &[ConditionReport],
    quantiles: &[Quantile],
) -> Result<Vec<SideBySide>, RecordError> {
    let sides: Vec<Option<Side>> =
        conditions.iter().map(|c| side(record, c, quantiles)).collect::<Result<_, RecordError>>()?;
    let sides: Vec<Side> = sides.into_iter().flatten().collect();
    let rest = |side: &Side| -> BTreeMap<&String, &String> {
        let of_driver = |key: &str| key == "driver" || key.starts_with("driver.");
        conditions[side.condition].levels.iter().filter(|(key, _)| !of_driver(key)).collect()
    };
    let mut all = Vec::new();
    for (i, first) in sides.iter().enumerate() {
        for second in sides[i + 1..].iter().filter(|s| (s.tool || first.tool) && rest(s) == rest(first)) {
            // The other program comes first; two programs have the order of the plan.
            let (a, b) = if first.tool { (first, second) } else { (second, first) };
            all.push(pair(a, b));
        }
    }
    Ok(all)
}

fn side(record: &Record, condition: &ConditionReport, quantiles: &[Quantile]) -> Result<Option<Side>, RecordError> {
    let manifest = &record.manifest;
    let spec = &manifest.plan.conditions[condition.id].spec;
    if spec.has_tool() {
        return Ok(of_tool(manifest, condition));
    }
    let trials = &condition.used_trial_ids;
    let clocks_differ = !trials.iter().all(|trial| has_one_clock(record, *trial));
    let mut figures = BTreeMap::new();
    let is_printed = |latency| {
        manifest.trials.iter().filter_map(|t| t.summary.as_ref()).any(|s| s.definition.latency == Some(latency))
    };
    if is_printed(PrintedLatency::OneWay) {
        figures.extend(condition.out.iter().flat_map(|out| of_metric(ToolMetric::OneWayNs, out)));
    }
    let has_due_times = condition.round_trip.is_some() && spec.rate != Rate::Max;
    if is_printed(PrintedLatency::OneWayFromDue) && has_due_times && !clocks_differ {
        let all = from_due::of(record, trials, quantiles)?;
        figures.extend(all.into_iter().map(|(statistic, ns)| ((ToolMetric::OneWayFromDueNs, statistic), ns)));
    }
    Ok(of_driver(condition, spec.driver_names(), figures).map(|side| Side { clocks_differ, ..side }))
}

/// Figures of a metric, by quantity and statistic.
fn of_metric(what: ToolMetric, metric: &MetricReport) -> impl Iterator<Item = ((ToolMetric, String), f64)> {
    let quantile = move |quantile: &QuantileReport| match quantile {
        QuantileReport::Value { q, value_ns, .. } => Some(((what, label(*q)), *value_ns as f64)),
        _ => None,
    };
    metric
        .mean_ns
        .map(|mean| ((what, "mean".to_owned()), mean))
        .into_iter()
        .chain(metric.quantiles.iter().filter_map(quantile))
}

/// The figures of a driver. `figures`: its one-way latencies.
fn of_driver(
    condition: &ConditionReport,
    name: String,
    mut figures: BTreeMap<(ToolMetric, String), f64>,
) -> Option<Side> {
    let mut samples = condition.counts.answered + condition.counts.after_timeout;
    figures.extend(condition.round_trip.iter().flat_map(|metric| of_metric(ToolMetric::RoundTripNs, metric)));
    let mut lost = condition.counts.lost;
    if let Some(flow) = &condition.flow {
        let mean = |what, of: Option<tailbound_document::Spread>| Some(((what, "mean".to_owned()), of?.median));
        figures.extend(mean(ToolMetric::PayloadMbitPerS, flow.payload_mbit_s));
        figures.extend(mean(ToolMetric::SamplesPerS, flow.samples_per_s));
        (samples, lost) = (flow.sent - flow.lost.min(flow.sent), flow.lost);
    }
    (!figures.is_empty()).then(|| Side {
        condition: condition.id,
        like: Some(name.clone()),
        name,
        tool: false,
        clocks_differ: false,
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
                // The mean of the whole run follows from the means of its parts.
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
        clocks_differ: false,
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
        (Length::Slots(n) | Length::Loops(n), _) => Some(n),
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
    if let Some(reason) = without_ratio(a, b) {
        pair.apart.push(reason);
        return pair;
    }
    let of_b = b.kinds();
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
    // The mean comes first, then the quantiles in rising order.
    pair.same.sort_by(|x, y| {
        let rank = |f: &SameFigure| quantile(&f.statistic).unwrap_or(-1.0);
        x.what.cmp(&y.what).then(rank(x).total_cmp(&rank(y)))
    });
    if of_lost {
        pair.apart.push(format!(
            "quantiles are not compared: {} messages were lost; Tailbound counts them as later than every value, \
                other programs leave them out of percentiles",
            count(lost)
        ));
    }
    if !few.is_empty() {
        few.sort();
        let few: Vec<String> = few.into_iter().map(|(_, text)| text).collect();
        pair.apart.push(format!("{}: {} messages are too few", few.join(", "), count(samples)));
    }
    let has_times = a.kinds().iter().any(|what| what.is_time() && of_b.contains(what));
    pair.apart.extend(left_out(a, b, has_times));
    if !pair.same.is_empty() {
        let meaning = meaning(&pair.same, a, b);
        pair.apart.extend(meaning);
    }
    pair
}

impl Side {
    /// The quantities of which there are figures.
    fn kinds(&self) -> Vec<ToolMetric> {
        let mut kinds: Vec<ToolMetric> = self.figures.keys().map(|(what, _)| *what).collect();
        kinds.dedup();
        kinds
    }
}

/// The reason why no figure of two sides has a ratio; `None` = there are figures of one definition.
fn without_ratio(a: &Side, b: &Side) -> Option<String> {
    if let (Some(of_a), Some(of_b)) = (&a.like, &b.like)
        && of_a != of_b
    {
        let other = if b.tool { format!("{} as {of_b} does", b.name) } else { format!("not as {of_b}") };
        return Some(format!("{} sends as {of_a} does, {other}: a ratio would be of these two", a.name));
    }
    let (of_a, of_b) = (a.kinds(), b.kinds());
    if b.clocks_differ && of_a.iter().any(|kind| is_one_way(*kind)) {
        return Some(format!(
            "the ends have different clocks: the one-way latency of {} is a range, which has no ratio, and figures of {} contain the \
             difference of the clocks",
            b.name, a.name
        ));
    }
    let words = |kinds: &[ToolMetric]| kinds.iter().map(|k| k.words()).collect::<Vec<_>>().join(" and ");
    let none = !of_a.iter().any(|kind| of_b.contains(kind));
    none.then(|| format!("{} has figures of {}, {} of {}", a.name, words(&of_a), b.name, words(&of_b)))
}

/// Sentences about figures of two sides that are not compared. `has_times`: some figures of both are times.
fn left_out(a: &Side, b: &Side, has_times: bool) -> Vec<String> {
    let mut all = Vec::new();
    for side in [a, b].into_iter().filter(|s| !s.each_second.is_empty()) {
        let which = side.each_second.join(", ");
        all.push(format!("{which}: those of {} are of one second each, and there is none of the whole run", side.name));
    }
    if has_times {
        all.push(
            "minimum and maximum are not compared: they are single messages, from different numbers of \
            messages"
                .into(),
        );
    }
    let sent = |side: &Side| side.figures.keys().any(|(what, _)| *what == ToolMetric::SentPerS);
    for side in [a, b].into_iter().filter(|s| sent(s)) {
        all.push(format!("{} counts what it sends, whatever arrives", side.name));
    }
    all
}

/// Sentences about the meaning of the compared figures.
fn meaning(same: &[SameFigure], a: &Side, b: &Side) -> Vec<String> {
    let mut all: Vec<String> = one_way(same, a, b).into_iter().collect();
    for side in [a, b].into_iter().filter(|s| s.doubled) {
        all.push(format!("the half round trips of {} were doubled", side.name));
    }
    for side in [a, b].into_iter().filter(|s| s.tool) {
        if let Some(due) = side.due.filter(|due| side.samples < *due) {
            let (has, due) = (count(side.samples), count(due));
            all.push(format!("{} has figures of {has} of the {due} messages that rate and time give", side.name));
        }
        if side.trials > 1 {
            all.push(format!("each figure is the median over the {} trials of {}", side.trials, side.name));
        }
    }
    all
}

fn is_one_way(what: ToolMetric) -> bool {
    matches!(what, ToolMetric::OneWayNs | ToolMetric::OneWayFromDueNs)
}

/// What the one-way latencies of a driver in a pair mean; `None` = the pair has no such figures.
fn one_way(same: &[SameFigure], a: &Side, b: &Side) -> Option<String> {
    let (a, driver) = (&a.name, &b.name);
    let has = |what| !b.tool && same.iter().any(|figure| figure.what == crate::tools::key(what));
    if has(ToolMetric::OneWayFromDueNs) {
        return Some(format!(
            "the figures of {a} and {driver} are from the due time of a message until a thread of the receiver had it; {driver} also answers \
             each message"
        ));
    }
    has(ToolMetric::OneWayNs).then(|| {
        format!(
            "the figures of {driver} are from the begin of the send call until a thread of the receiver had the message; {driver} also \
             answers each message"
        )
    })
}

/// Parses the label of a quantile: `p99.9` is 0.999. Returns `None` for another statistic.
fn quantile(statistic: &str) -> Option<f64> {
    let percent: f64 = statistic.strip_prefix('p')?.parse().ok()?;
    Some((percent * 1e9).round() / 1e11)
}
