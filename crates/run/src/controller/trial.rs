//! One trial: prepare, go, collect, store.

use super::agent::{Agent, Lost};
use super::collect::Incoming;
use super::guests::{self, Guests};
use super::lab::Standing;
use super::length::{limit, slots};
use super::loads::{fell_short, unheard};
use super::measure::measure;
use super::remote::Nodes;
use super::stop::Stop;
use super::throttle::throttled;
use super::{RunError, barrier, collect, discovery, fit, flow, proof, store_not_sent, tool};
use crate::live;
use std::collections::BTreeMap;
use std::time::Duration;
use tailbound_host::OffsetTrack;
use tailbound_host::journal::Journal;
use tailbound_lab::under::Under;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_wire::*;
use tokio::time::Instant;

/// Everything that one trial needs to know.
pub(super) struct TrialContext<'a> {
    pub plan: &'a Plan,
    pub trial: &'a Trial,
    pub run_id: &'a str,
    pub housekeeping: &'a CpuList,
    pub journal: &'a Journal,
    pub stop: &'a Stop,
    /// What joins the guests, where there are some.
    pub under: Option<&'a Under>,
    /// This host's name in the record.
    pub here: &'a str,
}

/// What a trial came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub answered: u64,
    pub scheduled: u64,
    /// Times about the latest answers.
    pub late: Vec<(i64, i64)>,
    /// Of those, how many went out.
    pub sent: u64,
    /// Packets that there must be where messages wait for others to fill one; `None` = one for each message.
    pub batches: Option<u64>,
}

/// What is known of one agent's part while the trial goes on.
pub(super) struct Part {
    pub roles: Vec<Role>,
    pub order: Order,
    pub prepared: Prepared,
    pub incoming: Vec<Incoming>,
    /// Clock readings that came with drained rows.
    pub track: OffsetTrack,
    pub done: Option<Done>,
    pub lost: Option<String>,
    /// It could not even open: why.
    pub failed: Option<Failed>,
}

impl Part {
    pub fn new(roles: &[Role], order: Order) -> Part {
        let incoming = roles.iter().map(|role| Incoming::new(*role)).collect();
        let (prepared, track) = (Prepared::default(), OffsetTrack::new());
        Part { roles: roles.to_vec(), order, prepared, incoming, track, done: None, lost: None, failed: None }
    }
}

