//! Writes the results of the ends of a trial into the record.

use super::RunError;
use super::active_lab::ActiveLab;
use super::agent::Agent;
use super::collect::{self, Incoming};
use super::flow;
use super::host_watch::{HostWatch, not_recorded};
use super::load_checks::fell_short;
use super::trial_state::{Part, TrialResult};
use crate::kept_windows::{in_other_clock, kept_windows};
use crate::store::store_not_sent;
use std::path::Path;
use std::time::Duration;
use tailbound_host::OffsetTrack;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_wire::*;
use tokio::time::Instant;

/// Longest time for an agent to send its sample memory.
const COLLECTING: Duration = Duration::from_secs(120);
/// A time span of this host contains the time span of the ping's clock even if times are rounded when they are converted, ns.
const ROUNDING_NS: i64 = 1_000;
/// Longest time for an agent to choose and send its thread switches.
const SWITCHES: Duration = Duration::from_secs(60);

/// Collects and stores the samples of all agents, then the events around the worst incidents.
///
/// # Errors
/// The record cannot be written.
pub(super) async fn store(
    record: &mut RecordWriter,
    dir: &Path,
    parts: &mut [Part],
    (lab, host, here): (&mut ActiveLab, Option<HostWatch>, &str),
    unmatched: bool,
) -> Result<TrialResult, RunError> {
    let mut result = TrialResult::default();
    let slot_0_ns = parts.iter().find_map(|p| p.end_done(Role::Ping)).map_or(0, |e| e.t0_ns);
    let clock = clock_of_ping(lab);
    for (part, (_, agent)) in parts.iter_mut().zip(&mut lab.agents) {
        let slot_0_ns = (agent.clock == clock).then_some(slot_0_ns);
        store_part(record, dir, part, agent, (unmatched, slot_0_ns), &mut result).await?;
    }
    let Some(order) = parts.first().map(|p| p.order.clone()) else { return Ok(result) };
    if has_answers(&order.spec) {
        store_events(record, dir, (&order, &*parts, lab, host.map(|host| (host, here))), &clock, &mut result).await?;
    } else if order.spec.attribution != Attribution::Off {
        // Without answers there are no incidents. How much was recorded is known, as is how much of it the kernel dropped.
        let nothing = Kept { clock: &clock, windows: Vec::new(), of_other_clock: Some(Vec::new()) };
        store_switches(record, parts, lab, &nothing).await?;
    }
    Ok(result)
}

/// Finds the message at which the run ends, if the run has such a condition, and stores the events around this message
/// and around the worst incidents.
async fn store_events(
    record: &mut RecordWriter,
    dir: &Path,
    (order, parts, lab, host): (&Order, &[Part], &mut ActiveLab, Option<(HostWatch, &str)>),
    clock: &str,
    result: &mut TrialResult,
) -> Result<(), RunError> {
    let until = record.manifest.until.as_ref().map(|until| &until.condition);
    let explained = order.spec.attribution != Attribution::Off && (result.answered > 0 || until.is_some());
    if until.is_none() && !explained {
        return Ok(());
    }
    let stored = Record::open(dir)?;
    result.matched = until.map(|condition| stored.first_match(order.trial, condition)).transpose()?.flatten();
    if explained {
        let late_above_ns = record.manifest.plan.report.late_above.map(|limit| limit.0);
        let found = stored.incidents(order.trial, late_above_ns, MOST_INCIDENTS)?;
        let windows = kept_windows(found.as_ref(), result.matched.as_ref());
        if !windows.is_empty() {
            let of_other_clock = windows_of_other_clock(&stored, order.trial, (lab, clock), &windows)?;
            if let Some(host) = host {
                store_host(record, order.trial, host, &windows)?;
            }
            store_switches(record, parts, lab, &Kept { clock, windows, of_other_clock }).await?;
        }
    }
    Ok(())
}

/// The time spans whose events are kept.
struct Kept<'a> {
    /// Identifier of the clock of `windows`.
    clock: &'a str,
    windows: Vec<(i64, i64)>,
    /// The same time spans in the clock of the pong, if it has another clock and can be asked.
    of_other_clock: Option<Vec<(i64, i64)>>,
}

impl Kept<'_> {
    /// The time spans for which an agent is asked; `None` if its clock is not known.
    fn of_agent(&self, roles: &[Role], agent: &Agent) -> Option<Vec<(i64, i64)>> {
        if agent.clock == self.clock {
            return Some(self.windows.clone());
        }
        self.of_other_clock.clone().filter(|_| roles.contains(&Role::Pong))
    }
}

