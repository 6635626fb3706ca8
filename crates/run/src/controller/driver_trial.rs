//! Runs one trial of a driver: prepares, measures, collects and stores.

use super::active_lab::ActiveLab;
use super::guest_events::{self, Guests};
use super::host_watch::HostWatch;
use super::load_checks::without_arrivals;
use super::meanwhile::Clocks;
use super::measuring::measure;
use super::neighbour_loads::NeighbourLoads;
use super::node_counts::Nodes;
use super::progress::Progress;
use super::trial_length::{limit, quiet};
use super::trial_state::{Part, TrialContext, TrialResult};
use super::trial_steps::{begin, end, ends_run, finish, order, prepare};
use super::{RunError, common_start, cpu_quota, discovery, flow, gated, proof, security, trial_store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tailbound_lab::LabError;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_wire::*;
use tokio::time::Instant;

/// Network counters of each place of the lab: value by counter name.
pub(super) type Counters = Vec<BTreeMap<String, i64>>;

/// Reads the network counters of each place of the lab.
pub(super) fn counters(lab: &ActiveLab) -> Counters {
    (0..lab.lab.places()).map(|end| lab.lab.counters(end)).collect()
}

/// Counts and observations that the controller collects during the measurement, apart from the samples.
struct Observed {
    spaces: Option<Vec<Space>>,
    /// Warnings about guests of ends, and about neighbours and their loads.
    of_guests: Vec<Warning>,
    /// What was recorded on this host, if the ends are in its guests.
    host: Option<HostWatch>,
}

/// Runs one trial of a driver and writes it into the record. A trial that failed is in the record with the reasons.
/// Returns `None` if a signal arrived while the trial was prepared or measured: the agents then still have the samples.
///
/// # Errors
/// The run cannot continue: bad input, a machine that is not fit, or a record that cannot be written.
pub(super) async fn run(
    context: &TrialContext<'_>,
    lab: &mut ActiveLab,
    record: &mut RecordWriter,
    progress: &mut dyn Progress,
) -> Result<Option<TrialResult>, RunError> {
    let (id, spec) = (context.trial.id, context.spec());
    let dir = record_dir(record);
    let mut parts = parts(context, lab, &dir)?;
    let before = counters(lab);
    begin(context, lab, record)?;
    tokio::select! {
        prepared = prepare(&mut parts, lab) => prepared?,
        () = context.run.stop.wait() => return Ok(None),
    }
    if let Some(failed) = ends_run(context, &parts, record) {
        return Err(failed.into());
    }
    for (part, (_, agent)) in parts.iter().zip(&lab.agents) {
        let host = lab.host_of(part.roles[0]).map_or(context.here, |h| h.facts.host.as_str());
        record_prepared(record, id, part, (host, &agent.clock))?;
    }
    let ends = parts.iter().flat_map(|part| &part.prepared.ends);
    let unmatched = discovery::with_server(security::hint(unmatched(&parts, spec), ends), lab);
    let unmet = unmatched.is_some();
    let Some(observed) = measure_observed(context, &mut parts, lab, record, (unmet, progress)).await? else {
        return Ok(None);
    };
    let after = counters(lab);
    name_ended_places(&mut parts, lab);
    let mut result =
        trial_store::store(record, &dir, &mut parts, (lab, observed.host, context.here), unmatched.is_some()).await?;
    warn(context, &parts, observed.of_guests, record)?;
    let has_one_clock = lab.agents.iter().all(|(_, agent)| agent.clock == lab.agents[0].1.clock);
    check_gates(context, (&dir, has_one_clock), record)?;
    record_counters(record, id, lab, &before, after)?;
    let none_arrived = match spec.measure {
        Measure::PingPong(_) => (result.answered == 0 && result.scheduled > 0).then(|| no_answer(&parts)),
        Measure::Flow(_) => flow::account(record, id, &mut result)?,
    };
    record.manifest.trial_mut(id).finding = unmatched.or(none_arrived);
    record_proof(record, context, &parts, observed.spaces, &result)?;
    end(id, lab, record, &result)?;
    finish(&parts, lab, context.run).await;
    Ok(Some(result))
}

/// Makes the [`Part`] of each agent of the lab: the order for the agent, and the agent's state in the trial.
fn parts(context: &TrialContext<'_>, lab: &ActiveLab, dir: &Path) -> Result<Vec<Part>, RunError> {
    let streams = lab.streams(context.spec())?;
    let part = |roles: &Vec<Role>| {
        let order = order(context, roles, lab, dir);
        Part::new(roles, Order { streams: streams.clone(), ..order })
    };
    Ok(lab.agents.iter().map(|(roles, _)| part(roles)).collect())
}

/// Waits for the quiet interval and measures. Just before and just after the measurement, the counters of networks,
/// cluster nodes and guests are read. Returns `None` if a signal arrived.
async fn measure_observed(
    context: &TrialContext<'_>,
    parts: &mut [Part],
    lab: &mut ActiveLab,
    record: &mut RecordWriter,
    (unmatched, progress): (bool, &mut dyn Progress),
) -> Result<Option<Observed>, RunError> {
    let (id, spec) = (context.trial.id, context.spec());
    let met = !unmatched && parts.iter().all(|p| p.lost.is_none());
    let mut nodes = Nodes::look(lab);
    let mut host = if met { HostWatch::open(lab, spec).await } else { None };
    let silence = if met { quiet(spec) } else { Nanos(0) };
    let watch = tokio::select! {
        watch = proof::Watch::begin(lab, silence) => watch,
        () = context.run.stop.wait() => return Ok(None),
    };
    let clocks = if met { common_start::clocks(parts, &mut lab.agents).await } else { Vec::new() };
    let all_clocks = Clocks::compare(if met { parts } else { &[] }, &mut lab.agents).await;
    for (role, apart) in &clocks {
        record.manifest.trial_mut(id).ends.entry(role.word().into()).or_default().clock_apart = Some(*apart);
    }
    record.manifest.trial_mut(id).began_unix_ns = Some(unix_ns());
    let ports = proof::Ports::begin(context.wiring, lab);
    if let Some(host) = &mut host {
        host.begin(parts, &mut lab.agents).await;
    }
    let guests = Guests::begin(lab);
    let loads = NeighbourLoads::begin(lab, parts.first().filter(|_| met).map(|part| &part.order))?;
    nodes.begin();
    let dir = record_dir(record);
    let deadline = Instant::now() + limit(spec);
    tracing::debug!(trial = id, unmatched, "measuring begins");
    tokio::select! {
        begun = lab.lab.begin_policing(|end| port_of_messages(parts, end)) => begun?,
        () = context.run.stop.wait() => return Ok(None),
    }
    let began = (lab.cpu_ns(), tailbound_host::monotonic_ns());
    tokio::select! {
        measured = measure(parts, &mut lab.agents, &dir, (unmatched, &clocks, context.until), (&all_clocks, progress), deadline) => measured?,
        () = context.run.stop.wait() => return Ok(None),
    }
    end_policing(lab, record, id).await?;
    record.manifest.trial_mut(id).controller =
        Some(ControllerUse { cpu_ns: lab.cpu_ns() - began.0, span_ns: tailbound_host::monotonic_ns() - began.1 });
    if let Some(host) = &mut host {
        host.end(parts, &mut lab.agents).await;
    }
    let spaces = watch.end(lab);
    tracing::debug!(trial = id, "measuring has ended");
    let (loads, of_loads) = loads.end();
    record.manifest.trial_mut(id).neighbour_loads = loads;
    let (guests, mut of_guests) = {
        record.manifest.trial_mut(id).nodes = nodes.end();
        record.manifest.trial_mut(id).ports = ports.end();
        guests.end()
    };
    record.manifest.trial_mut(id).guests = guests.into_iter().chain(guest_events::of_libvirt(lab)).collect();
    of_guests.extend(of_loads);
    Ok(Some(Observed { spaces, of_guests, host }))
}

/// The UDP port at which an end receives the messages, if its driver reports it.
fn port_of_messages(parts: &[Part], end: &str) -> Option<u16> {
    let mut ends = parts.iter().flat_map(|part| &part.prepared.ends);
    let transport = ends.find(|ready| ready.name == end)?.transport.as_ref()?;
    let sockets = transport["sockets"].as_array()?;
    let reader = sockets.iter().find(|socket| socket["kind"] == "reader")?;
    Some(reader["local"].as_str()?.parse::<std::net::SocketAddr>().ok()?.port())
}

/// Ends the gates for received packets, and writes what they dropped into the record.
async fn end_policing(lab: &mut ActiveLab, record: &mut RecordWriter, id: usize) -> Result<(), RunError> {
    match lab.lab.end_policing().await {
        Ok(facts) => {
            for (end, police) in facts {
                record.manifest.trial_mut(id).ends.entry(end.into()).or_default().police = Some(police);
            }
        }
        Err(error) => record.warn(unpoliced(&error).at_trial(id))?,
    }
    Ok(())
}

/// Makes the warning that it is not known whether a gate for received packets was in force, and what it dropped.
fn unpoliced(error: &LabError) -> Warning {
    let remedy = "let no other program change the filters of an end's interface during the run, and repeat the trial";
    Warning::new("police", Severity::Invalid, error.to_string(), remedy)
}

/// Absolute path of the directory of the record.
pub(super) fn record_dir(record: &RecordWriter) -> PathBuf {
    std::path::absolute(record.dir()).unwrap_or_else(|_| record.dir().to_owned())
}

/// Present wall-clock time in ns since 1970-01-01 UTC.
pub(super) fn unix_ns() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as i64
}

