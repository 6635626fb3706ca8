//! Findings about slow movements of the times on the ways of trials.

use crate::findings::finding::finding;
use tailbound_document::number::{count, time};
use tailbound_document::{Finding, FindingLevel, MovementKind, MovementReport, Report};

/// One finding for each trial whose times moved in a way that is understood.
pub(crate) fn findings(report: &Report) -> impl Iterator<Item = Finding> {
    report.conditions.iter().flat_map(|condition| {
        condition.movements.iter().map(|moved| {
            let (code, text) = words(moved);
            let text = format!("{}, trial {}: {text}", condition.name, moved.trial);
            Finding { evidence: "time".into(), ..finding(FindingLevel::Caution, code, text, &[condition.id]) }
        })
    })
}

fn words(moved: &MovementReport) -> (&'static str, String) {
    let ns = |ns: i64| time(ns as f64);
    match &moved.kind {
        MovementKind::PhaseSweep { leg, ppm, worst_wait_ns, ramps } => {
            let (way, rest) = match leg.as_str() {
                "out" => ("on the way out", "the way back rests. This is no error of a clock"),
                "back" => ("on the way back", "the way out rests. This is no error of a clock"),
                _ => (
                    "on one of both ways, or on both",
                    "the sum of both ways shows it, in which an error of a clock does not show. Both ways moved: one of them waits \
                     and the clocks moved too, or both wait, and the figures belong to the sum",
                ),
            };
            let text = format!(
                "the phase of the messages sweeps through the cycle of something periodic {way}, for example a gate or a tick. The \
                 wait changes by {ppm:.2} ppm of the time, between 0 and {}, and then jumps ({} times); {rest}.",
                ns(*worst_wait_ns),
                count(*ramps)
            );
            ("phase_sweep", text)
        }
        MovementKind::ClockError { moved_ns, ppm, sum_moved_ns } => {
            let text = format!(
                "the clocks of the ends moved against each other by up to {}, at up to {:.2} ppm: the ways out and back moved by the \
                 same time in opposite directions, and their sum by at most {}. Such a movement is no latency.",
                ns(*moved_ns),
                ppm.abs(),
                ns(*sum_moved_ns)
            );
            ("clock_error", text)
        }
    }
}