/// Runs one trial and writes it into the record. A trial that failed is in the record with its reasons. `None` when a
/// signal came while it was prepared or measured: the agents still hold its samples.
///
/// # Errors
/// What makes every further trial senseless: bad input, a machine that is not fit, a record that cannot be written.
pub(super) async fn run(
    context: &TrialContext<'_>,
    standing: &mut Standing,
    record: &mut RecordWriter,
) -> Result<Option<Outcome>, RunError> {
    let id = context.trial.id;
    let spec = &context.plan.conditions[context.trial.condition].spec;
    if spec.has_tool() {
        return tool::run(context, standing, record).await;
    }
    let dir = std::path::absolute(record.dir()).unwrap_or_else(|_| record.dir().to_owned());
    let streams = standing.streams(spec)?;
    let mut parts: Vec<Part> = standing
        .agents
        .iter()
        .map(|(roles, _)| {
            let order = order(context, spec, roles, standing, &dir);
            Part::new(roles, Order { streams: streams.clone(), ..order })
        })
        .collect();
    let before: Vec<BTreeMap<String, i64>> = (0..standing.lab.places()).map(|end| standing.lab.counters(end)).collect();
    begin(context, standing, record)?;

    tokio::select! {
        prepared = prepare(&mut parts, standing) => prepared?,
        () = context.stop.wait() => return Ok(None),
    }
    if let Some(failed) = hopeless(context, &parts, record) {
        return Err(failed.into());
    }
    for (part, (_, agent)) in parts.iter().zip(&standing.agents) {
        let host = standing.host_of(part.roles[0]).map_or(context.here, |h| h.facts.host.as_str());
        record_prepared(record, id, part, (host, &agent.clock))?;
    }
    let unmatched = discovery::with_server(unmatched(&parts, spec), standing);
    let met = unmatched.is_none() && parts.iter().all(|p| p.lost.is_none());
    let mut nodes = Nodes::look(standing);
    let silence = if met { proof::quiet(spec) } else { Nanos(0) };
    let watch = tokio::select! {
        watch = proof::Watch::begin(standing, silence) => watch,
        () = context.stop.wait() => return Ok(None),
    };
    let clocks = if met { barrier::clocks(&mut parts, &mut standing.agents).await } else { Vec::new() };
    for (role, apart) in &clocks {
        record.manifest.trials[id].ends.entry(role.word().into()).or_default().clock_apart = Some(*apart);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    record.manifest.trials[id].began_unix_ns = Some(now.as_nanos() as i64);
    let ports = proof::Ports::begin(context.under, standing);
    let watched = Guests::begin(standing);
    nodes.begin();
    let deadline = Instant::now() + limit(spec);
    let began = (standing.cpu_ns(), tailbound_host::monotonic_ns());
    tokio::select! {
        measured = measure(&mut parts, &mut standing.agents, &dir, (unmatched.is_some(), &clocks), deadline) => measured?,
        () = context.stop.wait() => return Ok(None),
    }
    record.manifest.trials[id].controller =
        Some(ControllerUse { cpu_ns: standing.cpu_ns() - began.0, span_ns: tailbound_host::monotonic_ns() - began.1 });
    let spaces = watch.end(standing);
    record.manifest.trials[id].nodes = nodes.end();
    record.manifest.trials[id].ports = ports.end();
    let (guests, unasked) = watched.end();
    record.manifest.trials[id].guests = guests;
    let after: Vec<BTreeMap<String, i64>> = (0..standing.lab.places()).map(|end| standing.lab.counters(end)).collect();

    for part in &mut parts {
        let ended = standing.host_of(part.roles[0]).filter(|_| part.lost.is_some()).and_then(|host| host.ended());
        if let (Some(why), Some(ended)) = (&mut part.lost, ended) {
            why.push_str(&format!("; {ended}"));
        }
    }
    let mut outcome = Outcome::default();
    let ping = parts.iter().flat_map(|p| p.done.iter().flat_map(|d| &d.ends)).find(|e| e.name == Role::Ping.word());
    let slot_0_ns = ping.map_or(0, |e| e.t0_ns);
    let clock = clock_of_ping(standing);
    for (part, (_, agent)) in parts.iter_mut().zip(&mut standing.agents) {
        let slot_0_ns = (agent.clock == clock).then_some(slot_0_ns);
        store_part(record, &dir, part, agent, (unmatched.is_some(), slot_0_ns), &mut outcome).await?;
    }
    if spec.attribution == Attribution::On && !outcome.late.is_empty() {
        store_switches(record, &parts, standing, &outcome.late).await?;
    }
    let disturbed: Vec<Warning> = record.manifest.trials[id].guests.iter().flat_map(guests::disturbed).collect();
    for warning in disturbed.into_iter().chain(unasked).chain(unheard(&parts)).chain(flow::neighbours(spec)) {
        record.warn(warning.at_trial(id))?;
    }
    for end in 0..after.len() {
        let name = standing.spec.name(end);
        let change: BTreeMap<String, i64> =
            after[end].iter().map(|(k, v)| (k.clone(), v - before[end].get(k).unwrap_or(&0))).collect();
        if let Some(warning) = throttled(name, &change) {
            record.warn(warning.at_trial(id))?;
        }
        record.manifest.trials[id].ends.entry(name.into()).or_default().counters = change;
    }
    let none_arrived = match spec.measure {
        Measure::PingPong(_) => (outcome.answered == 0 && outcome.scheduled > 0).then(|| no_answer(&parts)),
        Measure::Flow(_) => flow::account(record, id, &mut outcome)?,
    };
    record.manifest.trials[id].finding = unmatched.or(none_arrived);
    let processes = parts.iter().filter_map(|p| Some(p.done.as_ref()?.process.clone())).collect();
    let described = |name: &str| record.manifest.drivers.get(name).cloned();
    let carried = outcome.batches.map_or(outcome.answered, |batches| batches.min(outcome.answered));
    let proof = proof::proof(spec, spaces, processes, (outcome.sent, carried), described);
    if let Some(warning) = proof.as_ref().and_then(proof::warning) {
        record.warn(warning.at_trial(id))?;
    }
    record.manifest.trials[id].proof = proof;
    if let Some(warning) = proof::not_taken(&spec.path, &record.manifest.trials[id].ports, outcome.answered) {
        record.warn(warning.at_trial(id))?;
    }
    end(id, standing, record, &outcome)?;
    finish(&parts, standing, context.journal).await;
    Ok(Some(outcome))
}

/// The trial begins: what is known of it already goes into the record.
pub(super) fn begin(
    context: &TrialContext<'_>,
    standing: &Standing,
    record: &mut RecordWriter,
) -> Result<(), RunError> {
    let id = context.trial.id;
    record.manifest.trials[id].status = TrialStatus::Running;
    let spec = &context.plan.conditions[context.trial.condition].spec;
    let discovery = (!spec.has_tool()).then(|| discovery::facts(spec, standing));
    record.manifest.trials[id].path = Some(PathFacts { discovery, ..standing.path.clone() });
    if let Some(settings) = standing.settings.and_then(|i| record.manifest.host_settings.get_mut(i)) {
        settings.trials.push(id);
    }
    record.event(Event::TrialBegan { trial: id, condition: context.trial.condition })?;
    Ok(record.save()?)
}

/// The trial has ended: whether it is to be trusted.
pub(super) fn end(
    id: usize,
    standing: &Standing,
    record: &mut RecordWriter,
    outcome: &Outcome,
) -> Result<(), RunError> {
    for text in standing.changed() {
        let mend = "keep others from setting it while measuring: tuned, irqbalance, a second run";
        record.warn(Warning::new("host_setting_changed", Severity::Invalid, text, mend).at_trial(id))?;
    }
    let invalid = record.manifest.warnings.iter().any(|w| w.trial == Some(id) && w.severity == Severity::Invalid);
    record.manifest.trials[id].status = if invalid { TrialStatus::Invalid } else { TrialStatus::Valid };
    record.event(Event::TrialEnded { trial: id, scheduled: outcome.scheduled, answered: outcome.answered })?;
    record.save()?;
    Ok(())
}

/// What keeps an end from opening ends the run, unless another condition may fare better.
pub(super) fn hopeless(context: &TrialContext<'_>, parts: &[Part], record: &RecordWriter) -> Option<Failed> {
    let failed = parts.iter().find_map(|p| p.failed.clone())?;
    let others = context.plan.conditions.iter().filter(|c| c.not_possible.is_none()).count() > 1;
    let measured = record.manifest.trials.iter().any(|t| t.status == TrialStatus::Valid);
    (!others && !measured).then_some(failed)
}

pub(super) fn order(
    context: &TrialContext<'_>,
    spec: &TrialSpec,
    roles: &[Role],
    standing: &Standing,
    dir: &std::path::Path,
) -> Order {
    let (slots, warm_up) = match roles[0] {
        Role::Publisher(_) => (0, 0),
        _ => slots(spec),
    };
    let ring = (spec.collect == Collect::Live).then(|| live::ring_cells(spec));
    let ends = roles
        .iter()
        .map(|role| {
            let end = if role.receives() { &spec.pong } else { &spec.ping };
            let options = discovery::options(spec, standing.place_of(*role), standing);
            EndOrder { role: *role, options, scheduling: end.scheduling.clone() }
        })
        .collect();
    let duration_ns = match (&spec.measure, spec.rate) {
        (Measure::PingPong(PingPong { length: Length::Duration(d), .. }), Rate::Max) => Some(d.0),
        _ => None,
    };
    let match_timeout_ns = flow::match_timeout(spec).0;
    let limit_ns = limit(spec).as_nanos() as i64 + proof::quiet(spec).0;
    let host = standing.host_of(roles[0]);
    let here = fit::named_cpus_at(spec, !roles[0].receives());
    let spec = if roles.iter().all(|r| r.receives()) { spec.of_pong() } else { spec.clone() };
    Order {
        run_id: context.run_id.to_owned(),
        trial: context.trial.id,
        ends,
        slots,
        warm_up,
        duration_ns,
        spec,
        ring,
        match_timeout_ns,
        limit_ns,
        driver_path: None,
        // The record is here.
        rescue: dir.to_str().filter(|_| host.is_none()).map(str::to_owned),
        housekeeping: match host {
            Some(h) if h.place.is_remote() || !context.housekeeping.0.iter().all(|cpu| h.cpus.contains(cpu)) => {
                fit::housekeeping_of(&here, &h.cpus)
            }
            _ => context.housekeeping.clone(),
        },
        tool: None,
        streams: Vec::new(),
    }
}

/// Orders go out to all before the first answer is awaited: ends match each other while they prepare.
pub(super) async fn prepare(parts: &mut [Part], standing: &mut Standing) -> Result<(), RunError> {
    let matching = parts.iter().map(|p| p.order.match_timeout_ns).max().unwrap_or(0);
    let deadline = Instant::now() + Nanos(matching).duration() + Duration::from_secs(50);
    for (part, (_, agent)) in parts.iter_mut().zip(&mut standing.agents) {
        agent.octets_while_silent = 0;
        if let Err(Lost(why)) = agent.send(Message::Prepare(Box::new(part.order.clone()))).await {
            part.lost = Some(why);
        }
    }
    for (part, (_, agent)) in parts.iter_mut().zip(&mut standing.agents) {
        if part.lost.is_some() {
            continue;
        }
        match agent.message(deadline).await {
            Ok(Message::Prepared(prepared)) => {
                agent.hold(&prepared.memory_fds, &part.roles, part.order.ring.is_some());
                part.prepared = *prepared;
            }
            Ok(Message::Failed(failed)) => {
                part.lost = Some(failed.text.clone());
                part.failed = Some(failed);
            }
            Ok(other) => part.lost = Some(format!("it said {other:?} in place of `prepared`")),
            Err(Lost(why)) => part.lost = Some(why),
        }
    }
    Ok(())
}

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
        let entry = record.manifest.trials[id].ends.entry(end.name.clone()).or_default();
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

fn unmatched(parts: &[Part], spec: &TrialSpec) -> Option<String> {
    let ends: Vec<_> = parts.iter().flat_map(|p| &p.prepared.ends).collect();
    let why = ends.iter().find_map(|e| e.unmatched.as_ref().map(|why| (e.name.as_str(), why)))?;
    // The others wait in vain for an end that could not even open.
    if let Some((part, failed)) = parts.iter().find_map(|p| Some((p, p.failed.as_ref()?))) {
        let names: Vec<&str> = part.roles.iter().map(|r| r.word()).collect();
        return Some(format!("{}: {}", names.join(" and "), failed.text));
    }
    Some(format!("{} never met its peer over {} within {}: {}", why.0, spec.path, flow::match_timeout(spec), why.1))
}

async fn store_part(
    record: &mut RecordWriter,
    dir: &std::path::Path,
    part: &mut Part,
    agent: &mut Agent,
    (unmatched, slot_0_ns): (bool, Option<i64>),
    outcome: &mut Outcome,
) -> Result<(), RunError> {
    let id = part.order.trial;
    if let Some(failed) = &part.failed {
        let text = format!("{}: {}", agent.name, failed.text);
        let warning = Warning::new(&failed.code, Severity::Invalid, text, &failed.mend);
        record.warn(warning.at_trial(id).at_end(agent.name.clone()))?;
    } else if let Some(why) = &part.lost {
        let text = format!("agent {} was lost in mid-trial: {why}", agent.name);
        let warning = Warning::new("agent_lost", Severity::Invalid, text, "").at_trial(id).at_end(agent.name.clone());
        record.warn(warning)?;
    }
    let deadline = Instant::now() + Duration::from_secs(120);
    let gone = part.lost.is_some()
        && agent.message(Instant::now()).await.is_err_and(|l| l.0.contains("ended") || l.0.contains("closed"));
    let mut incoming = std::mem::take(&mut part.incoming);
    let counts = collect::rest(agent, &mut incoming, gone, deadline).await;
    flow::store(record, part, &counts);
    let mut warnings = Vec::new();
    for (role, incoming) in part.roles.iter().zip(incoming) {
        let has_rows = part.order.spec.measure.flow().is_none_or(|f| f.rows != FlowRows::None);
        if !has_rows || matches!(role, Role::Publisher(_)) {
            let done = part.done.as_ref().and_then(|d| d.ends.iter().find(|e| e.name == role.word()));
            let end = record.manifest.trials[id].ends.entry(role.word().into()).or_default();
            end.control_octets = agent.octets_while_silent;
            if let Some(done) = done {
                end.stats.clone_from(&done.stats);
                end.flow_told.clone_from(&done.told);
            }
            continue;
        }
        let done = part.done.as_ref().and_then(|d| d.ends.iter().find(|e| e.name == role.word()));
        let track: OffsetTrack = done.map_or_else(|| part.track.clone(), |d| d.clock.clone().into());
        let (stored, t0) = if unmatched && *role == Role::Ping {
            (store_not_sent(dir, &part.order)?, 0)
        } else {
            incoming.finish(dir, &part.order, done.map(|d| d.t0_ns), &track)?
        };
        let trial = &mut record.manifest.trials[id];
        if *role == Role::Ping {
            trial.t0_ns = Some(t0);
            outcome.scheduled = stored.rows;
            outcome.sent = stored.sent;
            outcome.answered = stored.answered;
            outcome.late = stored.worst.windows();
        }
        let end = trial.ends.entry(role.word().into()).or_default();
        end.clock_width_ns = stored.clock_width_ns;
        end.control_octets = agent.octets_while_silent;
        if let Some(done) = done {
            end.stats.clone_from(&done.stats);
            end.flow_told.clone_from(&done.told);
            end.rows_dropped = done.dropped;
        }
        // A step matters only where stamps of the stepped clock were to be used.
        let stamps = stored.clock_width_ns.is_some() || stored.unconverted > 0;
        end.invalid_windows = if stamps { track.steps() } else { Vec::new() };
        for window in &end.invalid_windows {
            let (from, to) = (window.from_ns, window.to_ns);
            let when = match slot_0_ns {
                Some(zero) => format!("between {} and {} after slot 0", Nanos(from - zero), Nanos(to - zero)),
                None => format!("within {} on its host", Nanos(to - from)),
            };
            let step = Nanos(window.step_ns);
            let text =
                format!("the wall clock was stepped by {step} {when}: kernel stamps in that window cannot be used");
            let mend = "keep the clock servo from stepping while measuring";
            warnings.push(Warning::new("clock_stepped", Severity::Invalid, text, mend).at_end(role.word()));
        }
    }
    if let Some(done) = &part.done {
        warnings.extend(done.warnings.iter().cloned());
        warnings.extend(done.loads.iter().filter_map(fell_short));
        for load in &done.loads {
            let end = record.manifest.trials[id].ends.entry(load.at.clone()).or_default();
            end.loads.push(load.clone());
        }
        let mut table = part.prepared.threads.clone();
        table.after.clone_from(&done.threads.after);
        table.after_ns = done.threads.after_ns;
        record.threads(id, &agent.name, &table)?;
        if !done.log.is_empty() {
            record.log(id, &agent.name, &done.log)?;
        }
    } else if !part.prepared.threads.before.is_empty() {
        record.threads(id, &agent.name, &part.prepared.threads)?;
    }
    for warning in warnings {
        record.warn(warning.at_trial(id))?;
    }
    Ok(())
}

/// What happened to threads about the latest answers. An agent that does not tell costs the trial nothing but its causes.
async fn store_switches(
    record: &mut RecordWriter,
    parts: &[Part],
    standing: &mut Standing,
    late: &[(i64, i64)],
) -> Result<(), RunError> {
    let deadline = Instant::now() + Duration::from_secs(20);
    // The times are of the ping end's clock: to an agent with another clock they say nothing.
    let clock = clock_of_ping(standing);
    for (part, (_, agent)) in parts.iter().zip(&mut standing.agents) {
        if part.done.is_none() || agent.clock != clock || agent.send(Message::Switches(late.to_vec())).await.is_err() {
            continue;
        }
        if let Ok(Message::Switched(seen)) = agent.message(deadline).await {
            record.switches(part.order.trial, &agent.name, &seen)?;
        }
    }
    Ok(())
}

/// The clock of the ping end's stamps.
fn clock_of_ping(standing: &Standing) -> String {
    let ping = standing.agents.iter().find(|(roles, _)| roles.contains(&Role::Ping));
    ping.map_or_else(String::new, |(_, agent)| agent.clock.clone())
}

/// Nothing came back although both ends had met.
fn no_answer(parts: &[Part]) -> String {
    let drops = parts.iter().flat_map(|p| p.done.iter().flat_map(|d| &d.ends)).find(|e| e.name == "pong");
    match drops {
        Some(pong) if pong.rows == 0 => "both ends met, but no message reached the pong end".into(),
        Some(pong) => format!("{} messages reached the pong end, no answer came back", pong.rows),
        None => "no answer came back".into(),
    }
}

/// The trial is stored. Agents that were lost are ended; new ones take their place in the next trial.
pub(super) async fn finish(parts: &[Part], standing: &mut Standing, journal: &Journal) {
    let deadline = Instant::now() + Duration::from_secs(15);
    let mut kept = Vec::new();
    for (part, (roles, mut agent)) in parts.iter().zip(std::mem::take(&mut standing.agents)) {
        let mut usable = part.lost.is_none() && agent.send(Message::Finish).await.is_ok();
        while usable {
            match agent.frame(deadline).await {
                Ok(Frame::Message(m)) if *m == Message::Finished => break,
                Ok(_) => {}
                Err(_) => usable = false,
            }
        }
        agent.let_go();
        if usable { kept.push((roles, agent)) } else { agent.end(journal).await }
    }
    standing.agents = kept;
}