/// Adds, to the text that says why an agent was lost, how the place of the agent ended, if that is known.
fn name_ended_places(parts: &mut [Part], lab: &ActiveLab) {
    for part in parts {
        let ended = lab.host_of(part.roles[0]).filter(|_| part.lost.is_some()).and_then(|host| host.ended());
        if let (Some(why), Some(ended)) = (&mut part.lost, ended) {
            why.push_str(&format!("; {ended}"));
        }
    }
}

/// Warns of guests that were disturbed, of neighbours and their loads, of loads whose messages did not arrive, of a neighbour table that is too small, and
/// of what is wrong with gates.
fn warn(
    context: &TrialContext<'_>,
    parts: &[Part],
    of_guests: Vec<Warning>,
    record: &mut RecordWriter,
) -> Result<(), RunError> {
    let id = context.trial.id;
    let disturbed: Vec<Warning> = record.manifest.trial(id).guests.iter().flat_map(guest_events::disturbed).collect();
    let others = without_arrivals(parts, &record.manifest.trial(id).neighbour_loads)
        .into_iter()
        .chain(flow::neighbours(context.spec()));
    let others = others.chain(tailbound_gates::check(context.spec())).chain(crate::priorities_behind(context.spec()));
    for warning in disturbed.into_iter().chain(of_guests).chain(others) {
        record.warn(warning.at_trial(id))?;
    }
    Ok(())
}

