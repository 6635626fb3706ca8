//! The table of the sender's loop, with one row per condition: duration of the trial (M1), time from wake-up to sent
//! (M2), and time from one wake-up to the next (M4). M3, the round trip, has a table of its own.

use crate::tables::grid::Column;
use crate::tables::summary::cell;
use tailbound_document::number::{Unit, label};
use tailbound_document::{ConditionReport, MetricReport, Report};
use tailbound_model::Metric;

pub(crate) const TITLE: &str = "the sender's loop: M1 first slot due to last answer, M2 woken to sent, M4 wake-up to \
                                wake-up, with 95 % intervals";

/// Quantile by which the table of the sender's loop shows the tail.
const TAIL: f64 = 0.99;

/// Durations (M1) of the trials from which the figures are computed, in ns, in rising order.
pub(crate) fn run_times(report: &Report, condition: &ConditionReport) -> Vec<i64> {
    let of = |id: &usize| report.trial(*id)?.course.as_ref()?.run_time_ns;
    let mut times: Vec<i64> = condition.used_trial_ids.iter().filter_map(of).collect();
    times.sort_unstable();
    times
}

/// Formats the durations of trials: one number if all numbers are the same, otherwise the minimum and the maximum.
pub(crate) fn span(times: &[i64], unit: Unit) -> String {
    let [first, .., last] = times else {
        return times.first().map_or(String::new(), |t| unit.number(*t as f64));
    };
    let (low, high) = (unit.number(*first as f64), unit.number(*last as f64));
    if low == high { low } else { format!("{low}-{high}") }
}

/// Columns of the sender's loop for the terminal; empty if no trial ran.
pub(crate) fn columns(report: &Report) -> Vec<Column> {
    let times: Vec<Vec<i64>> = report.conditions.iter().map(|c| run_times(report, c)).collect();
    let Some(unit) = Unit::of_all(times.iter().flatten().copied()) else { return Vec::new() };
    let one = |text: String| (text, String::new());
    let m1 = Column {
        head: format!("M1 {}", unit.name()),
        cells: times.iter().map(|t| one(span(t, unit))).collect(),
        right: true,
    };
    let mut columns = vec![m1];
    for (name, metric) in [("M2", Metric::WakeToSent), ("M4", Metric::WakePeriod)] {
        let figures: Vec<Option<&MetricReport>> = report.conditions.iter().map(|c| c.metric(metric)).collect();
        for q in [0.5, TAIL] {
            let quantile = |m: &Option<&MetricReport>| m.and_then(|m| m.quantile(q)).cloned();
            let found: Vec<_> = figures.iter().map(quantile).collect();
            let Some(unit) = Unit::of_all(found.iter().flatten().filter_map(|f| f.value_ns())) else { continue };
            let set = |f: &Option<_>| f.as_ref().map_or(Default::default(), |f| cell(f, unit));
            columns.push(Column {
                head: format!("{name} {} {}", label(q), unit.name()),
                cells: found.iter().map(set).map(|c| (c.value, c.interval)).collect(),
                right: true,
            });
        }
        let most = |m: &Option<&MetricReport>| m.and_then(|m| m.max_ns);
        let Some(unit) = Unit::of_all(figures.iter().filter_map(most)) else { continue };
        columns.push(Column {
            head: format!("max {}", unit.name()),
            cells: figures.iter().map(|m| one(most(m).map_or(String::new(), |v| unit.number(v as f64)))).collect(),
            right: true,
        });
    }
    columns
}
