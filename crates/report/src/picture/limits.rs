//! Latency limits that figures show as lines: the limit of the study, and the limits of a budget.

use crate::picture::Plot;
use crate::picture::axis::Log;
use crate::picture::canvas::{Canvas, Hold};
use crate::picture::series::{Chart, words};
use tailbound_document::number::time;
use tailbound_document::{ConditionReport, LimitLine, Report};
use tailbound_model::Metric;

/// Height of a line of words beside a limit.
const LINE: f64 = 13.0;

/// A limit on the axis of a figure: its value in ns, and its name.
type Limit = (f64, String);

/// The limits that apply to the metric of a figure and to at least one of its conditions, in rising order, each once.
fn limits(chart: &Chart<'_>, some: &[&ConditionReport]) -> Vec<Limit> {
    let is_shown = |id: &usize| some.iter().any(|c| c.id == *id);
    let of_study = some.iter().filter_map(|c| Some(c.above.as_ref()?.limit_ns));
    let mut all: Vec<Limit> = of_study.map(|ns| (ns as f64, format!("limit {}", time(ns as f64)))).collect();
    let lines =
        chart.report.limits.iter().filter(|l| l.metric == chart.metric.key() && l.conditions.iter().any(is_shown));
    all.extend(lines.map(|l| (l.limit_ns as f64, name(l))));
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    all.dedup();
    all
}

fn name(line: &LimitLine) -> String {
    let most = time(line.limit_ns as f64);
    match line.statistic.as_str() {
        "max" => format!("longest at most {most}"),
        statistic => format!("{statistic} at most {most}"),
    }
}

/// Draws limits as upright lines, with their names below each other at the foot of the plot.
pub(crate) fn upright(canvas: &mut Canvas, chart: &Chart<'_>, some: &[&ConditionReport], x: Log, plot: &Plot) {
    let known = limits(chart, some).into_iter().filter(|(ns, _)| (x.low..=x.high).contains(ns));
    for (nth, (ns, name)) in known.enumerate() {
        let at = x.at(ns);
        canvas.line("limit", (at, plot.top), (at, plot.bottom));
        let y = plot.bottom - 7.0 - LINE * nth as f64;
        // Near the right edge, the name is at the left of its line.
        match at > (plot.left + plot.right) / 2.0 {
            true => canvas.text("quantile halo", (at - 5.0, y), &name, Hold::End),
            false => canvas.text("quantile halo", (at + 5.0, y), &name, Hold::Start),
        }
    }
}

/// Draws limits as upright lines without names, for a row of a figure with many rows.
pub(crate) fn upright_in_row(canvas: &mut Canvas, chart: &Chart<'_>, condition: &ConditionReport, x: Log, height: f64) {
    for (ns, _) in limits(chart, &[condition]).into_iter().filter(|(ns, _)| (x.low..=x.high).contains(ns)) {
        canvas.line("limit", (x.at(ns), 0.0), (x.at(ns), height));
    }
}

/// Draws limits as level lines, with their names at the right edge of the plot.
pub(crate) fn level(canvas: &mut Canvas, chart: &Chart<'_>, some: &[&ConditionReport], y: Log, plot: &Plot) {
    for (ns, name) in limits(chart, some).into_iter().filter(|(ns, _)| (y.low..=y.high).contains(ns)) {
        let at = y.at(ns);
        canvas.line("limit", (plot.left, at), (plot.right, at));
        canvas.text("quantile halo", (plot.right - 6.0, at - 5.0), &name, Hold::End);
    }
}

/// A sentence with all limits of the budget, also with those beyond the axes; `None` if the report has none.
pub(crate) fn sentence(report: &Report) -> Option<String> {
    let budget = &report.limits.first()?.budget;
    let metric = |key: &str| Metric::ALL.into_iter().find(|m| m.key() == key).map_or("", words);
    let conditions = |line: &LimitLine| match line.conditions.as_slice() {
        some if some.len() == report.conditions.len() => String::new(),
        [one] => format!(" ({})", report.conditions.get(*one).map_or("", |c| c.name.as_str())),
        some => format!(" ({} of {} conditions)", some.len(), report.conditions.len()),
    };
    let one = |line: &LimitLine| format!("{} {}{}", metric(&line.metric), name(line), conditions(line));
    let all: Vec<String> = report.limits.iter().map(one).collect();
    Some(format!(
        "Dashed lines are the limits of the budget {budget}, as far as they lie on an axis: {}.",
        all.join("; ")
    ))
}
