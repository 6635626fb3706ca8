//! The tail estimate of the condition with the latest one: measured, fitted with its interval, and where it is refused.

use super::Shown;
use super::axis::{Log, nice};
use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue};
use super::tail::exceedance;
use crate::document::Report;
use crate::number::{count, time};
use crate::tail_estimate::TailReport;
use tailbound_stats::FARTHEST;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 480.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = HEIGHT - 34.0;
const LEFT: f64 = 120.0;
const RIGHT: f64 = WIDTH - 28.0;

/// Or why there is none.
pub(super) fn draw(report: &Report, shown: &[Shown<'_>]) -> Result<String, String> {
    let level = |s: &&Shown<'_>| match s.figures.tail {
        Some(TailReport::Estimate { level_ns, .. }) => Some(level_ns),
        _ => None,
    };
    let latest = shown.iter().max_by_key(level).ok_or("no message was answered")?;
    match &latest.figures.tail {
        Some(tail @ TailReport::Estimate { .. }) => Ok(one(report, latest, tail)),
        Some(TailReport::NotApplicable { one_in, not_applicable }) => {
            Err(format!("a tail estimate of 1 in {} is not applicable: {not_applicable}", count(*one_in)))
        }
        None => Err("the study asks for no tail estimate".into()),
    }
}

fn one(report: &Report, s: &Shown<'_>, tail: &TailReport) -> String {
    let TailReport::Estimate { one_in, level_ns, low_ns, high_ns, threshold_ns, exceedances, clusters, course, .. } =
        tail
    else {
        return String::new();
    };
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    let title = format!("Tail estimate, not a bound: {}", s.name);
    canvas.text((16.0, 22.0), &title.chars().take(120).collect::<String>(), Hold::Start, INK);
    let scheduled = s.figures.scheduled as f64;
    let (above, farthest) = (*exceedances as f64 / scheduled, FARTHEST as f64 * scheduled);
    let mut points = exceedance(s.figures);
    points.retain(|(_, share)| *share <= (30.0 * above).min(1.0));
    let first = points.first().copied().unwrap_or((*threshold_ns as f64, above));
    let (low, high) = nice(first.0.min(*threshold_ns as f64), s.max_ns.max(*high_ns as f64));
    let x = Log { low, high, from: LEFT, to: RIGHT };
    let y = Log { low: first.1, high: 1.0 / (4.0 * farthest), from: TOP, to: BOTTOM };
    for n in (0..).map(|e| 10f64.powi(e)).take_while(|n| *n <= 4.0 * farthest).filter(|n| 1.0 / n <= first.1) {
        canvas.line((LEFT, y.at(1.0 / n)), (RIGHT, y.at(1.0 / n)), HAIR, "");
        let words = if n == 1.0 { "all".to_owned() } else { format!("1 in {}", count(n as u64)) };
        canvas.text((LEFT - 8.0, y.at(1.0 / n) + 4.0), &words, Hold::End, MUTED);
    }
    for tick in x.ticks(9) {
        canvas.line((x.at(tick), TOP), (x.at(tick), BOTTOM), HAIR, "");
        canvas.text((x.at(tick), BOTTOM + 18.0), &time(tick), Hold::Middle, MUTED);
    }
    let (refused, measured, at) = (y.at(1.0 / farthest), y.at(1.0 / scheduled), x.at(*threshold_ns as f64));
    canvas.rect((LEFT, refused), (RIGHT - LEFT, BOTTOM - refused), "#cfcfc8", " fill-opacity=\"0.45\"");
    let words = format!("refused: beyond 1 in {}, {FARTHEST} times the messages", count(farthest as u64));
    canvas.text((LEFT + 8.0, refused + 16.0), &words, Hold::Start, MUTED);
    canvas.line((LEFT, measured), (RIGHT, measured), MUTED, " stroke-dasharray=\"1 3\"");
    canvas.text((LEFT + 8.0, measured - 5.0), &format!("measured: {}", count(s.figures.scheduled)), Hold::Start, MUTED);
    canvas.line((at, TOP), (at, BOTTOM), MUTED, " stroke-dasharray=\"1 3\"");
    let words = format!("threshold {}: {} later", time(*threshold_ns as f64), count(*exceedances));
    canvas.text((at + 5.0, TOP - 8.0), &format!("{words}, in {} clusters", count(*clusters)), Hold::Start, MUTED);
    // From the threshold on, where the share is known, through the levels on the way.
    let start = (at, y.at(above));
    let side = |of: fn(&(f64, i64, i64, i64)) -> i64| -> Vec<(f64, f64)> {
        [start].into_iter().chain(course.iter().map(|l| (x.at(of(l) as f64), y.at(1.0 / l.0)))).collect()
    };
    canvas.band(&side(|l| l.2), &side(|l| l.3), hue(0));
    let measured: Vec<(f64, f64)> = points.iter().map(|(ns, share)| (x.at(*ns), y.at(*share))).collect();
    canvas.path(&measured, hue(5), 2.0);
    canvas.path(&side(|l| l.1), hue(0), 2.0);
    let end = y.at(1.0 / *one_in as f64);
    canvas.line((x.at(*low_ns as f64), end), (x.at(*high_ns as f64), end), hue(0), "");
    canvas.dot((x.at(*level_ns as f64), end), 4.0, hue(0), *level_ns);
    let unit = crate::number::Unit::of(*level_ns as f64);
    let [low, level, high] = [low_ns, level_ns, high_ns].map(|ns| unit.with(*ns as f64));
    let words = format!("1 in {}: about {level} (95 %: {low} to {high})", count(*one_in));
    canvas.text((x.at(*low_ns as f64) - 10.0, end + 4.0), &words, Hold::End, hue(0));
    canvas.finish(report)
}
