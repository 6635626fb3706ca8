//! The sender's loop, condition by condition: how long the trial took (M1), from wake-up to sent (M2), from wake-up to
//! wake-up (M4). M3, the round trip, has a table of its own.

use crate::condition::{ConditionReport, MetricReport};
use crate::document::Report;
use crate::grid::Column;
use crate::number::{Unit, label};
use crate::summary::cell;
use tailbound_model::Metric;

pub(crate) const TITLE: &str = "the sender's loop: M1 first slot due to last answer, M2 woken to sent, M4 wake-up to \
                                wake-up, with 95 % intervals";

/// The tail that the terminal shows.
const TAIL: f64 = 0.99;

/// M1 of the trials that the figures are made of, rising.
pub(crate) fn run_times(report: &Report, condition: &ConditionReport) -> Vec<i64> {
    let of = |id: &usize| report.trial(*id)?.course.as_ref()?.run_time_ns;
    let mut times: Vec<i64> = condition.used_trial_ids.iter().filter_map(of).collect();
    times.sort_unstable();
    times
}

/// The one value of all trials, or from the least to the most.
pub(crate) fn span(times: &[i64], unit: Unit) -> String {
    let [first, .., last] = times else {
        return times.first().map_or(String::new(), |t| unit.number(*t as f64));
    };
    let (low, high) = (unit.number(*first as f64), unit.number(*last as f64));
    if low == high { low } else { format!("{low}-{high}") }
}

/// Columns for the terminal; none without a trial that ran.
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
