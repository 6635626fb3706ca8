//! Chooses the quantile of the tail that sentences of the report use, and formats the quantile as words.

use tailbound_document::number::{label, one_in};
use tailbound_document::{MetricReport, QuantileReport};

/// The quantile of the tail for sentences: p99.9 if it has a value, otherwise the highest quantile with a value.
pub(crate) fn tail_quantile(figures: &MetricReport) -> Option<&QuantileReport> {
    let told = |q: &&QuantileReport| !matches!(q, QuantileReport::Needs { .. }) && q.q() > 0.5;
    figures.quantile(0.999).filter(told).or_else(|| figures.quantiles.iter().rev().find(told))
}

/// Formats a quantile with its rarity, for example p99 with 1 in 100.
pub(crate) fn label_with_share(q: f64) -> String {
    let rare = one_in(q);
    if rare.starts_with('p') { label(q) } else { format!("{} ({rare})", label(q)) }
}
