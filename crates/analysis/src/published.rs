//! Puts figures of the report beside the numbers that other people published, in the unit of the publication.

use crate::compare::belongs_to;
use tailbound_document::{
    ConditionReport, Course, FlowSubscriber, FlowTrial, Overhead, PublishedCellReport, PublishedReport,
    PublishedTableReport, QuantileReport, Report, TrialReport,
};
use tailbound_model::{
    ChosenLevels, FigureCompared, FigureMetric, FigureStatistic, FigureUnit, Metric, OwnFigure, Plan, Published,
    PublishedColumn, PublishedNumber, PublishedRow,
};
use tailbound_stats::Quantile;

/// Smallest and largest possible value, in ns or per second; they differ for ranges.
type Value = [f64; 2];

/// Quantiles that tables of published numbers need.
pub(crate) fn quantiles(plan: &Plan) -> Vec<Quantile> {
    let columns = plan.report.published.iter().flat_map(|p| &p.table).flat_map(|table| &table.columns);
    let figures = columns.filter_map(|column| column.here.as_ref());
    let text = |figure: &OwnFigure| match &figure.statistic {
        FigureStatistic::Quantile(text) if !figure.metric.is_of_trials() => text.parse().ok(),
        _ => None,
    };
    figures.filter_map(text).collect()
}

/// The published results of the study, with the figures of this report beside them.
pub(crate) fn of(plan: &Plan, report: &Report) -> Vec<PublishedReport> {
    let one = |published: &Published| PublishedReport {
        table: published.table.as_ref().map(|table| {
            PublishedTableReport::of(table, |row, column, number| cell(plan, report, (row, column, number)))
        }),
        ..published.into()
    };
    plan.report.published.iter().map(one).collect()
}

fn cell(
    plan: &Plan,
    report: &Report,
    (row, column, number): (&PublishedRow, &PublishedColumn, Option<PublishedNumber>),
) -> PublishedCellReport {
    let empty = PublishedCellReport { published: number.map(Into::into), ..PublishedCellReport::default() };
    let Some(figure) = &column.here else { return empty };
    let chosen: ChosenLevels = row.levels.clone().into_iter().chain(column.levels.clone()).collect();
    let is = |c: &&ConditionReport| chosen.iter().all(|(f, all)| c.levels.get(f).is_some_and(|l| all.contains(l)));
    // A baseline is not compared with itself.
    let is_baseline = |c: &ConditionReport| figure.baseline.iter().all(|(f, l)| c.levels.get(f) == Some(l));
    let compared = |c: &&ConditionReport| figure.baseline.is_empty() || !is_baseline(c);
    let (mut found, mut why): (Vec<(usize, Value)>, Option<String>) = (Vec::new(), None);
    for condition in report.conditions.iter().filter(is).filter(compared) {
        match value_of(plan, report, condition, (figure, row.run, column.unit)) {
            Ok(value) => found.push((condition.id, value)),
            Err(reason) => why = why.or(Some(reason)),
        }
    }
    let here = found.iter().map(|(_, value)| *value).reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
    let why = match (here, why) {
        (Some(_), _) => None,
        (None, why) => Some(why.unwrap_or_else(|| "no condition of this run has these levels".into())),
    };
    PublishedCellReport { here, conditions: found.into_iter().map(|(id, _)| id).collect(), why, ..empty }
}

/// The figure of a condition, in the unit of the column.
fn value_of(
    plan: &Plan,
    report: &Report,
    condition: &ConditionReport,
    (figure, run, unit): (&OwnFigure, Option<u32>, FigureUnit),
) -> Result<Value, String> {
    let in_unit = |value: Value| value.map(|v| v / unit.nanoseconds().unwrap_or(1.0));
    if figure.compared == FigureCompared::Alone {
        return Ok(in_unit(alone(report, condition, (figure, run, unit))?));
    }
    let baseline = baseline_of(plan, report, condition, figure)?;
    let [value, base] = match overhead_of(report, [condition, baseline], figure) {
        Some(pair) => pair,
        None => [
            alone(report, condition, (figure, run, unit))?,
            alone(report, baseline, (figure, run, unit)).map_err(|why| format!("baseline: {why}"))?,
        ],
    };
    if figure.compared != FigureCompared::Difference && base.contains(&0.0) {
        return Err("the figure of the baseline is 0".into());
    }
    let ratio = [value[0] / base[1], value[1] / base[0]];
    let change = ratio.map(|r| 100.0 * (r - 1.0));
    Ok(match figure.compared {
        FigureCompared::Alone | FigureCompared::Difference => in_unit([value[0] - base[1], value[1] - base[0]]),
        FigureCompared::Overhead if figure.metric == FigureMetric::Throughput => [-change[1], -change[0]],
        FigureCompared::Change | FigureCompared::Overhead => change,
    })
}

