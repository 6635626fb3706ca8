//! Legs between two clocks as columns of a table, each from the least to the most that messages can have taken: for the
//! terminal, for Markdown, for the page.

use crate::condition::{LegRange, QuantileReport};
use crate::document::Report;
use crate::flow::FlowColumn;
use crate::number::{Unit, label};
use crate::series::BETWEEN_ENDS;
use crate::summary::{cell, shown};

/// What stands over the table.
pub(crate) const TITLE: &str = "out and back between two clocks: from the least to the most that all messages leave possible; below, \
     from the lower end of the one's 95 % interval to the upper end of the other's";

/// Its columns; none where all ends have one clock.
pub(crate) fn columns(report: &Report) -> Vec<FlowColumn> {
    let mut columns = Vec::new();
    for metric in BETWEEN_ENDS {
        let ranges: Vec<Option<&LegRange>> = report.conditions.iter().map(|c| c.range(metric)).collect();
        let mut add = |head: String, of: &dyn Fn(&LegRange) -> Option<i64>, set: &dyn Fn(&LegRange, Unit) -> _| {
            let Some(unit) = Unit::of_all(ranges.iter().flatten().filter_map(|r| of(r))) else { return };
            let cells = ranges.iter().map(|r| r.map_or_else(Default::default, |r| set(r, unit))).collect();
            columns.push(FlowColumn { head, unit: unit.name(), cells });
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

/// The quantile from its least to its most, and the interval about both.
pub(crate) fn quantile(range: &LegRange, q: f64, unit: Unit) -> (String, String) {
    let of = |figures: &crate::condition::MetricReport| figures.quantile(q).cloned();
    match (of(&range.low), of(&range.high)) {
        (
            Some(QuantileReport::Value { value_ns: least, low_ns, too_narrow, .. }),
            Some(high @ QuantileReport::Value { value_ns: most, .. }),
        ) => {
            // The upper end as any table sets it: it may lie among what was lost.
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