/// The time spans in the clock of the pong, if it has another clock than the ping, and the difference between both clocks
/// has bounds. The samples of both ends are already stored.
fn windows_of_other_clock(
    stored: &Record,
    trial: usize,
    (lab, clock): (&ActiveLab, &str),
    windows: &[(i64, i64)],
) -> Result<Option<Vec<(i64, i64)>>, RunError> {
    let is_apart = |(roles, agent): &(Vec<Role>, Agent)| roles.contains(&Role::Pong) && agent.clock != clock;
    if !lab.agents.iter().any(is_apart) {
        return Ok(None);
    }
    let clocks = stored.clock_bounds(trial)?.ok();
    // If one of the clocks changed during the trial, the report cannot convert the times of events.
    let steady = clocks.as_ref().and_then(|clocks| clocks.whole());
    Ok(steady.map(|bounds| in_other_clock(windows, |at_ns| bounds.offset_ns(at_ns))))
}

fn has_answers(spec: &TrialSpec) -> bool {
    spec.measure.flow().is_none_or(Flow::has_answers)
}

/// Identifier of the clock of the ping end's timestamps.
fn clock_of_ping(lab: &ActiveLab) -> String {
    let ping = lab.agents.iter().find(|(roles, _)| roles.contains(&Role::Ping));
    ping.map_or_else(String::new, |(_, agent)| agent.clock.clone())
}

async fn store_part(
    record: &mut RecordWriter,
    dir: &Path,
    part: &mut Part,
    agent: &mut Agent,
    (unmatched, slot_0_ns): (bool, Option<i64>),
    result: &mut TrialResult,
) -> Result<(), RunError> {
    let id = part.order.trial;
    if let Some(warning) = why_lost(part, &agent.name) {
        record.warn(warning.at_trial(id))?;
    }
    let deadline = Instant::now() + COLLECTING;
    let gone = part.lost.is_some() && agent.message(Instant::now()).await.is_err_and(|lost| lost.is_stream_ended());
    let mut incoming = std::mem::take(&mut part.incoming);
    let counts = collect::rest(agent, &mut incoming, gone, deadline).await;
    flow::store(record, part, &counts);
    let mut warnings = Vec::new();
    for (role, incoming) in part.roles.iter().zip(incoming) {
        let end = record.manifest.trial_mut(id).ends.entry(role.word().into()).or_default();
        end.control_bytes = agent.bytes_while_silent;
        if let Some(done) = part.end_done(*role) {
            (end.hand_off_dropped, end.answers_refused) = (done.hand_off_dropped, done.answers_refused);
            end.stats.clone_from(&done.stats);
            end.flow_answer.clone_from(&done.told);
        }
        let has_rows = part.order.spec.measure.flow().is_none_or(|f| f.rows != FlowRows::None);
        if has_rows && !matches!(role, Role::Publisher(_)) {
            let not_sent = unmatched && *role == Role::Ping;
            warnings.extend(store_rows(record, dir, part, (*role, incoming), (not_sent, slot_0_ns), result)?);
        }
    }
    super::stages::store(record, dir, part)?;
    store_done(record, part, &agent.name, &mut warnings)?;
    for warning in warnings {
        record.warn(warning.at_trial(id))?;
    }
    Ok(())
}

/// Makes the warning for an agent without a complete result, with the reason; `None` = the result is complete.
fn why_lost(part: &Part, agent: &str) -> Option<Warning> {
    let warning = match (&part.failed, &part.lost) {
        (Some(failed), _) => Warning::of(Severity::Invalid, failed.problem.clone().context(agent)),
        (None, Some(why)) => {
            let text = format!("agent {agent} was lost in mid-trial: {why}");
            Warning::new("agent_lost", Severity::Invalid, text, "")
        }
        (None, None) => return None,
    };
    Some(warning.at_end(agent))
}

/// Stores the rows of samples of one end. Returns warnings about steps of the wall clock of the end.
fn store_rows(
    record: &mut RecordWriter,
    dir: &Path,
    part: &Part,
    (role, incoming): (Role, Incoming),
    (not_sent, slot_0_ns): (bool, Option<i64>),
    result: &mut TrialResult,
) -> Result<Vec<Warning>, RunError> {
    let done = part.end_done(role);
    let track: OffsetTrack = done.map_or_else(|| part.track.clone(), |d| d.clock.clone().into());
    let (stored, t0) = if not_sent {
        (store_not_sent(dir, &part.order)?, 0)
    } else {
        incoming.finish(dir, &part.order, done.map(|d| d.t0_ns), &track)?
    };
    if role == Role::Ping {
        if let Some(until) = record.manifest.until.as_mut().filter(|_| part.ended_early) {
            until.ended_early.insert(part.order.trial, stored.rows);
        }
        record.manifest.trial_mut(part.order.trial).t0_ns = Some(t0);
        result.scheduled = stored.rows;
        result.sent = stored.sent;
        result.answered = stored.answered;
    }
    if let Some(stream) = done.and_then(|done| done.stream.as_ref()) {
        record.manifest.trial_mut(part.order.trial).stream = Some(stream.clone());
    }
    let end = record.manifest.trial_mut(part.order.trial).ends.entry(role.word().into()).or_default();
    end.clock_width_ns = stored.clock_width_ns;
    if let Some(done) = done {
        end.rows_dropped = done.dropped;
    }
    // A step matters only if timestamps of the stepped clock are used.
    let stamps = stored.clock_width_ns.is_some() || stored.unconverted > 0;
    end.invalid_windows = if stamps { track.steps() } else { Vec::new() };
    Ok(end.invalid_windows.iter().map(|window| clock_stepped(window, slot_0_ns).at_end(role.word())).collect())
}

