//! Draws the offset of a clock from its master over a trial: the bound of the study as lines, and the times in which the clock was
//! not known to be in step hatched.

use crate::picture::axis::linear_ticks;
use crate::picture::canvas::{Canvas, Hold, Mark, Medium, WIDTH};
use crate::picture::{Plot, across};
use tailbound_document::number::{Unit, time};
use tailbound_document::{BadClockWindow, ClockHistoryReport, ConditionReport, OffsetPart};

const HEIGHT: f64 = 190.0;
const PLOT: Plot = Plot { left: 74.0, right: WIDTH - 24.0, top: 14.0, bottom: HEIGHT - 46.0 };

/// Width of the bar of a part, and the height of the bar of a single offset.
const BAR: f64 = 4.0;

/// Hues of the offsets, and of the bound.
const OFFSET: usize = 0;
const BOUND: usize = 1;

/// Draws the strip of a history; `None` if there is no time to show.
pub(crate) fn draw(condition: &ConditionReport, of: &ClockHistoryReport) -> Option<Canvas> {
    let length_ns = Some(of.to_ns - of.from_ns).filter(|ns| *ns > 0)? as f64;
    let reach = |part: &OffsetPart| part.min_ns.unsigned_abs().max(part.max_ns.unsigned_abs());
    let most_ns = of.parts.iter().map(reach).max().unwrap_or(0).max(of.within_ns.unsigned_abs()) as f64 * 1.1;
    let x = |ns: i64| PLOT.left + (PLOT.right - PLOT.left) * ((ns - of.from_ns) as f64 / length_ns).clamp(0.0, 1.0);
    let y = |ns: f64| PLOT.bottom - (PLOT.bottom - PLOT.top) * (ns + most_ns) / (2.0 * most_ns);
    let label = format!("Offset of the clock of {} from its master over trial {}", of.host, of.trial);
    let mut canvas = Canvas::new(Medium::Page, HEIGHT, label).of(condition.id).plot(PLOT.left, PLOT.right);
    axes(&mut canvas, (length_ns, most_ns), &y);
    hatch(&mut canvas, of, &x);
    canvas.open_fixed(BOUND, condition);
    for bound in [of.within_ns, -of.within_ns] {
        canvas.line("line flat", (PLOT.left, y(bound as f64)), (PLOT.right, y(bound as f64)));
    }
    canvas.close();
    canvas.open_fixed(OFFSET, condition);
    for part in &of.parts {
        let (top, bottom) = (y(part.max_ns as f64) - BAR / 2.0, y(part.min_ns as f64) + BAR / 2.0);
        canvas.rect("count", (x(part.at_ns) - BAR / 2.0, top), (BAR, bottom - top));
    }
    canvas.close();
    Some(canvas)
}

fn axes(canvas: &mut Canvas, (length_ns, most_ns): (f64, f64), y: &impl Fn(f64) -> f64) {
    let unit = Unit::of(most_ns);
    let ticks: Vec<f64> = linear_ticks(most_ns, 2).into_iter().filter(|tick| *tick <= most_ns).collect();
    let both: Vec<f64> =
        ticks.iter().flat_map(|tick| if *tick == 0.0 { vec![0.0] } else { vec![*tick, -tick] }).collect();
    canvas.level("grid", both.iter().map(|tick| y(*tick)), (PLOT.left, PLOT.right));
    for tick in both {
        canvas.text("tick", (PLOT.left - 8.0, y(tick) + 4.0), &unit.with(tick), Hold::End);
    }
    canvas.line("axis", (PLOT.left, PLOT.bottom), (PLOT.right, PLOT.bottom));
    let unit = Unit::of(length_ns);
    for tick in linear_ticks(length_ns, 8) {
        let at = PLOT.left + (PLOT.right - PLOT.left) * tick / length_ns;
        canvas.text("tick", (at, PLOT.bottom + 17.0), &unit.with(tick), Hold::Middle);
    }
    across(canvas, &PLOT, "time after the first message");
}

/// Hatches the times in which the clock was not known to be in step.
fn hatch(canvas: &mut Canvas, of: &ClockHistoryReport, x: &impl Fn(i64) -> f64) {
    let id = format!("hatch-clock-{}", of.trial);
    canvas.define_hatch(&id);
    for window in &of.windows {
        let (from, to) = (x(window.from_ns), x(window.to_ns));
        let (width, height) = ((to - from).max(1.0), PLOT.bottom - PLOT.top);
        canvas.mark(&window_mark(of, window), |canvas| canvas.hatched(&id, (from, PLOT.top), (width, height)));
    }
}

fn window_mark(of: &ClockHistoryReport, window: &BadClockWindow) -> Mark {
    let after = |ns: i64| time((ns - of.from_ns) as f64);
    let lines = vec![format!("{} to {}", after(window.from_ns), after(window.to_ns)), window.why.clone()];
    Mark { lines, data: Vec::new() }
}
