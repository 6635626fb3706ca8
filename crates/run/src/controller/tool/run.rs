//! Runs one trial of a tool: prepares, runs its programs, and reads the figures that the tool printed.

use super::fit;
use crate::controller::RunError;
use crate::controller::active_lab::ActiveLab;
use crate::controller::driver_trial::{counters, record_dir, unix_ns};
use crate::controller::load_checks::{fell_short, without_arrivals};
use crate::controller::meanwhile::Clocks;
use crate::controller::measuring::measure;
use crate::controller::progress::Progress;
use crate::controller::trial_length::{tool_limit, tool_seconds, tool_time};
use crate::controller::trial_state::{Part, TrialContext, TrialResult};
use crate::controller::trial_steps::{self, ends_run, finish, prepare};
use std::time::Duration;
use tailbound_model::*;
use tailbound_record::{EndRecord, RecordWriter, Source};
use tailbound_tools::{OutputOf, StopBy, Tool, Values};
use tailbound_wire::*;
use tokio::time::Instant;

/// Longest time for the program of a tool to print its version.
const VERSION: Duration = Duration::from_secs(5);

/// Runs one trial of a tool and writes it into the record. Returns `None` if a signal arrived.
///
/// # Errors
/// The run cannot continue: bad input, a machine that is not fit, or a record that cannot be written.
pub(in crate::controller) async fn run(
    context: &TrialContext<'_>,
    lab: &mut ActiveLab,
    record: &mut RecordWriter,
) -> Result<Option<TrialResult>, RunError> {
    let (id, spec) = (context.trial.id, context.spec());
    let bad = |problem: Problem| RunError::of(ExitCode::BadInput, problem);
    let no_tool = || bad(Problem::new("tool", "the trial has no tool", ""));
    let tool = fit::read(spec).map_err(bad)?.ok_or_else(no_tool)?;
    let dir = record_dir(record);
    let streams = lab.streams(spec)?;
    let port = lab.lab.free_port(lab.place_of(Role::Pong)).map_err(|e| {
        RunError::new(ExitCode::RunFailed, format!("there is no port for the tool {}: {e}", tool.tool), "")
    })?;
    let mut parts = Vec::new();
    for (roles, _) in &lab.agents {
        let order = trial_steps::order(context, roles, lab, &dir);
        let times = fit::stream_times(spec, order.stream_base_ns);
        let program = end_order(&tool, spec, roles, lab, (port, times)).map_err(bad)?;
        let order = Order { streams: streams.clone(), tool: Some(program), rescue: None, ..order };
        parts.push(Part::new(roles, order));
    }
    let before = counters(lab);
    trial_steps::begin(context, lab, record)?;
    record.manifest.trial_mut(id).source = Source::Summary;
    let mut summary = ToolSummary {
        tool: tool.tool.clone(),
        version: version(&tool).await,
        definition: tool.definition(),
        remarks: fit::remarks(spec, &tool),
        ..ToolSummary::default()
    };
    tokio::select! {
        prepared = prepare(&mut parts, lab) => prepared?,
        () = context.run.stop.wait() => return Ok(None),
    }
    if let Some(failed) = ends_run(context, &parts, record) {
        return Err(failed.into());
    }
    let not_ready = parts.iter().flat_map(|p| &p.prepared.ends).any(|e| e.unmatched.is_some());
    record.manifest.trial_mut(id).began_unix_ns = Some(unix_ns());
    // A tool has no events that its agents could keep.
    let clocks = Clocks::default();
    let progress: &mut dyn Progress = &mut ();
    let deadline = Instant::now() + tool_limit(spec).duration() + Duration::from_secs(30);
    tokio::select! {
        measured = measure(&mut parts, &mut lab.agents, &dir, (not_ready, &[], None), (&clocks, progress), deadline) => measured?,
        () = context.run.stop.wait() => return Ok(None),
    }
    for (part, (_, agent)) in parts.iter().zip(&lab.agents) {
        store(record, part, (context.here, &agent.name), &mut summary)?;
    }
    for warning in without_arrivals(&parts, &[]) {
        record.warn(warning.at_trial(id))?;
    }
    for (place, before) in before.iter().enumerate() {
        let change = lab.lab.counters(place).into_iter().map(|(k, v)| (k.clone(), v - before.get(&k).unwrap_or(&0)));
        let name = lab.spec.name(place);
        record.manifest.trial_mut(id).ends.entry(name.into()).or_default().counters = change.collect();
    }
    let result = figures(record, id, &tool, &parts, &mut summary)?;
    record.manifest.trial_mut(id).summary = Some(summary);
    trial_steps::end(id, lab, record, &result)?;
    finish(&parts, lab, context.run).await;
    Ok(Some(result))
}

