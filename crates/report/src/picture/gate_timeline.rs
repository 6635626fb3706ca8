//! Draws the gates of the classes of an interface over the time in the cycle, one row for each class, and below them the messages
//! that waited longest: a line from the due time to the time at which the message left.

use crate::picture::axis::linear_ticks;
use crate::picture::canvas::{Canvas, Hold, Mark, Medium};
use crate::picture::{Plot, across};
use tailbound_document::number::{Unit, count, time};
use tailbound_document::{ConditionReport, GateClassReport, GateMessage, GateReport};

const WIDTH: f64 = crate::picture::canvas::WIDTH;
const LEFT: f64 = 170.0;
const RIGHT: f64 = WIDTH - 104.0;
const TOP: f64 = 10.0;
/// Heights of the row of a class, of its band, and of the row of a message.
const ROW: f64 = 24.0;
const BAND: f64 = 14.0;
const LANE: f64 = 18.0;
/// Largest number of cycles that the figure shows. The line of a message that left or arrived later ends at the edge, with an
/// arrow and the time.
const MOST_CYCLES: i64 = 4;
/// Number of characters of the name of a class for which there is room.
const NAME: usize = 22;

/// Hues of the messages, of the class of the messages, and of other classes.
const MESSAGE: usize = 0;
const OWN: usize = 1;
const OTHER: usize = 5;

/// What all parts of the figure need.
struct View<'r> {
    gate: &'r GateReport,
    /// Time that the figure shows, ns.
    span_ns: i64,
    /// Whether the messages belong to several trials.
    has_trials: bool,
    plot: Plot,
    /// Vertical position of the first message.
    lanes: f64,
}

/// Draws the timeline of a gate; `None` if its classes are not known.
pub(crate) fn draw(condition: &ConditionReport, gate: &GateReport, medium: Medium) -> Option<Canvas> {
    if gate.classes.is_empty() || gate.cycle_ns <= 0 {
        return None;
    }
    let lanes = TOP + ROW * gate.classes.len() as f64 + 6.0;
    let bottom = lanes + LANE * gate.messages.len() as f64 + 2.0;
    let first = gate.messages.first().map(|message| message.trial);
    let view = View {
        gate,
        span_ns: gate.cycle_ns * cycles(gate),
        has_trials: gate.messages.iter().any(|message| Some(message.trial) != first),
        plot: Plot { left: LEFT, right: RIGHT, top: TOP, bottom },
        lanes,
    };
    let label = format!("Gates of the classes at the {} end over the cycle, {}", gate.end, condition.name);
    let mut canvas = Canvas::new(medium, bottom + 46.0, label).of(condition.id).plot(LEFT, RIGHT);
    view.axes(&mut canvas);
    for (number, class) in gate.classes.iter().enumerate() {
        let is_own = class.name == gate.class;
        canvas.open_fixed(if is_own { OWN } else { OTHER }, condition);
        view.class(&mut canvas, (number, class), is_own);
        canvas.close();
    }
    canvas.open_fixed(MESSAGE, condition);
    for (number, message) in gate.messages.iter().enumerate() {
        canvas.mark(&view.mark(message), |canvas| view.message(canvas, number, message));
    }
    canvas.close();
    Some(canvas)
}

/// Time from the due time of a message to the end of its line, ns.
fn ends_after_ns(message: &GateMessage) -> i64 {
    message.left_after_ns.max(message.received_after_ns).unwrap_or(0)
}

/// True if the line of a message ends later than the figure.
pub(crate) fn has_cut_lines(gate: &GateReport) -> bool {
    let span_ns = gate.cycle_ns * cycles(gate);
    gate.messages.iter().any(|message| message.due_phase_ns + ends_after_ns(message) > span_ns)
}

/// Number of cycles that the figure shows.
fn cycles(gate: &GateReport) -> i64 {
    let ends = gate.messages.iter().map(|message| message.due_phase_ns + ends_after_ns(message));
    let last_ns = ends.max().unwrap_or(0);
    (last_ns / gate.cycle_ns + 1).clamp(1, MOST_CYCLES)
}

/// The times of the figure in which a gate is open, in each cycle, also in the cycle before, whose last one can end later.
fn open(class: &GateClassReport, cycle_ns: i64, span_ns: i64) -> Vec<(i64, i64)> {
    let begins = (-1..=span_ns / cycle_ns).map(|cycle| cycle * cycle_ns);
    let all = begins.flat_map(|begin_ns| class.open.iter().map(move |[from, to]| (begin_ns + from, begin_ns + to)));
    all.map(|(from, to)| (from.max(0), to.min(span_ns))).filter(|(from, to)| from < to).collect()
}