/// Warns of messages that left outside of the windows of their gates.
fn check_gates(
    context: &TrialContext<'_>,
    (dir, has_one_clock): (&Path, bool),
    record: &mut RecordWriter,
) -> Result<(), RunError> {
    let (id, spec) = (context.trial.id, context.spec());
    let path = record.manifest.trial(id).path.as_ref();
    let ends = path.map_or(&[][..], |path| path.ends.as_slice());
    let unknown = tailbound_gates::unknown_speeds(ends, spec.payload.0);
    for warning in gated::outside(dir, (id, has_one_clock), ends, spec)?.into_iter().chain(unknown) {
        record.warn(warning.at_trial(id))?;
    }
    Ok(())
}

/// Writes the changes of the counters of each place into the record, and warns of CPU quotas that were used up.
fn record_counters(
    record: &mut RecordWriter,
    id: usize,
    lab: &ActiveLab,
    before: &Counters,
    after: Counters,
) -> Result<(), RunError> {
    for (place, (after, before)) in after.into_iter().zip(before).enumerate() {
        let name = lab.spec.name(place);
        let change: BTreeMap<String, i64> =
            after.into_iter().map(|(k, v)| (k.clone(), v - before.get(&k).unwrap_or(&0))).collect();
        if let Some(warning) = cpu_quota::throttled(name, &change) {
            record.warn(warning.at_trial(id))?;
        }
        record.manifest.trial_mut(id).ends.entry(name.into()).or_default().counters = change;
    }
    Ok(())
}

