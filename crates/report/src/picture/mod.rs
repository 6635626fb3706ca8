//! Single figures as SVG, from the same document as all other forms: for a paper, a slide, a merge request.
//!
//! They are still, so they hold less than those of the page: no choice, no tooltip.

pub(crate) mod axis;
pub(crate) mod canvas;
mod ladder;
mod latency;
#[cfg(feature = "png")]
mod png;
mod tail;

use crate::condition::{ConditionReport, MetricReport};
use crate::document::Report;
#[cfg(feature = "png")]
pub use png::{PngError, render_png};

/// Which figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// The study's main factor against the round trip: median with its interval, p99, maximum.
    Latency,
    /// How rare a round trip is.
    Tail,
    /// Every quantile of every condition.
    Ladder,
}

/// One figure as an SVG document; `None` where no message was answered.
pub fn render_svg(report: &Report, figure: Figure) -> Option<String> {
    let report = &crate::plain::plain(report);
    let shown: Vec<Shown<'_>> = shown(report);
    if shown.is_empty() {
        return None;
    }
    Some(match figure {
        Figure::Latency => latency::draw(report, &shown),
        Figure::Tail => tail::draw(report, &shown),
        Figure::Ladder => ladder::draw(report, &shown),
    })
}

/// A condition with its round trips and its hue.
struct Shown<'a> {
    condition: &'a ConditionReport,
    figures: &'a MetricReport,
    min_ns: f64,
    max_ns: f64,
    /// The levels that differ.
    name: String,
    /// The same without the factor on the x axis.
    series: String,
    hue: usize,
}

fn shown(report: &Report) -> Vec<Shown<'_>> {
    let factors = crate::summary::differing(report);
    let mut series: Vec<String> = Vec::new();
    let of = |condition: &'_ ConditionReport, without: &str| -> String {
        let levels = factors.iter().filter(|f| *f != without).filter_map(|f| condition.levels.get(f));
        levels.cloned().collect::<Vec<_>>().join(", ")
    };
    let mut all = Vec::new();
    for condition in &report.conditions {
        let Some(figures) = condition.round_trip.as_ref() else { continue };
        let (Some(min), Some(max)) = (figures.min_ns, figures.max_ns) else { continue };
        let (name, own) = (of(condition, ""), of(condition, &report.view.x));
        let hue = series.iter().position(|s| *s == own).unwrap_or_else(|| {
            series.push(own.clone());
            series.len() - 1
        });
        let (min_ns, max_ns) = (min.max(1) as f64, max.max(1) as f64);
        all.push(Shown { condition, figures, min_ns, max_ns, name, series: own, hue });
    }
    all
}

/// The axis that all round trips fit on.
fn whole_axis(shown: &[Shown<'_>]) -> (f64, f64) {
    let low = shown.iter().map(|s| s.min_ns).fold(f64::INFINITY, f64::min);
    let high =
        shown.iter().flat_map(|s| s.figures.quantiles.iter().filter_map(high_of).chain([s.max_ns])).fold(1.0, f64::max);
    axis::nice(low, high)
}

/// The upper end of a quantile's interval, where there is one.
fn high_of(quantile: &crate::condition::QuantileReport) -> Option<f64> {
    match quantile {
        crate::condition::QuantileReport::Value { high_ns, .. } => high_ns.map(|h| h as f64),
        _ => None,
    }
}