/// Makes the order of the controller to the agent of an end: which program of the tool to start, and how. `base_s` and `offset_s`: times
/// of the stream, in seconds.
fn end_order(
    tool: &Tool,
    spec: &TrialSpec,
    roles: &[Role],
    lab: &ActiveLab,
    (port, [base_s, offset_s]): (u16, [String; 2]),
) -> Result<ToolOrder, Problem> {
    let measures = roles.contains(&Role::Ping);
    let net = lab.lab.end(lab.place_of(roles[0]));
    let values = Values {
        payload: spec.payload.0,
        seconds: tool_seconds(spec),
        rate_hz: fit::rate_hz(spec),
        address: net.address.to_string(),
        peer: net.peer.to_string(),
        interface: net.interface.clone(),
        port,
        domain: spec.domain,
        priority: fit::priority(spec).unwrap_or_default(),
        base_s,
        offset_s,
    };
    let end = if measures { Some(&tool.ping) } else { tool.pong.as_ref() };
    let filled = end.map(|end| Tool::command(end, &values)).transpose();
    let filled = filled.map_err(|missing| Problem::new("tool_file", missing.to_string(), ""))?;
    let (command, environment) = filled.unwrap_or_default();
    let stop_signal = match end.map(|end| end.stop).unwrap_or_default() {
        StopBy::Terminate => libc::SIGTERM,
        StopBy::Interrupt => libc::SIGINT,
        StopBy::Itself => 0,
    };
    Ok(ToolOrder {
        command,
        environment,
        ready: end.and_then(|end| end.ready.clone()),
        listens: end.filter(|end| end.ready_when_listening).map(|_| port),
        measures,
        stop_signal,
        told_ns: if tool.takes_time() { tool_time(spec).0 } else { 0 },
        longest_ns: tool_limit(spec).0,
    })
}

/// Runs the version command of a tool and returns the version; `None` = the tool prints no version.
async fn version(tool: &Tool) -> Option<String> {
    let version = tool.version.as_ref()?;
    let (program, arguments) = version.command.split_first()?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(VERSION, command.output()).await.ok()?.ok()?;
    let both = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    tailbound_tools::first(&version.pattern, &both.join("\n"))
}

/// Writes the result of the tool's program at one end into the record.
fn store(
    record: &mut RecordWriter,
    part: &Part,
    // Tools run on this host only.
    (here, agent): (&str, &str),
    summary: &mut ToolSummary,
) -> Result<(), RunError> {
    let id = part.order.trial;
    for role in &part.roles {
        let end = record.manifest.trial_mut(id).ends.entry(role.word().into()).or_default();
        *end = EndRecord { host: here.to_owned(), ..EndRecord::default() };
    }
    let failed = |code: &str, text: String| Warning::new(code, Severity::Invalid, text, "").at_trial(id).at_end(agent);
    if let Some(why) = &part.failed {
        record.warn(failed(&why.problem.code, format!("{agent}: {}", why.problem.what)))?;
    } else if let Some(why) = &part.lost {
        record.warn(failed("agent_lost", format!("agent {agent} was lost in mid-trial: {why}")))?;
    }
    let Some(done) = &part.done else { return Ok(()) };
    for warning in done.warnings.iter().cloned().chain(done.loads.iter().filter_map(fell_short)) {
        record.warn(warning.at_trial(id))?;
    }
    for load in &done.loads {
        let end = record.manifest.trial_mut(id).ends.entry(load.at.clone()).or_default();
        end.loads.push(load.clone());
    }
    if !done.threads.before.is_empty() {
        record.threads(id, agent, &done.threads)?;
    }
    let (Some(tool), Some(ran)) = (&part.order.tool, &done.tool) else { return Ok(()) };
    if tool.command.is_empty() {
        return Ok(());
    }
    summary.commands.insert(agent.to_owned(), tool.command.clone());
    summary.environment.insert(agent.to_owned(), tool.environment.clone());
    summary.processes.insert(agent.to_owned(), ran.process.clone());
    if !ran.output.is_empty() {
        record.log(id, agent, &ran.output)?;
    }
    Ok(())
}

/// Reads the figures from the output of the tool. If there are no figures, the reason is a finding, and the trial is
/// invalid.
fn figures(
    record: &mut RecordWriter,
    id: usize,
    tool: &Tool,
    parts: &[Part],
    summary: &mut ToolSummary,
) -> Result<TrialResult, RunError> {
    let of = |measures: bool| {
        let part = parts.iter().find(|p| p.order.tool.as_ref().is_some_and(|t| t.measures == measures));
        part.and_then(|p| p.done.as_ref()?.tool.as_ref())
    };
    let failed = [("pong", of(false)), ("ping", of(true))]
        .into_iter()
        .find_map(|(end, done)| Some(format!("the tool {}, {end}: {}", tool.tool, done?.failed.as_ref()?)));
    let output = of(tool.output == OutputOf::Ping).map_or("", |done| &done.output);
    let read = failed.map_or_else(|| tailbound_tools::figures(tool, output).map_err(|e| e.to_string()), Err);
    match read {
        Ok(figures) => summary.figures = figures,
        // A lost agent is reported already.
        Err(_) if parts.iter().any(|p| p.lost.is_some()) => {}
        Err(why) => {
            let remedy = "The output of the tool is in the directory `logs` of the record.";
            record.manifest.trial_mut(id).finding = Some(why.clone());
            record.warn(Warning::new("tool_failed", Severity::Invalid, why, remedy).at_trial(id))?;
        }
    }
    let total =
        |what: ToolMetric| -> f64 { summary.figures.iter().filter(|f| f.what == what).flat_map(|f| &f.values).sum() };
    let answered = total(ToolMetric::Samples) as u64;
    Ok(TrialResult { answered, scheduled: answered + total(ToolMetric::Lost) as u64, ..TrialResult::default() })
}
