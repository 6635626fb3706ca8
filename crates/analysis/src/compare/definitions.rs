//! Checks whether the figures of two conditions have the same definitions, so that their ratio has a meaning.

use crate::compare::options::CompareError;
use tailbound_model::{Condition, DriverSpec, Metric, Rate, TrialSpec};

/// Checks that all of these metrics can be compared between two records or conditions.
pub(crate) fn comparable(metrics: &[Metric]) -> Result<(), CompareError> {
    match metrics.contains(&Metric::HalfRoundTrip) {
        true => Err(CompareError::refused(
            "half_round_trip has no ratio of its own: it is half of the median round trip, so its ratio is the ratio \
             of round_trip",
            "--metric round_trip",
        )),
        false => Ok(()),
    }
}

/// Reason why the figures of two conditions cannot be compared; `None` if they can. The level of `factor` may differ,
/// because the comparison is about this factor.
pub(crate) fn differ(a: &Condition, b: &Condition, factor: Option<&str>, metrics: &[Metric]) -> Option<String> {
    let (a, b) = (&a.spec, &b.spec);
    if let Some(tool) = [a, b].into_iter().find(|s| s.has_tool()) {
        let name = tool.driver_names();
        return Some(format!(
            "{name} is another program: Tailbound measured nothing of it, and `report` sets it beside"
        ));
    }
    if a.payload != b.payload && factor != Some("payload") {
        return Some(format!("the payload differs: {} and {}", a.payload, b.payload));
    }
    let what = |s: &TrialSpec| match s.measure.flow() {
        None => "round trips of a ping-pong".to_owned(),
        Some(flow) if flow.publishers == 1 => {
            format!("a flow to {} subscribers (payloads in one message: {})", flow.subscribers, flow.pack)
        }
        Some(flow) => format!(
            "a flow of {} publishers to {} subscribers (payloads in one message: {})",
            flow.publishers, flow.subscribers, flow.pack
        ),
    };
    let varies = factor.is_some_and(|f| f == "measure" || f.starts_with("measure."));
    if what(a) != what(b) && !(varies && a.measure.flow().is_some() == b.measure.flow().is_some()) {
        return Some(format!("the measure differs: {} and {}", what(a), what(b)));
    }
    if clock(a) != clock(b) {
        let [a, b] = [a, b].map(clock);
        return Some(format!("the clock differs: {a} and {b}"));
    }
    // A flow does not wait for answers.
    let waits = |s: &TrialSpec| s.rate == Rate::Max && s.measure.flow().is_none();
    let scheduled = [Metric::FromIntended, Metric::SendLateness, Metric::WakePeriod];
    if let Some(metric) = metrics.iter().find(|m| scheduled.contains(m) && (waits(a) || waits(b))) {
        return Some(format!("stop-and-wait (rate: max) has no {}", metric.key()));
    }
    if waits(a) != waits(b) && factor != Some("rate") {
        let how = |s: &TrialSpec| match waits(s) {
            true => "stop-and-wait, which sends nothing while an answer is late".to_owned(),
            false => format!("a schedule of {} that waits for no answer", s.rate),
        };
        return Some(format!("one side measures {}, the other side {}", how(a), how(b)));
    }
    None
}

/// Name of the clock of a trial's times; a driver may provide a clock of its own.
fn clock(spec: &TrialSpec) -> &'static str {
    let scripted = |d: &DriverSpec| d.options.get("clock").is_some_and(|c| c == "scripted");
    if spec.drivers().any(scripted) { "the scripted clock of a calibration" } else { "CLOCK_MONOTONIC" }
}
