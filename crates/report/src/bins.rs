//! The table of equal bins that a study asks for, and what others published beside it.

use crate::document::Report;
use crate::grid::{Column, Grid};
use crate::number::{Unit, count};
use crate::series::Series;
use crate::summary::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{HistogramSpec, Metric, Nanos, Published};

/// Behind the name of a row that was not measured here.
pub(crate) const ELSEWHERE: &str = "published, other hardware";

/// Messages of a condition by bins of equal width.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BinsReport {
    /// What is counted: the key of a metric.
    pub metric: String,
    /// Width of a bin; bin k holds values from k widths up to, not including, k + 1 of them.
    pub bin_ns: i64,
    /// One per bin, the open one last; what is below zero is in the first.
    pub counts: Vec<u64>,
    /// Slots without a value: they are in no bin.
    pub without: u64,
}

/// What others found, on other hardware.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedReport {
    /// Which of their rows or cases it is.
    pub name: String,
    /// What they say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Counts of the same bins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<u64>,
    /// Runs by pattern.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patterns: BTreeMap<String, u64>,
}

impl From<&Published> for PublishedReport {
    fn from(p: &Published) -> Self {
        let patterns = p.patterns.iter().map(|(pattern, n)| (pattern.words().to_owned(), *n)).collect();
        PublishedReport { name: p.name.clone(), text: p.text.clone(), histogram: p.histogram.clone(), patterns }
    }
}

/// Counts while the samples are read.
#[derive(Debug, Clone)]
pub(crate) struct Bins {
    spec: HistogramSpec,
    counts: Vec<u64>,
    without: u64,
}

impl Bins {
    pub fn new(spec: HistogramSpec) -> Self {
        Bins { spec, counts: vec![0; spec.bins as usize + 1], without: 0 }
    }

    /// The metric that is read for it.
    pub fn source(&self) -> Metric {
        if self.spec.metric == Metric::HalfRoundTrip { Metric::RoundTrip } else { self.spec.metric }
    }

    /// Values of [`Bins::source`].
    pub fn offer(&mut self, series: &Series) {
        let Nanos(mut width) = self.spec.bin;
        if self.spec.metric == Metric::HalfRoundTrip {
            width = width.saturating_mul(2);
        }
        let open = self.counts.len() - 1;
        for value in series.values().iter().filter(|v| **v != Series::BEYOND) {
            self.counts[((value / width).max(0) as usize).min(open)] += 1;
        }
        self.without += series.beyond + series.without;
    }

    pub fn report(self) -> BinsReport {
        let Nanos(bin_ns) = self.spec.bin;
        BinsReport { metric: self.spec.metric.key().into(), bin_ns, counts: self.counts, without: self.without }
    }
}

/// Heads of the bins, `0-99` with the unit apart.
pub(crate) fn heads(bins: &BinsReport) -> (Vec<String>, Unit) {
    let unit = Unit::of(bins.bin_ns as f64);
    let bound = |k: usize| unit.number((k as i64 * bins.bin_ns) as f64).replace(',', "");
    // A whole number of units: the last one inside is named, as histograms in print do.
    let whole = bound(1).parse::<u64>().ok().filter(|w| *w > 1);
    let head = |k: usize| match whole {
        Some(w) => format!("{}-{}", k as u64 * w, (k as u64 + 1) * w - 1),
        None => format!("{}-{}", bound(k), bound(k + 1)),
    };
    let last = bins.counts.len() - 1;
    ((0..last).map(head).chain(["over".to_owned()]).collect(), unit)
}

/// Where the study asks for bins: their table for a terminal, with a title.
pub(crate) fn table(report: &Report, summary: &Summary) -> Option<(String, Grid)> {
    let first = report.conditions.iter().find_map(|c| c.bins.as_ref())?;
    let (heads, unit) = heads(first);
    let published: Vec<&PublishedReport> = report.published.iter().filter(|p| !p.histogram.is_empty()).collect();
    let one = |text: String| (text, String::new());
    let mut grid = Grid::of_levels_and(summary, published.iter().map(|p| format!("* {}", p.name)));
    for (k, head) in heads.into_iter().enumerate() {
        let mut cells: Vec<_> = report
            .conditions
            .iter()
            .map(|c| one(c.bins.as_ref().map_or(String::new(), |b| count(b.counts[k]))))
            .collect();
        cells.extend(published.iter().map(|p| one(count(p.histogram[k]))));
        grid.columns.push(Column { head, cells, right: true });
    }
    let elsewhere = if published.is_empty() { String::new() } else { format!("; * {ELSEWHERE}") };
    let title = format!("{} in bins, {}{elsewhere}", first.metric.replace('_', " "), unit.name());
    Some((title, grid))
}
