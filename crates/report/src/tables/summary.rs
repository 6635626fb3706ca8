//! The table of all conditions, ready for every output form: one unit per column, and levels that differ as columns.
//! Levels that all conditions share are one line of text.

use tailbound_document::number::{Unit, count, label};
use tailbound_document::{Beyond, ConditionReport, ConditionStatus, MetricReport, QuantileReport, Report};

/// Quantiles that the table of all conditions contains, if the study asks for them.
const SHOWN: [f64; 3] = [0.5, 0.99, 0.999];

/// Mark in a table for a condition that another benchmark program measured.
pub(crate) const TOOL: &str = "other program";

/// The table of all conditions, with its cells as text.
pub(crate) struct Summary {
    /// Levels that all conditions share, e.g. `path veth, rate 1 kHz`.
    pub shared: String,
    /// Factors whose levels differ between conditions.
    pub factors: Vec<String>,
    /// Heads of the quantile columns and of the maximum, each with its unit.
    pub heads: Vec<String>,
    /// True if at least one condition has slots that were never sent; the table then has a column for them.
    pub some_not_sent: bool,
    /// Rows of the table: one row per condition, in the order of the plan.
    pub rows: Vec<Row>,
}

/// The table row of one condition.
pub(crate) struct Row {
    /// Levels of the condition in this row, in the order of [`Summary::factors`].
    pub levels: Vec<String>,
    /// Value and interval of each quantile of the round trip.
    pub cells: Vec<Cell>,
    /// The maximum round trip of the condition as text.
    pub max: String,
    /// Number of lost messages of the condition as text.
    pub lost: String,
    /// Number of messages of the condition that were never sent, as text.
    pub not_sent: String,
    /// Mark of the condition in the table, for example `invalid`; usually empty.
    pub mark: &'static str,
}

/// Value and interval of a quantile of the round trip, as the text of a table cell.
#[derive(Clone, Default)]
pub(crate) struct Cell {
    pub value: String,
    /// The interval as text, for example `2.90-4.10`, with `~` if it is too narrow; empty if there is no value.
    pub interval: String,
}

/// The quantiles of the round trip that the tables of a report show.
pub(crate) fn shown(report: &Report) -> Vec<f64> {
    match SHOWN.iter().filter(|q| asked(report, **q)).copied().collect::<Vec<_>>() {
        few if few.len() < 2 => report.view.quantiles.iter().copied().take(3).collect(),
        usual => usual,
    }
}

/// Makes the table of round trips of all conditions.
pub(crate) fn summary(report: &Report) -> Summary {
    let columns: Vec<Column> = shown(report).iter().map(|q| Column::of(report, *q)).collect();
    let max = Column::max(report);
    let factors = differing(report);
    let rows = report.conditions.iter().map(|c| row(c, &factors, &columns, &max)).collect();
    let heads = columns.iter().chain([&max]).map(|c| format!("{} {}", c.name, c.unit_name()).trim_end().to_owned());
    let some_not_sent = report.conditions.iter().any(|c| c.counts.not_sent > 0);
    Summary { some_not_sent, shared: shared(report, &factors), heads: heads.collect(), factors, rows }
}

/// A table column of round trips; the values and the ends of their intervals share one unit.
pub(crate) struct Column {
    pub q: f64,
    pub name: String,
    unit: Option<Unit>,
}

impl Column {
    /// Makes the table column of the quantile `q` of the round trip.
    pub fn of(report: &Report, q: f64) -> Column {
        let values = round_trips(report).filter_map(|m| m.quantile(q)?.value_ns());
        Column { q, name: label(q), unit: Unit::of_all(values) }
    }

    /// Makes the table column of the maximum round trip.
    pub fn max(report: &Report) -> Column {
        Column { q: 1.0, name: "max".into(), unit: Unit::of_all(round_trips(report).filter_map(|m| m.max_ns)) }
    }

    /// Name of the unit of the column; empty for a column without times.
    pub fn unit_name(&self) -> &'static str {
        self.unit.map_or("", Unit::name)
    }

    /// The unit of the column, or microseconds if the column has no times.
    pub fn unit(&self) -> Unit {
        self.unit.unwrap_or(Unit::Us)
    }
}

fn asked(report: &Report, q: f64) -> bool {
    report.view.quantiles.iter().any(|other| (other - q).abs() < 5e-16)
}

fn round_trips(report: &Report) -> impl Iterator<Item = &MetricReport> {
    report.conditions.iter().filter_map(|c| c.round_trip.as_ref())
}

/// Factors with more than one level, in the order of the study; for a single condition, only its payload.
pub(crate) fn differing(report: &Report) -> Vec<String> {
    let levels = |factor: &str| {
        let mut all: Vec<_> = report.conditions.iter().map(|c| c.levels.get(factor)).collect();
        all.sort();
        all.dedup();
        all.len()
    };
    let mut names: Vec<String> = report.run.factors.clone();
    for name in report.conditions.iter().flat_map(|c| c.levels.keys()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let mut differing: Vec<String> = names.iter().filter(|f| levels(f) > 1).cloned().collect();
    if differing.is_empty() {
        differing = names.into_iter().filter(|f| f == "driver" || f == "payload").collect();
    }
    differing
}

fn shared(report: &Report, differing: &[String]) -> String {
    let Some(first) = report.conditions.first() else { return String::new() };
    let same = first.levels.iter().filter(|(factor, _)| !differing.contains(factor));
    same.map(|(factor, level)| format!("{factor} {level}")).collect::<Vec<_>>().join(", ")
}

fn row(condition: &ConditionReport, factors: &[String], columns: &[Column], max: &Column) -> Row {
    let level = |factor: &String| condition.levels.get(factor).cloned().unwrap_or_default();
    let figures = condition.round_trip.as_ref();
    let counts = &condition.counts;
    let counted = |n: u64| if counts.scheduled > 0 { count(n) } else { String::new() };
    let set = |c: &Column| figures.and_then(|m| m.quantile(c.q)).map_or(Cell::default(), |e| cell(e, c.unit()));
    Row {
        levels: factors.iter().map(level).collect(),
        cells: columns.iter().map(set).collect(),
        max: figures.and_then(|m| m.max_ns).map_or(String::new(), |ns| max.unit().number(ns as f64)),
        lost: counted(counts.lost),
        not_sent: counted(counts.not_sent),
        mark: match condition.status {
            ConditionStatus::Valid if condition.tool.is_some() => TOOL,
            ConditionStatus::Valid => "",
            ConditionStatus::Invalid => "invalid",
            ConditionStatus::Incomplete => "incomplete",
            ConditionStatus::NotPossible => "not possible",
        },
    }
}

/// Formats the value and interval of a quantile in the given unit.
pub(crate) fn cell(quantile: &QuantileReport, unit: Unit) -> Cell {
    match quantile {
        QuantileReport::Value { value_ns, low_ns, high_ns, high_beyond, too_narrow, .. } => {
            let beyond = high_beyond.map_or("lost", Beyond::words);
            let high = high_ns.map_or(beyond.into(), |h| unit.number(h as f64));
            let mark = if *too_narrow { "~" } else { "" };
            Cell {
                value: unit.number(*value_ns as f64),
                interval: format!("{}-{high}{mark}", unit.number(*low_ns as f64)),
            }
        }
        QuantileReport::Needs { needs, .. } => {
            Cell { value: format!("needs {}", count(*needs)), interval: String::new() }
        }
        QuantileReport::Beyond { beyond, .. } => Cell { value: beyond.words().into(), interval: String::new() },
    }
}