/// Writes into the record which path the messages took, and warns if the study asks for another path.
fn record_proof(
    record: &mut RecordWriter,
    context: &TrialContext<'_>,
    parts: &[Part],
    spaces: Option<Vec<Space>>,
    result: &TrialResult,
) -> Result<(), RunError> {
    let (id, spec) = (context.trial.id, context.spec());
    let processes = parts.iter().filter_map(|p| Some(p.done.as_ref()?.process.clone())).collect();
    let described = |name: &str| record.manifest.drivers.get(name).cloned();
    let carried = result.batches.map_or(result.answered, |batches| batches.min(result.answered));
    let proof = proof::proof(spec, spaces, processes, (result.sent, carried), described);
    if let Some(warning) = proof.as_ref().and_then(proof::warning) {
        record.warn(warning.at_trial(id))?;
    }
    record.manifest.trial_mut(id).proof = proof;
    if let Some(warning) = proof::not_taken(&spec.path, &record.manifest.trial(id).ports, result.answered) {
        record.warn(warning.at_trial(id))?;
    }
    Ok(())
}

/// Writes into the record what one agent has reported about its ends after they were opened: warnings, driver, and
/// the state of each end.
fn record_prepared(
    record: &mut RecordWriter,
    id: usize,
    part: &Part,
    (host, clock): (&str, &str),
) -> Result<(), RunError> {
    for warning in &part.prepared.warnings {
        record.warn(warning.clone().at_trial(id))?;
    }
    if let Some(driver) = &part.prepared.driver {
        record.manifest.drivers.entry(part.order.spec.driver.name.clone()).or_insert_with(|| driver.clone());
    }
    for end in &part.prepared.ends {
        if let Some(warning) = security::differences(&part.order.spec, end) {
            record.warn(warning.at_trial(id))?;
        }
        security::record(record.manifest.trial_mut(id), end);
        let entry = record.manifest.trial_mut(id).ends.entry(end.name.clone()).or_default();
        *entry = EndRecord {
            host: host.to_owned(),
            clock: if end.clock.is_empty() { clock.to_owned() } else { end.clock.clone() },
            qos: end.qos.clone(),
            transport: end.transport.clone(),
            peers: end.peers.clone(),
            matched_after_ns: end.matched_after_ns,
            opened_ns: Some(end.opened_ns),
            memory_locked: end.memory_locked,
            timer_slack_ns: end.timer_slack_ns,
            ..EndRecord::default()
        };
    }
    Ok(())
}

/// Finding that the ends of a trial have not found each other, with the reason; `None` = they have found each other.
fn unmatched(parts: &[Part], spec: &TrialSpec) -> Option<String> {
    let ends: Vec<_> = parts.iter().flat_map(|p| &p.prepared.ends).collect();
    let why = ends.iter().find_map(|e| e.unmatched.as_ref().map(|why| (e.name.as_str(), why)))?;
    // If an end could not open, the other ends were waiting for it.
    if let Some((part, failed)) = parts.iter().find_map(|p| Some((p, p.failed.as_ref()?))) {
        let names: Vec<&str> = part.roles.iter().map(|r| r.word()).collect();
        return Some(format!("{}: {}", names.join(" and "), failed.problem.what));
    }
    Some(format!("{} never met its peer over {} within {}: {}", why.0, spec.path, flow::match_timeout(spec), why.1))
}

/// Finding that no answer was received although both ends had found each other.
fn no_answer(parts: &[Part]) -> String {
    match parts.iter().find_map(|p| p.end_done(Role::Pong)) {
        Some(pong) if pong.rows == 0 => "both ends found each other, but no message reached the pong end".into(),
        Some(pong) => format!("{} messages reached the pong end, no answer came back", pong.rows),
        None => "no answer came back".into(),
    }
}
