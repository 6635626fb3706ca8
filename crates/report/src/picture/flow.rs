//! Chart of flows with one point per second: samples sent (dashed) and received by each subscriber, in the first trial
//! of each condition.

use crate::picture::canvas::{Canvas, Hold, Medium, WIDTH};
use tailbound_document::number::{THIN, count, three_digits};
use tailbound_document::{FlowSecond, FlowTrial, Report};

const ROW: f64 = 130.0;

const LEFT: f64 = 90.0;

const RIGHT: f64 = WIDTH - 30.0;

/// Makes one drawing for each condition with a flow of two seconds or more.
pub(crate) fn draw(report: &Report, medium: Medium) -> Vec<Canvas> {
    let trial = |c: &'_ tailbound_document::ConditionReport| {
        c.flow.as_ref()?.trials.first().filter(|t| t.seconds.len() > 1).cloned()
    };
    report.conditions.iter().filter_map(|c| Some(row(medium, &c.name, &trial(c)?))).collect()
}

fn row(medium: Medium, name: &str, trial: &FlowTrial) -> Canvas {
    let (base, high) = (ROW - 32.0, 22.0);
    let received = || trial.subscribers.iter().map(|s| s.seconds.as_slice());
    let seconds = || received().chain([trial.seconds.as_slice()]).flatten();
    let most = seconds().map(|s| s.samples).max().unwrap_or(1).max(1) as f64;
    let span = seconds().map(|s| s.after_ns).max().unwrap_or(1).max(1) as f64;
    let label =
        format!("{name}: at most {} samples in a second, over {} s", three_digits(most), three_digits(span / 1e9));
    let mut canvas = Canvas::new(medium, ROW, label).plot(LEFT, RIGHT);
    let points = |seconds: &[FlowSecond]| -> Vec<(f64, f64)> {
        let point = |s: &FlowSecond| {
            let across = LEFT + (RIGHT - LEFT) * s.after_ns as f64 / span;
            (across, base - (base - high) * s.samples as f64 / most)
        };
        seconds.iter().map(point).collect()
    };
    canvas.text("", (LEFT, 14.0), name, Hold::Start);
    for part in [0.0, 0.5, 1.0] {
        let y = base - (base - high) * part;
        canvas.line("grid", (LEFT, y), (RIGHT, y));
        canvas.text("tick", (LEFT - 8.0, y + 4.0), &three_digits(most * part), Hold::End);
    }
    canvas.text("tick", (LEFT, base + 16.0), &format!("0{THIN}s"), Hold::Middle);
    canvas.text("tick", (RIGHT, base + 16.0), &format!("{}{THIN}s", three_digits(span / 1e9)), Hold::Middle);
    for (i, seconds) in received().enumerate() {
        canvas.open("", i, &[]);
        canvas.polyline("line", &points(seconds));
        canvas.close();
    }
    canvas.polyline("sent", &points(&trial.seconds));
    let lost: u64 = trial.subscribers.iter().map(|s| s.lost).sum();
    canvas.text("tick", (RIGHT, 14.0), &format!("{} lost", count(lost)), Hold::End);
    canvas
}