/// The condition that has the baseline levels of a figure and is otherwise equal.
fn baseline_of<'a>(
    plan: &Plan,
    report: &'a Report,
    condition: &ConditionReport,
    figure: &OwnFigure,
) -> Result<&'a ConditionReport, String> {
    let same = |b: &ConditionReport, (factor, level): (&String, &String)| match figure.baseline.get(factor) {
        Some(wanted) => b.levels.get(factor) == Some(wanted),
        None => figure.baseline.keys().any(|of| belongs_to(plan, of, factor)) || b.levels.get(factor) == Some(level),
    };
    let mut all = report.conditions.iter();
    all.find(|b| condition.levels.iter().all(|level| same(b, level)))
        .ok_or_else(|| "no condition of this run is the baseline".to_owned())
}

/// The figures of a condition and of its baseline as the table against a baseline level has them, if it has them; so
/// both tables say the same.
fn overhead_of(
    report: &Report,
    [condition, baseline]: [&ConditionReport; 2],
    figure: &OwnFigure,
) -> Option<[Value; 2]> {
    let against = report.against.as_ref()?;
    let row = against.rows.iter().find(|r| r.condition == condition.id && r.baseline == Some(baseline.id))?;
    let (metric, factor) = match figure.metric {
        FigureMetric::Latency(Metric::RoundTrip) => ("round_trip", 1.0),
        FigureMetric::Latency(Metric::HalfRoundTrip) => ("round_trip", 0.5),
        FigureMetric::Throughput => ("throughput", 1.0),
        _ => return None,
    };
    let statistic = match &figure.statistic {
        FigureStatistic::Mean => "mean",
        FigureStatistic::Quantile(q) if q == "0.5" => "p50",
        FigureStatistic::Quantile(q) if q == "0.99" => "p99",
        _ => return None,
    };
    let is = |o: &&Overhead| o.metric == metric && (metric == "throughput" || o.statistic == statistic);
    let of = row.overheads.iter().find(is)?;
    // A difference has a unit, and the table against a baseline has samples per second if payloads differ.
    if metric == "throughput" && figure.compared == FigureCompared::Difference {
        return None;
    }
    Some([of.value?, of.baseline?].map(|v| [v * factor; 2]))
}

/// The figure of one condition, in ns or, for throughput, in Mbit/s or 1/s.
fn alone(
    report: &Report,
    condition: &ConditionReport,
    (figure, run, unit): (&OwnFigure, Option<u32>, FigureUnit),
) -> Result<Value, String> {
    if let Some(why) = &condition.not_possible {
        return Err(format!("not possible: {why}"));
    }
    match (figure.metric, run) {
        (FigureMetric::Latency(metric), None) => latency(condition, metric, &figure.statistic),
        (FigureMetric::Latency(metric), Some(_)) => {
            let trials = trials(report, condition, run)?;
            let ranges = |c: &Course| c.columns(metric).iter().flatten().copied().collect::<Vec<_>>();
            let all = trials.iter().filter_map(|t| t.course.as_ref()).flat_map(ranges);
            let value = match figure.statistic {
                FigureStatistic::Min => all.map(|r| r.0).min(),
                _ => all.map(|r| r.1).max(),
            };
            value.map(|ns| [ns as f64; 2]).ok_or_else(|| "the run has no figures".to_owned())
        }
        (FigureMetric::Throughput, _) => throughput(report, condition, (figure, run, unit)),
        (FigureMetric::TotalTime, _) => {
            of_trials(trials(report, condition, run)?.into_iter().filter_map(total), &figure.statistic)
        }
        (FigureMetric::TotalWithDiscovery, _) => {
            let both = |t: &TrialReport| Some(total(t)? + met(t)?);
            of_trials(trials(report, condition, run)?.into_iter().filter_map(both), &figure.statistic)
        }
    }
}