fn clock_stepped(window: &InvalidWindow, slot_0_ns: Option<i64>) -> Warning {
    let (from, to) = (window.from_ns, window.to_ns);
    let when = match slot_0_ns {
        Some(zero) => format!("between {} and {} after slot 0", Nanos(from - zero), Nanos(to - zero)),
        None => format!("within {} on its host", Nanos(to - from)),
    };
    let step = Nanos(window.step_ns);
    let text =
        format!("the wall clock was stepped by {step} {when}: the kernel timestamps of this time cannot be used");
    Warning::new(
        "clock_stepped",
        Severity::Invalid,
        text,
        "keep the clock servo from stepping the clock during a measurement",
    )
}

/// Stores the part of an agent's report that is not samples: warnings, loads, threads, log.
fn store_done(
    record: &mut RecordWriter,
    part: &Part,
    agent: &str,
    warnings: &mut Vec<Warning>,
) -> Result<(), RunError> {
    let id = part.order.trial;
    let Some(done) = &part.done else {
        if !part.prepared.threads.before.is_empty() {
            record.threads(id, agent, &part.prepared.threads)?;
        }
        return Ok(());
    };
    warnings.extend(done.warnings.iter().cloned());
    warnings.extend(done.loads.iter().filter_map(fell_short));
    for load in &done.loads {
        let end = record.manifest.trial_mut(id).ends.entry(load.at.clone()).or_default();
        end.loads.push(load.clone());
    }
    let mut table = part.prepared.threads.clone();
    table.after.clone_from(&done.threads.after);
    table.after_ns = done.threads.after_ns;
    record.threads(id, agent, &table)?;
    if !done.log.is_empty() {
        record.log(id, agent, &done.log)?;
    }
    crate::log::keep(&record.dir().join("logs"), &format!("agent-{agent}"), &done.diagnostics);
    Ok(())
}

/// Stores what was recorded on this host in time spans of the ping's clock.
fn store_host(
    record: &mut RecordWriter,
    trial: usize,
    (mut host, here): (HostWatch, &str),
    windows: &[(i64, i64)],
) -> Result<(), RunError> {
    let unknown = "the difference between the clocks of this host and of the ping is not known";
    let bounds =
        host.ping_clock().and_then(|readings| bounds_of_readings(&readings).map_err(|_| not_recorded(unknown)));
    let seen = bounds.and_then(|bounds| {
        let ahead_ns = |at_ns| {
            let [least, most] = bounds.offset_ns(at_ns);
            [least - ROUNDING_NS, most + ROUNDING_NS]
        };
        host.within(&in_other_clock(windows, ahead_ns), here)
    });
    match seen {
        Ok(seen) => record.switches(trial, "host", &seen)?,
        Err(problem) => record.warn(Warning::of(Severity::Note, problem).at_trial(trial))?,
    }
    Ok(())
}

/// Stores the events of these time spans. If an agent does not answer, only the causes of late messages are missing.
async fn store_switches(
    record: &mut RecordWriter,
    parts: &[Part],
    lab: &mut ActiveLab,
    kept: &Kept<'_>,
) -> Result<(), RunError> {
    for (part, (roles, agent)) in parts.iter().zip(&mut lab.agents) {
        let Some(windows) = kept.of_agent(roles, agent).filter(|_| part.done.is_some()) else { continue };
        let trial = part.order.trial;
        match switches_of(agent, windows).await {
            Ok(seen) => record.switches(trial, &agent.name, &seen)?,
            Err(why) => record.warn(events_missing(&agent.name, &why).at_trial(trial))?,
        }
    }
    Ok(())
}

/// What an agent recorded in time spans of its clock; else the reason why it is not known.
async fn switches_of(agent: &mut Agent, windows: Vec<(i64, i64)>) -> Result<Switches, String> {
    agent.send(Message::Switches(windows)).await.map_err(|e| e.to_string())?;
    match agent.message(Instant::now() + SWITCHES).await {
        Ok(Message::Switched(seen)) => Ok(*seen),
        Ok(_) => Err("it answered something else".into()),
        Err(e) => Err(e.to_string()),
    }
}

fn events_missing(agent: &str, why: &str) -> Warning {
    let what = format!(
        "the agent `{agent}` did not send what the kernel recorded on its host, so that messages of this trial can be late \
         without a known cause: {why}"
    );
    let remedy = "run fewer cycles per trial, so that less is recorded";
    Warning::new("events_missing", Severity::Note, what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_does_not_send_its_events_is_named() {
        let warning = events_missing("pong", &super::super::agent_protocol::Lost::NoAnswer.to_string());
        insta::assert_snapshot!(format!("{}\n{}", warning.problem.what, warning.problem.remedy));
    }
}
