//! Makes the tables with the figures of all conditions for the HTML page.

use crate::escape::escape;
use crate::html::table::{Head, left, number, right, table as set, words};
use crate::tables::legs;
use crate::tables::summary::{Column, Row, Summary, TOOL, cell, summary};
use crate::tables::value_column::ValueColumn;
use tailbound_document::number::{Unit, count, label};
use tailbound_document::{ConditionReport, Counts, LegRange, MetricReport, QuantileReport, Report};
use tailbound_model::Metric;

/// Counts of slots by outcome, and of duplicate and reordered answers. All counts except the first are shown only if
/// they are not zero.
type Ending = (&'static str, fn(&Counts) -> u64);

const ENDINGS: [Ending; 5] = [
    ("lost", |c| c.lost),
    ("not sent", |c| c.not_sent),
    ("after timeout", |c| c.after_timeout),
    ("duplicate", |c| c.duplicate),
    ("out of order", |c| c.out_of_order),
];

/// Table with one row per condition: round trips and the outcomes of slots.
pub(crate) fn table(report: &Report) -> String {
    let summary = summary(report);
    let columns: Vec<Column> = report.view.quantiles.iter().map(|q| Column::of(report, *q)).collect();
    let mut heads: Vec<Head> = summary.factors.iter().map(left).collect();
    heads.extend(columns.iter().chain([&Column::max(report)]).map(|c| right(c.name.as_str(), c.unit_name())));
    heads.push(right("scheduled", ""));
    let occurred = |of: &fn(&Counts) -> u64| report.conditions.iter().any(|c| of(&c.counts) > 0);
    let endings: Vec<&Ending> = ENDINGS.iter().filter(|(name, of)| *name == "lost" || occurred(of)).collect();
    heads.extend(endings.iter().map(|(name, _)| right(*name, "")));
    heads.push(left("trials"));
    let set_row = |(c, r): (&ConditionReport, &Row)| row(c, r, &columns, &endings);
    let rows: Vec<String> = report.conditions.iter().zip(&summary.rows).map(set_row).collect();
    let shared = if summary.shared.is_empty() { String::new() } else { format!(" All: {}.", summary.shared) };
    format!(
        "<section id=\"conditions\"><h2>All conditions</h2>\n<p class=\"lead\">Round trips, with the 95 % interval \
            below each quantile (~: too narrow).{}</p>\n{}</section>\n",
        escape(&shared),
        set(&heads, &rows)
    )
}

fn row(condition: &ConditionReport, row: &Row, columns: &[Column], endings: &[&Ending]) -> String {
    let mut cells: String = row.levels.iter().map(|l| words(l)).collect();
    match &condition.round_trip {
        Some(figures) => {
            cells.extend(columns.iter().map(|c| quantile(figures.quantile(c.q), c.unit())));
            cells.push_str(&number(&row.max));
        }
        None => cells.push_str(&"<td></td>".repeat(columns.len() + 1)),
    }
    let counts = &condition.counts;
    let quiet = |n: u64| match n {
        0 => "<td><span class=\"quiet\">0</span></td>".to_owned(),
        n => number(&count(n)),
    };
    match condition.tool {
        Some(_) => cells.push_str(&"<td></td>".repeat(endings.len() + 1)),
        None => {
            cells.push_str(&number(&count(counts.scheduled)));
            cells.extend(endings.iter().map(|(_, of)| quiet(of(counts))));
        }
    }
    cells.push_str(&format!("<td class=\"l\">{}</td>", trials(condition, row.mark)));
    format!("<tr id=\"condition-{}\">{cells}</tr>\n", condition.id)
}

fn trials(condition: &ConditionReport, mark: &str) -> String {
    let mark = match mark {
        "" => String::new(),
        TOOL => return "<a href=\"#tools\">other program</a>".into(),
        mark => format!("<span class=\"bad\">{mark}</span> "),
    };
    if let Some(reason) = &condition.not_possible {
        return format!("{mark}<span class=\"interval\">{}</span>", escape(reason));
    }
    let used = condition.used_trial_ids.len();
    let of = if used == condition.trials { used.to_string() } else { format!("{used} of {}", condition.trials) };
    let why =
        condition.finding.as_ref().map_or(String::new(), |f| format!("<span class=\"interval\">{}</span>", escape(f)));
    format!("{mark}{of}{why}")
}

pub(crate) fn quantile(quantile: Option<&QuantileReport>, unit: Unit) -> String {
    let Some(quantile) = quantile else { return "<td></td>".into() };
    let cell = cell(quantile, unit);
    match quantile {
        QuantileReport::Needs { .. } => format!("<td><span class=\"quiet\">{}</span></td>", escape(&cell.value)),
        QuantileReport::Beyond { .. } => format!("<td><strong>{}</strong></td>", escape(&cell.value)),
        QuantileReport::Value { value_ns, .. } => format!(
            "<td data-value-ns=\"{value_ns}\">{}<span class=\"interval\">{}</span></td>",
            escape(&cell.value),
            escape(&cell.interval).replace('-', "\u{2013}")
        ),
    }
}

/// Makes the head of the table row of a condition: the levels in which the conditions differ.
pub(crate) fn row_head(summary: &Summary, condition: &ConditionReport) -> String {
    let levels = summary.rows.get(condition.id).map_or(String::new(), |r| r.levels.join(", "));
    format!("<td class=\"l wrap\">{}</td>", escape(&levels))
}

/// HTML table of the legs between two clocks, with the same columns as on a terminal.
pub(crate) fn between_clocks(report: &Report) -> String {
    let columns = legs::columns(report);
    if columns.is_empty() {
        return String::new();
    }
    let note = "The ends have different clocks. The offset between the clocks is bounded by the messages in both \
        directions; it is not assumed that one direction takes half of the round trip.";
    format!(
        "<section id=\"between-clocks\"><h2>One way</h2>\n<p class=\"lead\">{}. {note}</p>\n{}</section>\n",
        escape(legs::TITLE),
        columns_table(report, &columns)
    )
}

/// Formats columns as an HTML table with one row per condition. Each cell can have a second line below its value.
pub(crate) fn columns_table(report: &Report, columns: &[ValueColumn]) -> String {
    let summary = summary(report);
    let mut heads: Vec<Head> = vec![left("condition")];
    heads.extend(columns.iter().map(|c| right(c.head.as_str(), c.unit)));
    let row = |c: &ConditionReport| {
        let cells = columns.iter().map(|column| {
            let (value, below) = &column.cells[c.id];
            let below = escape(below).replace('-', "\u{2013}");
            format!("<td>{}<span class=\"interval\">{below}</span></td>", escape(value))
        });
        format!("<tr>{}{}</tr>\n", row_head(&summary, c), cells.collect::<String>())
    };
    let rows: Vec<String> = report.conditions.iter().map(row).collect();
    set(&heads, &rows)
}

/// Makes the tables with all figures of all conditions as HTML, one collapsed table per metric.
pub(crate) fn metrics(report: &Report) -> String {
    let exact = |m: Metric| {
        let all: Vec<_> = report.conditions.iter().filter_map(|c| Some((c, c.metric(m)?))).collect();
        metric(title(m), definition(m), m == Metric::HalfRoundTrip, &all)
    };
    // A leg between two clocks has two sets of figures, for its minimum and its maximum.
    let end = |m: Metric, words: &str, of: fn(&LegRange) -> &MetricReport| {
        let all: Vec<_> = report.conditions.iter().filter_map(|c| Some((c, of(c.range(m)?)))).collect();
        metric(&format!("{}, {words}", title(m)), definition(m), false, &all)
    };
    let both = |m: Metric| [end(m, "at least", |r| &r.low), end(m, "at most", |r| &r.high)];
    let tables: String = Metric::ALL.iter().flat_map(|m| [exact(*m)].into_iter().chain(both(*m))).flatten().collect();
    format!("<details id=\"metrics\"><summary>Every metric of every condition</summary>\n{tables}</details>\n")
}

fn metric(title: &str, definition: &str, half: bool, with: &[(&ConditionReport, &MetricReport)]) -> Option<String> {
    let first = with.first()?.1;
    // Function that reads a figure that is not a quantile.
    type Moment = fn(&MetricReport) -> Option<f64>;
    let unit_of = |value: &dyn Fn(&MetricReport) -> Option<i64>| {
        Unit::of_all(with.iter().filter_map(|(_, m)| value(m))).unwrap_or(Unit::Us)
    };
    let moments: [(&str, Moment); 4] = [
        ("mean", |m| m.mean_ns),
        ("st. dev.", |m| m.stddev_ns),
        ("min", |m| m.min_ns.map(|v| v as f64)),
        ("max", |m| m.max_ns.map(|v| v as f64)),
    ];
    let moments: Vec<_> = moments
        .into_iter()
        .filter(|_| !half)
        .map(|(name, of)| (name, of, unit_of(&|m| of(m).map(|v| v as i64))))
        .collect();
    let columns: Vec<(f64, Unit)> =
        first.quantiles.iter().map(|e| (e.q(), unit_of(&|m| m.quantile(e.q())?.value_ns()))).collect();
    let mut heads = vec![left("condition"), right("n", "")];
    heads.extend(moments.iter().map(|(name, _, unit)| right(*name, unit.name())));
    heads.extend(columns.iter().map(|(q, unit)| right(label(*q), unit.name())));
    let rows: Vec<String> = with
        .iter()
        .map(|(c, m)| {
            let mut cells = words(&c.name) + &number(&count(m.n));
            cells.extend(moments.iter().map(|(_, of, unit)| number(&of(m).map_or(String::new(), |v| unit.number(v)))));
            cells.extend(columns.iter().map(|(q, unit)| quantile(m.quantile(*q), *unit)));
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    Some(format!("<h3>{title}</h3>\n<p class=\"note\">{definition}</p>\n{}", set(&heads, &rows)))
}

fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::RoundTrip => "Round trip",
        Metric::HalfRoundTrip => "Half of a round trip",
        Metric::Out => "Out",
        Metric::OutNetwork => "Out, network",
        Metric::Turnaround => "Turnaround",
        Metric::Back => "Back",
        Metric::BackNetwork => "Back, network",
        Metric::FromIntended => "From intended",
        Metric::SendLateness => "Send lateness",
        Metric::SendDuration => "Send duration",
        Metric::WakeToSent => "Woken to sent",
        Metric::WakePeriod => "Wake period",
    }
}

fn definition(metric: Metric) -> &'static str {
    match metric {
        Metric::RoundTrip => "Time from just before the send call to the receipt of the answer.",
        Metric::HalfRoundTrip => "Half of the median round trip. Only the median is given.",
        Metric::Out => "Time from just before the send call to the receipt by the pong.",
        Metric::OutNetwork => "Time from just before the send call to the timestamp by the kernel of the pong's host.",
        Metric::Turnaround => "Time from the receipt by the pong to the end of its send call for the answer.",
        Metric::Back => "Time from the end of the pong's send call to the receipt of the answer.",
        Metric::BackNetwork => {
            "Time from the end of the pong's send call to the timestamp of the answer by the \
            kernel of the ping's host."
        }
        Metric::FromIntended => "Time from the moment at which the message was due to the receipt of the answer.",
        Metric::SendLateness => "Time from the moment at which the message was due to just before the send call.",
        Metric::SendDuration => "Duration of the send call.",
        Metric::WakeToSent => "Time from the sender's wake-up to the return of the send call.",
        Metric::WakePeriod => "Time from one wake-up of the sender to the next.",
    }
}
