//! Flows over payload, number of subscribers or rate, drawn here: there without a script, and on paper.

use super::escape::escape;
use crate::document::Report;
use crate::flow::{AxisUnit, Line, Panel, axis};
use crate::number::{three_digits, time};
use crate::picture::axis::{Log, nice};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 72.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 44.0;
/// Hues of lines, as the style sheet has them.
const HUES: usize = 6;
/// Lines of text beside the plot.
const GAP: f64 = 14.0;

pub(super) fn section(report: &Report) -> String {
    let Some(axis) = axis(report) else { return String::new() };
    let panels: String = axis.panels.iter().map(|p| draw(p, &axis.factor)).collect();
    let factor = escape(&axis.factor);
    let growth = if axis.panels.iter().flat_map(|p| &p.lines).any(|l| l.growth.is_some()) {
        " N^b: the exponent of the power law through a line's points, with its standard error."
    } else {
        ""
    };
    format!(
        "<section id=\"flow-axis\"><h2>Flow against {factor}</h2>\n<p class=\"lead\">Medians over the trials; bars from the \
         least to the most of them, for latencies the 95\u{202f}% interval.{growth}</p>\n<figure><div class=\"picture\">\n\
         {panels}</div></figure></section>\n"
    )
}

fn draw(panel: &Panel, factor: &str) -> String {
    let points = || panel.lines.iter().flat_map(|l| &l.points);
    let ends = |of: fn(&crate::flow::AxisPoint) -> f64| {
        points().map(of).fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (low, high) = nice(ends(|p| p.low).0, ends(|p| p.high).1);
    let longest = panel.lines.iter().map(|l| label(l).chars().count()).max().unwrap_or(0) as f64;
    let right = WIDTH - (24.0 + 7.0 * longest).clamp(40.0, 330.0);
    let y = Log { low, high, from: BOTTOM, to: TOP };
    let x_ends = ends(|p| p.x);
    let x = Log { low: x_ends.0, high: x_ends.1, from: LEFT + 20.0, to: right - 20.0 };
    let set = |v: f64| if panel.unit == AxisUnit::Time { time(v) } else { three_digits(v) };
    let mut svg = String::new();
    // Writing to a string does not fail.
    let mut push = |shape: std::fmt::Arguments<'_>| {
        let _ = svg.write_fmt(shape);
    };
    let name = format!("{} against {factor}", panel.title);
    push(format_args!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\"><title>{0}</title>\
         <text class=\"strong\" x=\"{LEFT}\" y=\"16\">{1}</text>\n",
        escape(&name),
        escape(panel.title)
    ));
    for tick in y.ticks(7) {
        let at = y.at(tick);
        push(format_args!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            LEFT - 8.0,
            at + 4.0,
            escape(&set(tick))
        ));
    }
    push(format_args!("<line class=\"axis\" x1=\"{LEFT}\" x2=\"{right:.1}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\"/>\n"));
    let mut levels: Vec<(f64, &str)> = points().map(|p| (x.at(p.x), p.level.as_str())).collect();
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = f64::NEG_INFINITY;
    for (at, level) in levels {
        // A level whose name would lie over the one before it goes without.
        let half = 3.6 * level.chars().count() as f64;
        if at - half > free {
            push(format_args!(
                "<text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
                BOTTOM + 17.0,
                escape(level)
            ));
            free = at + half + 4.0;
        }
    }
    push(format_args!(
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
        (LEFT + right) / 2.0,
        BOTTOM + 36.0,
        escape(factor)
    ));
    let mut names: Vec<(f64, (String, usize))> = Vec::new();
    for line in &panel.lines {
        let hue = line.hue % HUES;
        let places: Vec<String> =
            line.points.iter().map(|p| format!("{:.1},{:.1}", x.at(p.x), y.at(p.value))).collect();
        push(format_args!("<path class=\"line s{hue}\" d=\"M{}\"/>\n", places.join("L")));
        for p in &line.points {
            let (at, low, high) = (x.at(p.x), y.at(p.low), y.at(p.high));
            let words = format!("{} {}: {} ({} to {})", line.name, p.level, set(p.value), set(p.low), set(p.high));
            push(format_args!(
                "<path class=\"interval s{hue}\" d=\"M{at:.1},{low:.1}V{high:.1}M{0:.1},{low:.1}h6M{0:.1},{high:.1}h6\"/>\
                 <circle class=\"dot s{hue}\" cx=\"{at:.1}\" cy=\"{1:.1}\" r=\"4\" data-value=\"{2}\"><title>{3}</title></circle>\n",
                at - 3.0,
                y.at(p.value),
                p.value,
                escape(words.trim_start())
            ));
        }
        names.extend(line.points.last().map(|p| (y.at(p.value), (label(line), hue))));
    }
    crate::picture::canvas::spread(&mut names, GAP, BOTTOM);
    for (at, (words, hue)) in names {
        push(format_args!(
            "<text class=\"end s{hue}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            right + 10.0,
            at + 4.0,
            escape(&words)
        ));
    }
    svg + "</svg>\n"
}

/// The name of a line where it ends.
fn label(line: &Line) -> String {
    let growth = line.growth.map(|(b, error)| format!("N^{b:.2} \u{b1} {error:.2}"));
    [line.name.clone(), growth.unwrap_or_default()].into_iter().filter(|w| !w.is_empty()).collect::<Vec<_>>().join(", ")
}
