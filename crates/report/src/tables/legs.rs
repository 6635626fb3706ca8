//! Legs between two clocks as columns of a table for the terminal, for Markdown and for the HTML page. Each leg is a
//! range from the shortest to the longest time that is possible.

use crate::tables::summary::{cell, shown};
use crate::tables::value_column::ValueColumn;
use tailbound_analysis::BETWEEN_ENDS;
use tailbound_document::number::{Unit, label};
use tailbound_document::{LegRange, QuantileReport, Report};

/// Title of the table of the legs whose two timestamps come from different clocks.
pub(crate) const TITLE: &str = "out and back between two clocks: the smallest and the largest value that is possible \
    according to all messages; second line: from the lower end of the 95 % interval of the smallest value to the \
    upper end of the 95 % interval of the largest value";

/// Columns of the table of legs between two clocks; empty if all ends share one clock.
pub(crate) fn columns(report: &Report) -> Vec<ValueColumn> {
    let mut columns = Vec::new();
    for metric in BETWEEN_ENDS {
        let ranges: Vec<Option<&LegRange>> = report.conditions.iter().map(|c| c.range(metric)).collect();
        let mut add = |head: String, of: &dyn Fn(&LegRange) -> Option<i64>, set: &dyn Fn(&LegRange, Unit) -> _| {
            let Some(unit) = Unit::of_all(ranges.iter().flatten().filter_map(|r| of(r))) else { return };
            let cells = ranges.iter().map(|r| r.map_or_else(Default::default, |r| set(r, unit))).collect();
            columns.push(ValueColumn { head, unit: unit.name(), cells });
        };
        for q in shown(report) {
            let most = |r: &LegRange| r.high.quantile(q)?.value_ns();
            add(format!("{} {}", metric.key(), label(q)), &most, &|r, unit| quantile(r, q, unit));
        }
        let max = |r: &LegRange, unit: Unit| {
            let range = r.low.max_ns.zip(r.high.max_ns).map(|(low, high)| unit.range(low, high));
            (range.unwrap_or_default(), String::new())
        };
        add(format!("{} max", metric.key()), &|r| r.high.max_ns, &max);
    }
    columns
}

/// Formats the range of a quantile of a leg, and the interval that encloses both ends of the range.
pub(crate) fn quantile(range: &LegRange, q: f64, unit: Unit) -> (String, String) {
    let of = |figures: &tailbound_document::MetricReport| figures.quantile(q).cloned();
    match (of(&range.low), of(&range.high)) {
        (
            Some(QuantileReport::Value { value_ns: least, low_ns, too_narrow, .. }),
            Some(high @ QuantileReport::Value { value_ns: most, .. }),
        ) => {
            // The upper end is formatted as in other tables, because it may lie among the lost messages.
            let upper = cell(&high, unit).interval;
            let upper = upper.rsplit_once('-').map_or(upper.as_str(), |(_, upper)| upper);
            let mark = if too_narrow && !upper.ends_with('~') { "~" } else { "" };
            (unit.range(least, most), format!("{}-{upper}{mark}", unit.number(low_ns as f64)))
        }
        (_, Some(other)) => {
            let cell = cell(&other, unit);
            (cell.value, cell.interval)
        }
        _ => Default::default(),
    }
}
