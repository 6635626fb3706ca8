//! Charts of a report. The code of a chart draws both the chart of the HTML page and an SVG file for a paper, a slide
//! or a merge request.
//!
//! In the page a chart is drawn once for each value of a choice that changes its geometry; the script shows the drawing
//! that the reader chose. An SVG file has no choices and no tooltips: where the page offers a choice, the file shows
//! the worst case.

pub(crate) mod axis;
pub(crate) mod canvas;
pub(crate) mod clock_strip;
mod estimate;
pub(crate) mod flow;
pub(crate) mod flow_axis;
pub(crate) mod gate_timeline;
mod histogram;
mod ladder;
mod latency;
pub(crate) mod layout;
mod legs;
pub(crate) mod levels;
pub(crate) mod limits;
mod look;
mod names;
pub(crate) mod network_user;
pub(crate) mod overhead;
pub(crate) mod phase;
#[cfg(feature = "png")]
mod png;
pub(crate) mod reading;
pub(crate) mod sender_loop;
pub(crate) mod series;
mod steps;
mod still;
mod tail;
mod time;
pub(crate) mod variants;
mod waterfall;

use canvas::{Canvas, Hold, Medium};
#[cfg(feature = "png")]
pub use png::{PngError, render_png};
use series::Chart;
use tailbound_document::{ConditionReport, GateReport, Report};
use tailbound_model::{Metric, Problem};

/// The charts of a report that can be drawn as SVG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Chart of the round trip over the main factor of the study: median with its interval, p99, maximum.
    Latency,
    /// Chart that shows for each duration the share of round trips that take longer.
    Tail,
    /// Chart of the tail estimate, with the fitted tail and its interval.
    TailEstimate,
    /// Chart of all quantiles of the round trip of every condition.
    Ladder,
    /// Chart of histograms: the number of messages in each bucket.
    Histogram,
    /// Chart of the trial with the worst message, over time.
    Time,
    /// Chart of the legs (parts of the latency) of the median message and of the worst messages.
    Legs,
    /// Chart of the sender's loop, slot by slot.
    Loop,
    /// Chart of the samples of flows, second by second.
    Flow,
    /// Chart of the overhead of each level relative to the study's baseline.
    Overhead,
    /// Chart of the ways of messages through a gate over its cycle, with the predicted wait.
    GateWaits,
    /// Chart of the gates of the classes over their cycle, with the messages that waited longest.
    GateTimeline,
    /// Chart of the times of messages to the kernel and to the thread that receives them.
    NetworkUser,
    /// Small charts of the round trips over time, one for each level of a factor.
    Levels,
    /// Drawing of the CPUs that threads, virtual CPUs and interrupts of the first trial may use.
    Layout,
}

impl Figure {
    /// All charts with their names, in the order of the HTML page.
    pub const ALL: [(Figure, &str); 15] = [
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
        (Figure::GateWaits, "gate-waits"),
        (Figure::GateTimeline, "gate-timeline"),
        (Figure::NetworkUser, "network-user"),
        (Figure::Levels, "levels"),
        (Figure::Layout, "layout"),
    ];
}

/// Draws one chart as an SVG document.
///
/// # Errors
/// The record does not contain the data of the chart. The error gives the reason and the charts that the record has.
pub fn render_svg(report: &Report, figure: Figure) -> Result<String, Problem> {
    let report = &crate::plain::plain(report);
    draw(report, figure).map_err(|problem| {
        let there: Vec<&str> =
            Figure::ALL.iter().filter(|(other, _)| draw(report, *other).is_ok()).map(|(_, name)| *name).collect();
        let remedy =
            if there.is_empty() { String::new() } else { format!("these charts can be drawn: {}", there.join(", ")) };
        problem.context("this chart cannot be drawn").with_remedy(remedy)
    })
}

/// Makes the [`Problem`] for a chart that cannot be drawn; `why` is the reason.
pub(crate) fn no_chart(why: impl Into<String>) -> Problem {
    Problem::new("no_chart", why, "")
}

/// A figure: what it shows, in words, and its drawings.
type Drawn = (String, Vec<Canvas>);

fn draw(report: &Report, figure: Figure) -> Result<String, Problem> {
    let none = match (report.conditions.is_empty(), report.conditions.iter().any(|c| c.flow.is_some())) {
        (true, _) => "the record contains the output of another program, and no messages",
        (_, true) => "the record contains flows, and no round trips",
        _ => "no message was answered",
    };
    let ((title, drawn), none) = match figure {
        Figure::Flow => {
            let title = "Samples in each second of the window: sent dashed, received by each subscriber";
            ((title.into(), flow::draw(report, Medium::Still)), "the record has no flow of two seconds or more")
        }
        Figure::Overhead => {
            let title = report.against.as_ref().map_or(String::new(), overhead::title);
            let none = "no overhead is known: the study names no baseline level, or no other level can be compared \
                with the baseline";
            ((title, overhead::draw(report, Medium::Still)), none)
        }
        Figure::GateWaits | Figure::GateTimeline => {
            (of_gate(report, figure), "the record has no messages of known gates")
        }
        Figure::NetworkUser => {
            let title = "Times of messages to the kernel (network) and to the thread that receives them (user)";
            let none = "the record has no receive stamps of the kernel";
            ((title.into(), network_user::draw(report, Medium::Still)), none)
        }
        Figure::Levels => {
            let none = "no factor of the study has 2 to 12 levels with answered messages";
            (levels::rows(report).unwrap_or_default(), none)
        }
        Figure::Layout => {
            let trial = report.threads.first().map(|process| process.trial);
            let drawn = trial.and_then(|trial| layout::draw(report, trial, Medium::Still));
            let title = trial.map_or(String::new(), |trial| format!("{} (trial {trial})", layout::TITLE));
            ((title, drawn.into_iter().collect()), "the record has no threads of a trial")
        }
        _ => (of_round_trips(report, figure, none)?, none),
    };
    if drawn.is_empty() { Err(no_chart(none)) } else { Ok(still::still(report, &title, drawn)) }
}