/// The times of the figure between those in which a gate is open.
fn closed(open: &[(i64, i64)], span_ns: i64) -> Vec<(i64, i64)> {
    let ends = std::iter::once(0).chain(open.iter().map(|(_, to)| *to));
    let begins = open.iter().map(|(from, _)| *from).chain([span_ns]);
    ends.zip(begins).filter(|(from, to)| from < to).collect()
}

impl View<'_> {
    fn x(&self, ns: i64) -> f64 {
        LEFT + (RIGHT - LEFT) * (ns as f64 / self.span_ns as f64).clamp(0.0, 1.0)
    }

    fn axes(&self, canvas: &mut Canvas) {
        let cycle_ns = self.gate.cycle_ns;
        let begins = (0..=self.span_ns / cycle_ns).map(|cycle| self.x(cycle * cycle_ns));
        canvas.upright("grid strong", begins, (TOP - 4.0, self.plot.bottom));
        canvas.line("axis", (LEFT, self.plot.bottom), (RIGHT, self.plot.bottom));
        let unit = Unit::of(cycle_ns as f64);
        for tick in linear_ticks(self.span_ns as f64, 8) {
            let at = self.x(tick as i64);
            canvas.line("axis", (at, self.plot.bottom), (at, self.plot.bottom + 4.0));
            canvas.text("tick", (at, self.plot.bottom + 17.0), &unit.with(tick), Hold::Middle);
        }
        across(canvas, &self.plot, "time after the begin of the cycle in which a message was due");
    }

    /// Draws the row of a class: bands in which its gate is open, on a line for the times in which it is closed.
    fn class(&self, canvas: &mut Canvas, (number, class): (usize, &GateClassReport), is_own: bool) {
        let middle = TOP + ROW * (number as f64 + 0.5);
        let name = class_name(class);
        let name: String = match name.chars().count() {
            ..=NAME => name,
            _ => name.chars().take(NAME - 1).chain(['\u{2026}']).collect(),
        };
        let look = if is_own { "value strong" } else { "value" };
        canvas.text(look, (LEFT - 10.0, middle + 4.0), &name, Hold::End);
        let spans = open(class, self.gate.cycle_ns, self.span_ns);
        for (from, to) in closed(&spans, self.span_ns) {
            canvas.line("axis", (self.x(from), middle), (self.x(to), middle));
        }
        let all: Vec<String> = class.open.iter().map(|[from, to]| format!("open from {}", range(*from, *to))).collect();
        let never = if all.is_empty() { vec!["never open".to_owned()] } else { Vec::new() };
        let mark = Mark { lines: [vec![format!("class {}", class.name)], all, never].concat(), data: Vec::new() };
        canvas.mark(&mark, |canvas| {
            for (from, to) in &spans {
                let size = ((self.x(*to) - self.x(*from)).max(0.8), BAND);
                canvas.rect("piece", (self.x(*from), middle - BAND / 2.0), size);
            }
        });
        if is_own {
            for (from, to) in spans {
                let size = ((self.x(to) - self.x(from)).max(0.8), self.plot.bottom - self.lanes);
                canvas.rect("band", (self.x(from), self.lanes), size);
            }
        }
    }

    /// Draws the row of a message, from its due time on.
    fn message(&self, canvas: &mut Canvas, number: usize, message: &GateMessage) {
        let y = self.lanes + LANE * (number as f64 + 0.5);
        let at = |after_ns: i64| self.x(message.due_phase_ns + after_ns);
        canvas.text("tick", (LEFT - 10.0, y + 4.0), &self.name(message), Hold::End);
        let (due, ready, ends) = (at(0), at(message.ready_after_ns), at(ends_after_ns(message)));
        canvas.line("line thin", (due, y), (ready, y));
        match message.left_after_ns {
            Some(left_ns) => {
                canvas.line("line", (ready, y), (at(left_ns), y));
                canvas.line("line thin", (at(left_ns), y), (ends, y));
            }
            None => canvas.line("line flat", (ready, y), (ends, y)),
        }
        let is_shown = |after_ns: &i64| message.due_phase_ns + after_ns <= self.span_ns;
        if let Some(permitted_ns) = message.permitted_after_ns.filter(is_shown) {
            canvas.line("axis", (at(permitted_ns), y - 6.0), (at(permitted_ns), y + 6.0));
        }
        if let Some(received_ns) = message.received_after_ns.filter(is_shown) {
            canvas.line("line", (at(received_ns), y - 4.0), (at(received_ns), y + 4.0));
        }
        canvas.dot("gone", (due, y), 3.2);
        if let Some(left_ns) = message.left_after_ns.filter(is_shown) {
            canvas.dot("", (at(left_ns), y), 3.6);
        }
        let ends_ns = ends_after_ns(message);
        if !is_shown(&ends_ns) {
            let words = format!("\u{2192} {}", time((message.due_phase_ns + ends_ns) as f64));
            canvas.text("tick", (RIGHT + 4.0, y + 4.0), &words, Hold::Start);
        }
    }

    fn name(&self, message: &GateMessage) -> String {
        let worst = message.worst.map_or(String::new(), |place| format!("{place}: "));
        let trial = if self.has_trials { format!("trial {}, ", message.trial) } else { String::new() };
        format!("{worst}{trial}slot {}", count(message.slot))
    }

    fn mark(&self, message: &GateMessage) -> Mark {
        let ns = |ns: i64| time(ns as f64);
        let worst = message.worst.map_or(String::new(), |place| format!("worst message {place}: "));
        let mut lines = vec![
            format!("{worst}slot {}, trial {}", count(message.slot), message.trial),
            format!(
                "due {} after the begin of a cycle (known to within {})",
                ns(message.due_phase_ns),
                ns(message.within_ns)
            ),
            format!(
                "sent after {}, ready for its gate after {}",
                ns(message.sent_after_ns),
                ns(message.ready_after_ns)
            ),
        ];
        lines.push(message.permitted_after_ns.map_or_else(
            || "the frame fits into no window".to_owned(),
            |after_ns| format!("permitted by its gate after {}", ns(after_ns)),
        ));
        lines.push(message.left_after_ns.map_or_else(
            || "no stamp shows when it left".to_owned(),
            |after_ns| format!("left after {}", ns(after_ns)),
        ));
        lines.extend(message.received_after_ns.map(|after_ns| format!("received after {}", ns(after_ns))));
        Mark { lines, data: Vec::new() }.with("slot", message.slot).with("trial", message.trial)
    }
}

