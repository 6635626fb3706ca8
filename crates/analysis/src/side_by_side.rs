//! Compares other benchmark programs with drivers: finds the figures that have the same definition, and the reasons why
//! other figures cannot be compared.

use std::collections::BTreeMap;
use tailbound_document::number::count;
use tailbound_document::{ConditionReport, QuantileReport, SameFigure, SideBySide};
use tailbound_model::{Length, Measure, PrintedLatency, Rate, ToolMetric, ToolWindow, TrialSpec};
use tailbound_record::Manifest;
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
pub(crate) fn of(manifest: &Manifest, conditions: &[ConditionReport]) -> Vec<SideBySide> {
    let sides: Vec<Side> = conditions.iter().filter_map(|c| side(manifest, c)).collect();
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
                figures.insert((ToolMetric::RoundTripNs, tailbound_document::number::label(*q)), *value_ns as f64);
            }
        }
    }
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
    for side in [a, b].into_iter().filter(|s| !s.each_second.is_empty()) {
        let which = side.each_second.join(", ");
        pair.apart.push(format!(
            "{which}: those of {} are of one second each, and there is none of the whole run",
            side.name
        ));
    }
    if of_a.iter().any(|what| what.is_time() && of_b.contains(what)) {
        pair.apart.push(
            "minimum and maximum are not compared: they are single messages, from different numbers of \
            messages"
                .into(),
        );
    }
    let sent = |side: &Side| side.figures.keys().any(|(what, _)| *what == ToolMetric::SentPerS);
    for side in [a, b].into_iter().filter(|s| sent(s)) {
        pair.apart.push(format!("{} counts what it sends, whatever arrives", side.name));
    }
    if pair.same.is_empty() {
        return pair;
    }
    for side in [a, b].into_iter().filter(|s| s.doubled) {
        pair.apart.push(format!("the half round trips of {} were doubled", side.name));
    }
    for side in [a, b].into_iter().filter(|s| s.tool) {
        if let Some(due) = side.due.filter(|due| side.samples < *due) {
            let (has, due) = (count(side.samples), count(due));
            pair.apart
                .push(format!("{} has figures of {has} of the {due} messages that rate and time give", side.name));
        }
        if side.trials > 1 {
            pair.apart.push(format!("each figure is the median over the {} trials of {}", side.trials, side.name));
        }
    }
    pair
}

/// Parses the label of a quantile: `p99.9` is 0.999. Returns `None` for another statistic.
fn quantile(statistic: &str) -> Option<f64> {
    let percent: f64 = statistic.strip_prefix('p')?.parse().ok()?;
    Some((percent * 1e9).round() / 1e11)
}