/// The figure of the gate with the longest way of a message.
fn of_gate(report: &Report, figure: Figure) -> Drawn {
    let draw = |(condition, gate): (&ConditionReport, &GateReport)| {
        let longest_ns = gate.phases.iter().map(|phase| phase.way_max_ns).max();
        let (what, drawn) = match figure {
            Figure::GateTimeline => {
                let what = "Gates, and the messages that waited longest";
                (what, gate_timeline::draw(condition, gate, Medium::Still))
            }
            _ => ("Measured ways (dots) and predicted wait", phase::draw(condition, gate, Medium::Still)),
        };
        let title = format!("{what}: {}, {}", gate.end, condition.name);
        drawn.map(|drawn| (longest_ns, (title, vec![drawn])))
    };
    let all = crate::tables::gates::all(report).filter_map(draw);
    all.max_by_key(|(longest_ns, _)| *longest_ns).map(|(_, drawn)| drawn).unwrap_or_default()
}

fn of_round_trips(report: &Report, figure: Figure, none: &str) -> Result<Drawn, Problem> {
    let chart = &Chart::new(report, Medium::Still, Metric::RoundTrip, &report.view.x);
    if chart.answered().is_empty() {
        return Err(no_chart(none));
    }
    Ok(match figure {
        Figure::Tail => {
            let (drawn, note) = tail::draw(chart);
            (format!("Share of round trips that take longer than a given time{note}"), drawn)
        }
        Figure::TailEstimate => {
            let all = estimate::conditions(chart);
            let (condition, figures) = all.first().ok_or_else(|| no_chart("the study asks for no tail estimate"))?;
            let title = format!("Tail estimate, not a bound: {}", chart.short_name(condition));
            (title, estimate::draw(chart, condition, figures)?)
        }
        Figure::Ladder => {
            ("Round trip: quantiles with their 95 % intervals, maximum as a triangle".into(), ladder::draw(chart))
        }
        Figure::Histogram => {
            let (drawn, note) = histogram::draw(chart);
            (format!("Round trips in each bucket, 16 buckets for each doubling{note}"), drawn)
        }
        Figure::Time => {
            let trials = time::trials(chart);
            let drawn = trials.iter().map(|(t, c)| (t, c, time::draw(chart, t, c))).find(|(.., d)| !d.is_empty());
            let none = "the record contains no trial that can be shown over time";
            let (trial, condition, drawn) = drawn.ok_or_else(|| no_chart(none))?;
            (format!("Round trips of trial {}: {}", trial.id, condition.name), drawn)
        }
        Figure::Legs => {
            let all = legs::conditions(chart);
            let condition = all.first().ok_or_else(|| no_chart("the record contains no worst message"))?;
            let bars = legs::draw(chart, Some(condition));
            let drawn = [legs::keys(chart, condition)].into_iter().chain(bars).collect();
            (format!("From due to answered: {}", condition.name), drawn)
        }
        Figure::Loop => {
            let all = sender_loop::conditions(chart);
            let none = "the record contains no trial that can be shown slot by slot";
            let condition = all.first().ok_or_else(|| no_chart(none))?;
            (format!("The sender's loop: {}", condition.name), sender_loop::draw(chart, condition))
        }
        // The figures of the others are drawn before: they have no round trips.
        Figure::Latency
        | Figure::Flow
        | Figure::Overhead
        | Figure::GateWaits
        | Figure::GateTimeline
        | Figure::NetworkUser
        | Figure::Levels
        | Figure::Layout => {
            ("Round trip: median with its 95 % interval, p99 thin, maximum as a triangle".into(), latency::draw(chart))
        }
    })
}

/// Edges of the plot area, in SVG units.
#[derive(Clone, Copy)]
pub(crate) struct Plot {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Plot {
    /// Ticks of the horizontal axis: as many as there is room for.
    pub fn ticks(&self) -> usize {
        ((self.right - self.left) / 62.0) as usize
    }
}

/// Writes the name of the horizontal axis below the axis.
pub(crate) fn across(canvas: &mut Canvas, plot: &Plot, words: &str) {
    canvas.text("title", ((plot.left + plot.right) / 2.0, plot.bottom + 36.0), words, Hold::Middle);
}

/// Returns the class of a grid line: lines at powers of ten are stronger.
pub(crate) fn strength(tick: f64) -> &'static str {
    let power = tick.log10();
    if (power - power.round()).abs() < 1e-9 { "grid strong" } else { "grid" }
}