/// Name of a class; one that the study does not name has a number.
fn class_name(class: &GateClassReport) -> String {
    class.name.parse::<u32>().map_or_else(|_| class.name.clone(), |number| format!("class {number}"))
}

/// A time span of a cycle in words.
fn range(from_ns: i64, to_ns: i64) -> String {
    let unit = Unit::of(to_ns as f64);
    format!("{} {}", unit.range(from_ns, to_ns), unit.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(due_phase_ns: i64, left_after_ns: Option<i64>, received_after_ns: Option<i64>) -> GateMessage {
        GateMessage {
            trial: 0,
            slot: 7,
            worst: None,
            due_phase_ns,
            within_ns: 0,
            sent_after_ns: 0,
            ready_after_ns: 0,
            permitted_after_ns: None,
            left_after_ns,
            received_after_ns,
        }
    }

    #[test]
    fn a_gate_is_open_in_each_cycle_that_is_shown() {
        let class = |open: &[[i64; 2]]| GateClassReport { name: "stream".into(), open: open.to_vec() };
        assert_eq!(open(&class(&[[10, 30]]), 100, 200), [(10, 30), (110, 130)]);
        // A window that ends in the next cycle.
        assert_eq!(open(&class(&[[80, 120]]), 100, 100), [(0, 20), (80, 100)]);
        assert_eq!(open(&class(&[[0, 100]]), 100, 100), [(0, 100)]);
        assert_eq!(open(&class(&[]), 100, 100), []);
        assert_eq!(closed(&[(10, 30), (110, 130)], 200), [(0, 10), (30, 110), (130, 200)]);
        assert_eq!((closed(&[(0, 100)], 100), closed(&[], 100)), (vec![], vec![(0, 100)]));
    }

    #[test]
    fn the_figure_has_the_cycles_in_which_its_messages_wait() {
        let of = |messages: Vec<GateMessage>| cycles(&GateReport { cycle_ns: 100, messages, ..GateReport::default() });
        assert_eq!(of(Vec::new()), 1);
        assert_eq!(of(vec![message(60, Some(20), Some(39))]), 1);
        assert_eq!(of(vec![message(60, Some(20), Some(45)), message(10, None, Some(20))]), 2);
        assert_eq!(of(vec![message(60, Some(10_000), None)]), MOST_CYCLES);
    }
}
