//! The report as CSV (RFC 4180): one row per condition, metric and quantile, in nanoseconds. A leg between two clocks
//! has the metrics `out_low` and `out_high`. A report with flows has further columns, which are filled in a separate
//! row for each condition: its `metric` is `flow`, and its quantiles are empty. Overheads also have further columns and
//! separate rows.

mod against;
mod flow;

use tailbound_document::{Beyond, ConditionReport, MetricReport, QuantileReport, Report};
use tailbound_model::Metric;

const FIXED: [&str; 21] = [
    "metric",
    "n",
    "scheduled",
    "mean_ns",
    "stddev_ns",
    "min_ns",
    "max_ns",
    "q",
    "value_ns",
    "low_ns",
    "high_ns",
    "autocorrelation",
    "effective_n",
    "too_narrow",
    "needs",
    "beyond",
    "answered",
    "after_timeout",
    "lost",
    "not_sent",
    "trials",
];

/// Formats a report as a CSV table; a cell whose column does not apply to its row is empty.
pub fn render_csv(report: &Report) -> String {
    let mut factors: Vec<&String> = report.conditions.iter().flat_map(|c| c.levels.keys()).collect();
    factors.sort();
    factors.dedup();
    let mut heads = vec!["condition".to_owned(), "status".to_owned()];
    heads.extend(factors.iter().map(|f| f.to_string()));
    heads.extend(FIXED.map(str::to_owned));
    let flows = report.conditions.iter().any(|c| c.flow.is_some());
    if flows {
        heads.extend(flow::HEADS.map(str::to_owned));
    }
    if report.against.is_some() {
        heads.extend(against::HEADS.map(str::to_owned));
    }
    let width = heads.len();
    let line = |mut cells: Vec<String>| {
        cells.resize(width, String::new());
        line(&cells)
    };
    let mut text = line(heads);
    let head = |condition: &ConditionReport, metric: &str| {
        let mut cells = vec![condition.id.to_string(), word(&condition.status)];
        cells.extend(factors.iter().map(|f| condition.levels.get(*f).cloned().unwrap_or_default()));
        cells.push(metric.to_owned());
        cells
    };
    for condition in &report.conditions {
        if let Some(of) = &condition.flow {
            let mut cells = head(condition, "flow");
            cells.extend(std::iter::repeat_n(String::new(), FIXED.len() - 2));
            cells.push(condition.used_trial_ids.len().to_string());
            cells.extend(flow::cells(of));
            text.push_str(&line(cells));
        }
        for metric in Metric::ALL {
            let exact = condition.metric(metric).map(|m| (metric.key().to_owned(), m));
            // A leg between two clocks has two sets of figures: for its minimum and for its maximum.
            let range = condition.range(metric).map(|r| [("low", &r.low), ("high", &r.high)]);
            let range = range.into_iter().flatten().map(|(end, m)| (format!("{}_{end}", metric.key()), m));
            for (name, figures) in exact.into_iter().chain(range) {
                for quantile in &figures.quantiles {
                    let mut cells = head(condition, &name);
                    cells.extend(numbers(figures, quantile, condition));
                    text.push_str(&line(cells));
                }
            }
        }
    }
    for row in report.against.iter().flat_map(|a| &a.rows) {
        for (metric, of) in against::rows(row) {
            let mut cells = head(&report.conditions[row.condition], &metric);
            cells.resize(width - of.len(), String::new());
            cells.extend(of);
            text.push_str(&line(cells));
        }
    }
    text
}

fn word<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}

fn numbers(figures: &MetricReport, quantile: &QuantileReport, condition: &ConditionReport) -> Vec<String> {
    let mut cells = vec![
        figures.n.to_string(),
        figures.scheduled.to_string(),
        text(figures.mean_ns),
        text(figures.stddev_ns),
        text(figures.min_ns),
        text(figures.max_ns),
        quantile.q().to_string(),
    ];
    let empty = String::new;
    let beyond = |b: &Beyond| word(b);
    cells.extend(match quantile {
        QuantileReport::Value {
            value_ns,
            low_ns,
            high_ns,
            high_beyond,
            autocorrelation,
            effective_n,
            too_narrow,
            ..
        } => [
            value_ns.to_string(),
            low_ns.to_string(),
            high_ns.map_or_else(|| high_beyond.as_ref().map_or(String::new(), beyond), |h| h.to_string()),
            text(*autocorrelation),
            effective_n.to_string(),
            too_narrow.to_string(),
            empty(),
            empty(),
        ],
        QuantileReport::Needs { needs, .. } => {
            [empty(), empty(), empty(), empty(), empty(), empty(), needs.to_string(), empty()]
        }
        QuantileReport::Beyond { beyond: b, .. } => {
            [empty(), empty(), empty(), empty(), empty(), empty(), empty(), beyond(b)]
        }
    });
    let counts = &condition.counts;
    cells.extend([counts.answered, counts.after_timeout, counts.lost, counts.not_sent].map(|n| n.to_string()));
    cells.push(condition.used_trial_ids.len().to_string());
    cells
}

fn line(cells: &[String]) -> String {
    let quoted = |cell: &String| {
        // A spreadsheet would interpret a cell that begins with one of these characters as a formula.
        let cell = if cell.starts_with(['=', '+', '@']) { format!("'{cell}") } else { cell.clone() };
        if cell.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
    };
    cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
}