/// The trials from which the figures of a condition are computed, or the one of them that is this repetition.
fn trials<'a>(
    report: &'a Report,
    condition: &ConditionReport,
    run: Option<u32>,
) -> Result<Vec<&'a TrialReport>, String> {
    let is = |t: &&TrialReport| {
        condition.used_trial_ids.contains(&t.id) && run.is_none_or(|run| t.repeat + 1 == run as usize)
    };
    match report.trials.iter().filter(is).collect::<Vec<_>>() {
        none if none.is_empty() => Err(run.map_or_else(
            || "no trial of the condition has figures".to_owned(),
            |run| format!("run {run} is not in this record, or is invalid"),
        )),
        trials => Ok(trials),
    }
}

fn total(trial: &TrialReport) -> Option<f64> {
    Some(trial.course.as_ref()?.run_time_ns? as f64)
}

/// Time until all ends of a trial had found each other, ns.
fn met(trial: &TrialReport) -> Option<f64> {
    let met: Option<Vec<i64>> = trial.ends.values().map(|end| end.matched_after_ns).collect();
    Some(met?.into_iter().max()? as f64)
}

fn of_trials(values: impl Iterator<Item = f64>, statistic: &FigureStatistic) -> Result<Value, String> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = match statistic {
        FigureStatistic::Min => values.first(),
        FigureStatistic::Max => values.last(),
        _ => values.get(values.len().saturating_sub(1) / 2),
    };
    at.map(|v| [*v; 2]).ok_or_else(|| "no trial has this figure".to_owned())
}

fn throughput(
    report: &Report,
    condition: &ConditionReport,
    (figure, run, unit): (&OwnFigure, Option<u32>, FigureUnit),
) -> Result<Value, String> {
    let none = || "the condition has no throughput".to_owned();
    let flow = condition.flow.as_ref().ok_or_else(none)?;
    let spread = match unit {
        FigureUnit::PerS => flow.samples_per_s,
        _ => flow.payload_mbit_s,
    };
    if run.is_some() {
        let ids: Vec<usize> = trials(report, condition, run)?.iter().map(|t| t.id).collect();
        let of = |s: &FlowSubscriber| if unit == FigureUnit::PerS { s.samples_per_s } else { s.payload_mbit_s };
        let slowest = |t: &FlowTrial| t.subscribers.iter().filter_map(of).min_by(f64::total_cmp);
        return of_trials(flow.trials.iter().filter(|t| ids.contains(&t.trial)).filter_map(slowest), &figure.statistic);
    }
    let spread = spread.ok_or_else(none)?;
    Ok([match figure.statistic {
        FigureStatistic::Min => spread.low,
        FigureStatistic::Max => spread.high,
        _ => spread.median,
    }; 2])
}

/// A statistic of a latency of a condition, ns.
fn latency(condition: &ConditionReport, metric: Metric, statistic: &FigureStatistic) -> Result<Value, String> {
    if metric == Metric::HalfRoundTrip {
        return Ok(latency(condition, Metric::RoundTrip, statistic)?.map(|ns| ns / 2.0));
    }
    let sides = match (condition.metric(metric), condition.range(metric)) {
        (Some(exact), _) => [exact, exact],
        (None, Some(range)) => [&range.low, &range.high],
        (None, None) => return Err(format!("the condition has no `{}`", metric.key())),
    };
    let quantile = |text: &str, side: usize| match sides[side].quantile(text.parse().unwrap_or(f64::NAN)) {
        Some(QuantileReport::Value { value_ns, .. }) => Ok(*value_ns as f64),
        Some(QuantileReport::Needs { needs, .. }) => {
            Err(format!("needs {} messages", tailbound_document::number::count(*needs)))
        }
        Some(QuantileReport::Beyond { beyond, .. }) => Err(format!("among messages that were {}", beyond.words())),
        None => Err("the quantile was not computed".to_owned()),
    };
    let known = |value: Option<f64>| value.ok_or_else(|| "no message has the figure".to_owned());
    let one = |side: usize| match statistic {
        FigureStatistic::Mean => known(sides[side].mean_ns),
        // Between two clocks, the standard deviation does not lie between the ones of the two sides.
        FigureStatistic::Sd if condition.metric(metric).is_none() => {
            Err("a standard deviation between two clocks is not known".to_owned())
        }
        FigureStatistic::Sd => known(sides[side].stddev_ns),
        FigureStatistic::Min => known(sides[side].min_ns.map(|ns| ns as f64)),
        FigureStatistic::Max => known(sides[side].max_ns.map(|ns| ns as f64)),
        FigureStatistic::Quantile(text) => quantile(text, side),
    };
    Ok([one(0)?, one(1)?])
}
