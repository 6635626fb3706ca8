//! Draws the ways of messages through a gate over the time in the cycle at which they were sent: the times at which a frame may be
//! sent as bands, the predicted wait as a line, and what was measured as dots.

use crate::picture::axis::linear_ticks;
use crate::picture::canvas::{Canvas, Hold, Mark, Medium};
use crate::picture::{Plot, across};
use tailbound_document::number::{Unit, count, time};
use tailbound_document::{ConditionReport, GatePhase, GateReport};

const WIDTH: f64 = crate::picture::canvas::WIDTH;
const HEIGHT: f64 = 330.0;
const PLOT: Plot = Plot { left: 74.0, right: WIDTH - 24.0, top: 14.0, bottom: HEIGHT - 46.0 };

/// Hues of what was measured, and of what is predicted.
const MEASURED: usize = 0;
const PREDICTED: usize = 1;

/// Draws the figure of a gate; `None` if no message passed it.
pub(crate) fn draw(condition: &ConditionReport, gate: &GateReport, medium: Medium) -> Option<Canvas> {
    let worst_ns = gate.phases.iter().map(|phase| phase.way_max_ns).max()?;
    let most_ns = worst_ns.max(gate.worst_wait_ns.unwrap_or(0) as i64).max(1) as f64;
    let x = |ns: i64| PLOT.left + (PLOT.right - PLOT.left) * ns as f64 / gate.cycle_ns.max(1) as f64;
    let y = |ns: f64| PLOT.bottom - (PLOT.bottom - PLOT.top) * ns / most_ns;
    let label = format!("Ways of messages over the cycle of the gate at the {} end, {}", gate.end, condition.name);
    let mut canvas = Canvas::new(medium, HEIGHT, label).of(condition.id).plot(PLOT.left, PLOT.right);
    axes(&mut canvas, gate, most_ns, (&x, &y));
    canvas.open_fixed(PREDICTED, condition);
    for (from_ns, to_ns) in within_cycle(gate) {
        canvas.rect("band", (x(from_ns), PLOT.top), ((x(to_ns) - x(from_ns)).max(0.8), PLOT.bottom - PLOT.top));
    }
    for part in predicted(gate) {
        canvas.polyline("line", &part.map(|(at_ns, wait_ns)| (x(at_ns), y(wait_ns as f64))));
    }
    canvas.close();
    canvas.open_fixed(MEASURED, condition);
    for phase in &gate.phases {
        canvas.mark(&mark(phase), |canvas| {
            let at = x(phase.from_ns);
            canvas.line("line", (at, y(phase.way_min_ns as f64)), (at, y(phase.way_max_ns as f64)));
            canvas.dot("", (at, y(phase.way_max_ns as f64)), 2.6);
            canvas.dot("", (at, y(phase.way_min_ns as f64)), 2.6);
        });
    }
    canvas.close();
    Some(canvas)
}

fn axes(canvas: &mut Canvas, gate: &GateReport, most_ns: f64, (x, y): (&impl Fn(i64) -> f64, &impl Fn(f64) -> f64)) {
    let ticks = linear_ticks(most_ns, 5);
    canvas.level("grid", ticks.iter().map(|tick| y(*tick)), (PLOT.left, PLOT.right));
    let unit = Unit::of(most_ns);
    for tick in ticks {
        canvas.text("tick", (PLOT.left - 8.0, y(tick) + 4.0), &unit.with(tick), Hold::End);
    }
    canvas.line("axis", (PLOT.left, PLOT.bottom), (PLOT.right, PLOT.bottom));
    let unit = Unit::of(gate.cycle_ns as f64);
    for tick in linear_ticks(gate.cycle_ns as f64, 8) {
        canvas.text("tick", (x(tick as i64), PLOT.bottom + 17.0), &unit.with(tick), Hold::Middle);
    }
    across(canvas, &PLOT, "time in the cycle at which the send call began");
}

/// The times of one cycle at which a frame may be sent. A window that ends after the cycle is divided.
fn within_cycle(gate: &GateReport) -> Vec<(i64, i64)> {
    let cycle_ns = gate.cycle_ns;
    let first = gate.permitted.iter().map(|[from, to]| (*from, (*to).min(cycle_ns)));
    let rest = gate.permitted.iter().filter(|[_, to]| *to > cycle_ns).map(|[_, to]| (0, *to - cycle_ns));
    first.chain(rest).collect()
}

/// The predicted wait over one cycle, as straight lines: time in the cycle and wait at both ends of each, ns.
fn predicted(gate: &GateReport) -> Vec<[(i64, i64); 2]> {
    let Some(first) = gate.permitted.first().map(|[from, _]| *from) else { return Vec::new() };
    let mut spans = within_cycle(gate);
    spans.sort_unstable();
    let mut lines: Vec<[(i64, i64); 2]> = Vec::new();
    let mut at = 0;
    for (from, to) in spans.iter().copied().chain([(gate.cycle_ns, gate.cycle_ns)]) {
        // After the last window, a frame waits for the first one of the next cycle.
        let opens = if from == gate.cycle_ns { gate.cycle_ns + first } else { from };
        if at < from {
            lines.push([(at, opens - at), (from, opens - from)]);
        }
        if from < to {
            lines.push([(from, 0), (to, 0)]);
        }
        at = at.max(to);
    }
    lines
}

fn mark(phase: &GatePhase) -> Mark {
    let ns = |ns: i64| time(ns as f64);
    let lines = vec![
        format!("{} messages, sent {} after the cycle began", count(phase.messages), ns(phase.from_ns)),
        format!("way: {} to {}", ns(phase.way_min_ns), ns(phase.way_max_ns)),
    ];
    Mark { lines, data: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_predicted_wait_falls_until_the_next_window_and_goes_on_in_the_next_cycle() {
        let gate = |permitted: Vec<[i64; 2]>| GateReport {
            end: "ping".into(),
            class: "stream".into(),
            frame_bytes: 106,
            cycle_ns: 100,
            mean_wait_ns: None,
            worst_wait_ns: None,
            share_without_wait: None,
            permitted,
            phases: Vec::new(),
            waits: Vec::new(),
            cycles_later: [0; 3],
            outside: 0,
            left: None,
            ..GateReport::default()
        };
        let two =
            [[(0, 10), (10, 0)], [(10, 0), (30, 0)], [(30, 30), (60, 0)], [(60, 0), (70, 0)], [(70, 40), (100, 10)]];
        assert_eq!(predicted(&gate(vec![[10, 30], [60, 70]])), two);
        // A window that is just long enough for the frame.
        assert_eq!(predicted(&gate(vec![[40, 40]])), [[(0, 40), (40, 0)], [(40, 100), (100, 40)]]);
        // A window across the end of the cycle.
        let across = [[(0, 0), (20, 0)], [(20, 60), (80, 0)], [(80, 0), (100, 0)]];
        assert_eq!(predicted(&gate(vec![[80, 120]])), across);
        assert_eq!(predicted(&gate(Vec::new())), [[(0, 0); 2]; 0]);
    }
}
