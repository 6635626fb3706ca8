//! The sender's loop: every repeat of the condition with the longest call, slot by slot, one panel per metric.

use super::axis::{Log, linear_ticks, nice};
use super::canvas::{Canvas, HAIR, Hold, INK, MUTED, hue};
use crate::circumstances::TrialReport;
use crate::condition::ConditionReport;
use crate::course::Course;
use crate::document::Report;
use crate::number::{count, time};
use tailbound_model::Metric;

const WIDTH: f64 = 960.0;
const PANEL: f64 = 190.0;
const HEAD: f64 = 34.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = WIDTH - 28.0;

const PANELS: [(Metric, &str); 3] = [
    (Metric::WakeToSent, "M2 woken to sent"),
    (Metric::RoundTrip, "M3 round trip"),
    (Metric::WakePeriod, "M4 wake-up to wake-up"),
];

pub(super) fn draw(report: &Report) -> Option<String> {
    let of = |c: &ConditionReport| -> Vec<(&TrialReport, &Course)> {
        let trials = c.used_trial_ids.iter().filter_map(|id| report.trial(*id));
        trials.filter_map(|t| Some((t, t.course.as_ref().filter(|c| c.slots > 0)?))).collect()
    };
    let longest = |c: &&ConditionReport| c.wake_to_sent.as_ref().and_then(|m| m.max_ns);
    let condition = report.conditions.iter().filter(|c| !of(c).is_empty()).max_by_key(longest)?;
    let trials = of(condition);
    let there =
        |(metric, _): &&(Metric, &str)| trials.iter().any(|(_, c)| c.columns(*metric).iter().any(Option::is_some));
    let panels: Vec<_> = PANELS.iter().filter(there).collect();
    if panels.is_empty() {
        return None;
    }
    let bottom = HEAD + PANEL * panels.len() as f64;
    let mut canvas = Canvas::new(WIDTH, bottom + 44.0);
    canvas.text((16.0, 22.0), &format!("The sender's loop: {}", condition.name), Hold::Start, INK);
    let slots = trials.iter().map(|(_, c)| c.slots).max()?;
    let x = |slot: f64| LEFT + (RIGHT - LEFT) * slot / slots as f64;
    for (i, (metric, words)) in panels.into_iter().enumerate() {
        panel(&mut canvas, &trials, (*metric, words), HEAD + PANEL * i as f64, &x);
    }
    for slot in linear_ticks(slots as f64, 8) {
        canvas.text((x(slot), bottom + 17.0), &count(slot.round() as u64), Hold::Middle, MUTED);
    }
    canvas.text(((LEFT + RIGHT) / 2.0, bottom + 35.0), "loop number (measured slots)", Hold::Middle, MUTED);
    Some(canvas.finish(report))
}

fn panel(
    canvas: &mut Canvas,
    trials: &[(&TrialReport, &Course)],
    (metric, words): (Metric, &str),
    top: f64,
    x: &dyn Fn(f64) -> f64,
) {
    let base = top + PANEL;
    canvas.text((LEFT, top + 20.0), words, Hold::Start, INK);
    for (i, (trial, _)) in trials.iter().enumerate().take(10) {
        let at = (LEFT + 190.0 + 66.0 * i as f64, top + 20.0);
        canvas.text(at, &format!("repeat {}", trial.repeat + 1), Hold::Start, hue(i));
    }
    let ranges = || trials.iter().flat_map(|(_, c)| c.columns(metric).iter().flatten());
    let low = ranges().map(|r| r.0.max(1)).min().unwrap_or(1);
    let high = ranges().map(|r| r.1.max(2)).max().unwrap_or(2);
    let (low, high) = nice(low as f64, high as f64);
    let y = Log { low, high, from: base, to: top + 36.0 };
    for tick in y.ticks(5) {
        canvas.line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), HAIR, "");
        canvas.text((LEFT - 8.0, y.at(tick) + 4.0), &time(tick), Hold::End, MUTED);
    }
    canvas.line((LEFT, base), (RIGHT, base), MUTED, "");
    for (i, (_, course)) in trials.iter().enumerate() {
        let columns = course.columns(metric);
        let step = (0.8 * (RIGHT - LEFT) / columns.len().max(1) as f64).clamp(1.0, 7.0);
        for (c, range) in columns.iter().enumerate() {
            let Some((low, high)) = range else { continue };
            let slot = ((c as f64 + 0.5) * course.slots_per_column as f64).min(course.slots as f64);
            let more = format!(" stroke-width=\"{step:.1}\" stroke-opacity=\"0.75\" data-value-ns=\"{high}\"");
            let (from, to) = (y.at((*high).max(1) as f64) - 0.5, y.at((*low).max(1) as f64) + 0.5);
            canvas.line((x(slot), from), (x(slot), to), hue(i), &more);
        }
        let lost = course.unanswered.iter().enumerate().filter(|(_, n)| **n > 0 && metric == Metric::RoundTrip);
        for (c, n) in lost {
            let at = x(((c as f64 + 0.5) * course.slots_per_column as f64).min(course.slots as f64));
            canvas.line((at, top + 24.0), (at, top + 31.0), hue(i), &format!(" data-lost=\"{n}\""));
        }
    }
}
