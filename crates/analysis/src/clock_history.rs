//! Judges the history of a clock: when it was not known to be in step, and which messages that concerns.
//!
//! Input: the histories of a record, and the samples of the trials. Output: for each trial with a history its report, and a
//! warning for each trial with a bad window. No message is removed from a figure, and no trial becomes invalid.

mod converted;
mod messages;

use crate::clock_windows;
use crate::clocks::OWN;
use crate::pass_error::PassError;
use messages::Counted;
use tailbound_document::{BadClockWindow, ClockHistoryReport, ClockReadingsReport, OffsetPart};
use tailbound_model::{ClockHistory, ClockReadings, Nanos, Severity, Trial, Warning};
use tailbound_record::{Record, RecordError};

/// Number of parts of the figure of the offset.
const PARTS: i64 = 400;

/// The histories of the trials of a record, in the order of the trials, and warnings about them. `left_out`: trials whose samples
/// are damaged.
///
/// # Errors
/// The samples of a trial cannot be read.
pub(crate) fn of(
    record: &Record,
    left_out: &dyn Fn(usize) -> bool,
) -> Result<(Vec<ClockHistoryReport>, Vec<Warning>), PassError> {
    let (mut reports, mut warnings) = (Vec::new(), Vec::new());
    if record.manifest.plan.clock.is_none() {
        return Ok((reports, warnings));
    }
    let mut trials: Vec<&Trial> = record.manifest.plan.trials.iter().collect();
    trials.sort_unstable_by_key(|trial| trial.id);
    for trial in trials {
        for history in record.clocks(trial.id) {
            match history {
                Ok(history) => {
                    let failed = |error| PassError { trial: Some(trial.id), error };
                    let report = report(record, trial, &history, left_out(trial.id)).map_err(failed)?;
                    warnings.extend(warning(&report));
                    warnings.extend(not_kept(&history).map(|warning| warning.at_trial(trial.id)));
                    reports.push(report);
                }
                Err(e) => {
                    let text = format!("the history of a clock cannot be read: {e}");
                    warnings
                        .push(Warning::new("clock_history_unreadable", Severity::Warning, text, "").at_trial(trial.id));
                }
            }
        }
    }
    Ok((reports, warnings))
}

fn report(
    record: &Record,
    trial: &Trial,
    history: &ClockHistory,
    is_left_out: bool,
) -> Result<ClockHistoryReport, RecordError> {
    let done = record.manifest.trials.iter().find(|done| done.id == trial.id);
    let clock = |end: &str| done.and_then(|done| done.ends.get(end)).map(|end| end.clock.as_str());
    let is_of = |end: &str| clock(end) == Some(history.clock.as_str()) && !history.clock.is_empty();
    let has_messages = !is_left_out && record.has_slots(trial.id);
    let bounds = match has_messages && !is_of(OWN) && is_of("pong") {
        true => record.clock_bounds(trial.id)?.ok().and_then(|clocks| clocks.whole().cloned()),
        false => None,
    };
    let mut windows = clock_windows::of(history);
    let (history, clock_width_ns) = match &bounds {
        Some(bounds) => {
            windows.iter_mut().for_each(|window| converted::widen(window, bounds));
            (&converted::history(history, bounds), Some(converted::width_ns(history, bounds)))
        }
        None => (history, None),
    };
    let counted = match has_messages && (is_of(OWN) || bounds.is_some()) {
        true => Counted::of(record, trial.id, &windows)?,
        false => None,
    };
    let (from_ns, to_ns) = counted.as_ref().map_or((history.from_ns, history.to_ns), Counted::span_ns);
    windows.retain(|window| window.from_ns <= to_ns && window.to_ns >= from_ns);
    for window in &mut windows {
        (window.from_ns, window.to_ns) = (window.from_ns.max(from_ns), window.to_ns.min(to_ns));
    }
    let within = |at_ns: i64| (from_ns..=to_ns).contains(&at_ns);
    let offsets: Vec<_> = history.offsets.iter().filter(|offset| within(offset.at_ns)).collect();
    let mut sorted: Vec<i64> = offsets.iter().map(|offset| offset.offset_ns).collect();
    sorted.sort_unstable();
    let mut delays: Vec<i64> = offsets.iter().filter_map(|offset| offset.path_delay_ns).collect();
    delays.sort_unstable();
    let master = history.masters.last().map(|change| change.master.clone()).unwrap_or_default();
    Ok(ClockHistoryReport {
        trial: trial.id,
        condition: trial.condition,
        host: history.host.clone(),
        service: history.service.clone(),
        within_ns: history.within.0,
        from_ns,
        to_ns,
        offsets: offsets.len() as u64,
        offset_ns: middle(&sorted).map(|median| [sorted[0], median, sorted[sorted.len() - 1]]),
        stated_error_ns: stated_error_ns(history),
        path_delay_ns: middle(&delays),
        grandmaster: master.grandmaster,
        steps_removed: master.steps_removed,
        utc_offset_s: master.utc_offset_s,
        ports: ports(history),
        clock_width_ns,
        parts: parts(offsets.iter().map(|offset| (offset.at_ns, offset.offset_ns)), (from_ns, to_ns)),
        windows,
        messages: counted.map(Counted::figures),
        readings: history.readings.iter().map(readings).collect(),
    })
}

