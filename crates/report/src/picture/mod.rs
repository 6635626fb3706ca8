//! Single figures as SVG, from the same document as all other forms: for a paper, a slide, a merge request.
//!
//! They are still, so they hold less than those of the page: no choice, no tooltip.

pub(crate) mod axis;
pub(crate) mod canvas;
mod course;
mod estimate;
mod flow;
mod histogram;
mod ladder;
mod latency;
mod legs;
pub(crate) mod overhead;
#[cfg(feature = "png")]
mod png;
mod tail;
mod time;

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
    /// The tail estimate, with the fitted tail and its interval.
    TailEstimate,
    /// Every quantile of every condition.
    Ladder,
    /// Messages in each bucket.
    Histogram,
    /// The trial of the worst message over time.
    Time,
    /// The parts of the median message and of the worst.
    Legs,
    /// The sender's loop, slot by slot.
    Loop,
    /// Samples of flows, second by second.
    Flow,
    /// What each level costs against the study's baseline.
    Overhead,
}

impl Figure {
    /// All figures, in the order of the page, with their names.
    pub const ALL: [(Figure, &str); 10] = [
        (Figure::Flow, "flow"),
        (Figure::Overhead, "overhead"),
        (Figure::Latency, "latency"),
        (Figure::Tail, "tail"),
        (Figure::TailEstimate, "tail-estimate"),
        (Figure::Ladder, "ladder"),
        (Figure::Histogram, "histogram"),
        (Figure::Time, "time"),
        (Figure::Legs, "legs"),
        (Figure::Loop, "loop"),
    ];
}

/// One figure as an SVG document.
///
/// # Errors
/// The record lacks the figure: why, and which it has.
pub fn render_svg(report: &Report, figure: Figure) -> Result<String, String> {
    let report = &crate::plain::plain(report);
    draw(report, figure).map_err(|why| {
        let there: Vec<&str> =
            Figure::ALL.iter().filter(|(other, _)| draw(report, *other).is_ok()).map(|(_, name)| *name).collect();
        let there = if there.is_empty() { "no figure".to_owned() } else { there.join(", ") };
        format!("there is nothing to draw: {why}\n  there is: {there}")
    })
}

fn draw(report: &Report, figure: Figure) -> Result<String, String> {
    let shown: Vec<Shown<'_>> = shown(report);
    let none = match (report.conditions.is_empty(), report.conditions.iter().any(|c| c.flow.is_some())) {
        (true, _) => "the record holds what another program printed, and no message",
        (_, true) => "the record is of flows and has no round trips",
        _ => "no message was answered",
    };
    match figure {
        Figure::Flow => flow::draw(report).ok_or_else(|| "the record has no flow of two seconds or more".into()),
        Figure::Overhead => overhead::draw(report).ok_or_else(|| {
            "no overhead is known: the study names no level to set others against, or none compares".into()
        }),
        _ if shown.is_empty() => Err(none.into()),
        Figure::Latency => Ok(latency::draw(report, &shown)),
        Figure::Tail => Ok(tail::draw(report, &shown)),
        Figure::TailEstimate => estimate::draw(report, &shown),
        Figure::Ladder => Ok(ladder::draw(report, &shown)),
        Figure::Histogram => Ok(histogram::draw(report, &shown)),
        Figure::Time => time::draw(report).ok_or_else(|| "no trial was followed over time".into()),
        Figure::Legs => legs::draw(report).ok_or_else(|| "no message was the worst".into()),
        Figure::Loop => course::draw(report).ok_or_else(|| "no trial was followed slot by slot".into()),
    }
}

/// More conditions than hues cannot be told apart.
const MOST: usize = 6;

/// The conditions with the longest round trips, and a note where these are not all.
fn longest<'s, 'r>(shown: &'s [Shown<'r>]) -> (Vec<&'s Shown<'r>>, String) {
    let mut chosen: Vec<&Shown<'_>> = shown.iter().collect();
    if chosen.len() <= MOST {
        return (chosen, String::new());
    }
    chosen.sort_by(|a, b| b.max_ns.total_cmp(&a.max_ns));
    chosen.truncate(MOST);
    chosen.sort_by_key(|s| s.condition.id);
    (chosen, format!(", the {MOST} conditions with the longest"))
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
