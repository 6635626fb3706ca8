//! Overheads in the CSV table: a separate row for each condition and figure.

use tailbound_document::{AgainstRow, Difference, Overhead};

/// Heads of the CSV columns for overheads, which come after all other columns.
pub(crate) const HEADS: [&str; 11] = [
    "baseline_condition",
    "statistic",
    "unit",
    "baseline",
    "value",
    "overhead_per_cent",
    "overhead_low",
    "overhead_high",
    "difference_low_ns",
    "difference_high_ns",
    "why_none",
];

/// Metric and cells of each CSV row of overheads; a row without figures contains the reason.
pub(crate) fn rows(row: &AgainstRow) -> Vec<(String, Vec<String>)> {
    let text = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    let baseline = row.baseline.map_or(String::new(), |id| id.to_string());
    let mut rows = Vec::new();
    if row.overheads.is_empty() {
        let mut cells = vec![String::new(); HEADS.len()];
        (cells[0], cells[HEADS.len() - 1]) = (baseline.clone(), row.why.clone().unwrap_or_default());
        rows.push(("overhead".into(), cells));
    }
    let of = |o: &Overhead| {
        let (low, high) = (o.interval.map(|i| i[0]), o.interval.map(|i| i[1]));
        let cells = [text(o.baseline), text(o.value), text(o.per_cent), text(low), text(high)];
        let mut all = vec![baseline.clone(), o.statistic.clone(), o.unit.clone()];
        all.extend(cells);
        all.extend([String::new(), String::new()]);
        all.push(o.why.clone().unwrap_or_default());
        (format!("overhead of {}", o.metric), all)
    };
    let difference = |d: &Difference| {
        let ends = |pair: [f64; 2]| if pair[0] == pair[1] { pair[0].to_string() } else { String::new() };
        let [low, high] = d.difference_ns.map(|ns| ns.to_string());
        let values = [baseline.clone(), d.statistic.clone(), "ns".into(), ends(d.baseline_ns), ends(d.value_ns)];
        (
            format!("difference of {}", d.metric),
            values.into_iter().chain(["", "", ""].map(String::from)).chain([low, high, String::new()]).collect(),
        )
    };
    rows.extend(row.overheads.iter().map(of).chain(row.differences.iter().map(difference)));
    rows
}