/// Largest error of the clock that chrony states; `None` if it states none. The last offset before the history counts, too.
fn stated_error_ns(of: &ClockHistory) -> Option<i64> {
    let both = of.offsets.iter().zip(&of.root_errors);
    both.map(|(offset, root)| offset.offset_ns.saturating_abs().saturating_add(root.most_ns())).max()
}

/// The lower median of sorted values.
fn middle(sorted: &[i64]) -> Option<i64> {
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// The last state of each port, by its number.
fn ports(history: &ClockHistory) -> Vec<String> {
    let mut numbers: Vec<u16> = history.ports.iter().map(|change| change.port).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let last = |number: u16| history.ports.iter().rev().find(|change| change.port == number);
    numbers.into_iter().filter_map(last).map(|change| change.state.to_string()).collect()
}

/// Smallest and largest offset of equal parts of a time span.
fn parts(offsets: impl Iterator<Item = (i64, i64)>, (from_ns, to_ns): (i64, i64)) -> Vec<OffsetPart> {
    let length = (to_ns - from_ns).max(1);
    let part_of = |at_ns: i64| i128::from(at_ns - from_ns) * i128::from(PARTS) / i128::from(length);
    let mut parts: Vec<(i128, OffsetPart)> = Vec::new();
    for (at_ns, offset_ns) in offsets {
        match parts.last_mut() {
            Some((number, part)) if *number == part_of(at_ns) => {
                part.min_ns = part.min_ns.min(offset_ns);
                part.max_ns = part.max_ns.max(offset_ns);
            }
            _ => parts.push((part_of(at_ns), OffsetPart { at_ns, min_ns: offset_ns, max_ns: offset_ns })),
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

fn readings(of: &ClockReadings) -> ClockReadingsReport {
    let is_system = of.read_by == "clock_gettime" && !of.clock.starts_with('/');
    let ends = of.readings.first().zip(of.readings.last()).filter(|_| !is_system);
    ClockReadingsReport {
        clock: of.clock.clone(),
        interfaces: of.interfaces.clone(),
        read_by: of.read_by.clone(),
        readings: of.readings.len() as u64,
        offset_ns: ends.map(|(first, last)| [first.offset_ns, last.offset_ns]),
        half_width_max_ns: of.readings.iter().map(|reading| reading.half_width_ns).max().unwrap_or(0),
        not_read: of.not_read.clone(),
    }
}

fn warning(report: &ClockHistoryReport) -> Option<Warning> {
    let first = report.windows.first()?;
    let after = |ns: i64| Nanos((ns - report.from_ns) / 1_000_000 * 1_000_000);
    let more = match report.windows.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    let messages = report.messages.as_ref().map_or(String::new(), |of| {
        format!(
            "; {} of {} messages were on their way then, and no figure leaves them out",
            of.inside.messages, of.all.messages
        )
    });
    let BadClockWindow { from_ns, to_ns, why, .. } = first;
    let text = format!(
        "the clock of {} was not known to be in step with its master: from {} to {} after the first message, {why}{more}{messages}",
        report.host,
        after(*from_ns),
        after(*to_ns),
    );
    let remedy = "do not use figures between clocks, launch times and hardware time stamps of these times";
    Some(Warning::new("clock_not_in_step", Severity::Warning, text, remedy).at_trial(report.trial))
}

fn not_kept(history: &ClockHistory) -> Option<Warning> {
    let lost = history.offsets_not_kept;
    let text = format!(
        "{lost} offsets of the clock of {} were not kept: the trial was too long for its history",
        history.host
    );
    (lost > 0).then(|| Warning::new("clock_history_full", Severity::Warning, text, "use shorter trials"))
}
