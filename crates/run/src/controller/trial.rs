//! One trial: prepare, go, collect, store.

use super::agent::{Agent, Lost};
use super::collect::Incoming;
use super::lab::Standing;
use super::measure::measure;
use super::stop::Stop;
use super::{FASTEST_ROUND_TRIP_NS, RunError, collect, flow, proof, store_not_sent};
use crate::live;
use std::collections::BTreeMap;
use std::time::Duration;
use tailbound_host::OffsetTrack;
use tailbound_host::journal::Journal;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_wire::*;
use tokio::time::Instant;

/// How long matching may take.
const MATCH_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Most slots that stop-and-wait by duration keeps memory for, where it is not drained.
const MOST_SLOTS: u64 = 20_000_000;

/// Slots that memory is needed for, and how many of them are warm-up.
pub(super) fn slots(spec: &TrialSpec) -> (u64, u64) {
    let p = match &spec.measure {
        Measure::PingPong(p) => p,
        Measure::Flow(f) => return (flow::rows(f, spec.rate), 0),
    };
    let measured = match (p.length, spec.rate) {
        (Length::Slots(n), _) => n,
        (Length::Duration(d), Rate::Period(period)) => (d.0 / period.0.max(1)).max(1) as u64,
        (Length::Duration(d), Rate::Max) => {
            let most = if spec.collect == Collect::Live { u64::MAX >> 16 } else { MOST_SLOTS };
            ((d.0 / FASTEST_ROUND_TRIP_NS).max(1) as u64).min(most)
        }
    };
    (measured + p.warm_up_slots, p.warm_up_slots)
}

/// How long a trial's slots take.
pub(super) fn estimate(spec: &TrialSpec) -> Nanos {
    let p = match &spec.measure {
        Measure::PingPong(p) => p,
        Measure::Flow(f) => return f.whole(),
    };
    match (p.length, spec.rate) {
        (_, Rate::Period(period)) => Nanos(slots(spec).0 as i64 * period.0),
        (Length::Duration(d), Rate::Max) => d,
        (Length::Slots(n), Rate::Max) => Nanos(n as i64 * 50_000),
    }
}

/// How long the ends of a trial are up once they have met: the quiet interval and the slots.
pub(super) fn takes(spec: &TrialSpec) -> Nanos {
    Nanos(estimate(spec).0 + proof::quiet(spec).0)
}

/// The longest that a trial may take: every answer of stop-and-wait lost, or a sender that falls behind.
fn limit(spec: &TrialSpec) -> Duration {
    let p = match &spec.measure {
        Measure::PingPong(p) => p,
        Measure::Flow(f) => return flow::limit(f),
    };
    let slots = slots(spec).0 as i64;
    let worst = match (p.length, spec.rate) {
        (Length::Slots(_), Rate::Max) => slots.saturating_mul(p.timeout.0).min(24 * 3_600 * 1_000_000_000),
        (Length::Duration(d), Rate::Max) => d.0 + p.warm_up_slots as i64 * p.timeout.0,
        _ => estimate(spec).0.saturating_mul(2),
    };
    Nanos(worst.saturating_add(4 * p.timeout.0)).duration() + Duration::from_secs(30)
}

/// Everything that one trial needs to know.
pub(super) struct TrialContext<'a> {
    pub plan: &'a Plan,
    pub trial: &'a Trial,
    pub run_id: &'a str,
    pub housekeeping: &'a CpuList,
    pub journal: &'a Journal,
    pub stop: &'a Stop,
}

/// What a trial came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub answered: u64,
    pub scheduled: u64,
    /// Times about the latest answers.
    late: Vec<(i64, i64)>,
    /// Of those, how many went out.
    pub sent: u64,
    /// Packets that there must be where messages wait for others to fill one; `None` = one for each message.
    pub batches: Option<u64>,
}

/// What is known of one agent's part while the trial goes on.
pub(super) struct Part {
    pub roles: Vec<Role>,
    pub order: Order,
    prepared: Prepared,
    pub incoming: Vec<Incoming>,
    /// Clock readings that came with drained rows.
    pub track: OffsetTrack,
    pub done: Option<Done>,
    pub lost: Option<String>,
    /// It could not even open: why.
    failed: Option<Failed>,
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
    let dir = std::path::absolute(record.dir()).unwrap_or_else(|_| record.dir().to_owned());
    let streams = standing.streams(spec)?;
    let mut parts: Vec<Part> = standing
        .agents
        .iter()
        .map(|(roles, _)| {
            let order = Order { streams: streams.clone(), ..order(context, spec, roles, standing, &dir) };
            let incoming = roles.iter().map(|role| Incoming::new(*role)).collect();
            let (prepared, track) = (Prepared::default(), OffsetTrack::new());
            Part { roles: roles.clone(), order, prepared, incoming, track, done: None, lost: None, failed: None }
        })
        .collect();
    let before: Vec<BTreeMap<String, i64>> = (0..standing.lab.places()).map(|end| standing.lab.counters(end)).collect();
    record.manifest.trials[id].status = TrialStatus::Running;
    record.manifest.trials[id].path = Some(standing.path.clone());
    if let Some(settings) = standing.settings.and_then(|i| record.manifest.host_settings.get_mut(i)) {
        settings.trials.push(id);
    }
    record.event(Event::TrialBegan { trial: id, condition: context.trial.condition })?;
    record.save()?;

    tokio::select! {
        prepared = prepare(&mut parts, standing) => prepared?,
        () = context.stop.wait() => return Ok(None),
    }
    if let Some(failed) = hopeless(context, &parts, record) {
        return Err(failed.into());
    }
    for part in &parts {
        record_prepared(record, id, part)?;
    }
    let unmatched = unmatched(&parts, spec);
    let met = unmatched.is_none() && parts.iter().all(|p| p.lost.is_none());
    let silence = if met { proof::quiet(spec) } else { Nanos(0) };
    let watch = tokio::select! {
        watch = proof::Watch::begin(standing, silence) => watch,
        () = context.stop.wait() => return Ok(None),
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    record.manifest.trials[id].began_unix_ns = Some(now.as_nanos() as i64);
    let deadline = Instant::now() + limit(spec);
    tokio::select! {
        measured = measure(&mut parts, &mut standing.agents, &dir, unmatched.is_some(), deadline) => measured?,
        () = context.stop.wait() => return Ok(None),
    }
    let spaces = watch.end(standing);
    let after: Vec<BTreeMap<String, i64>> = (0..standing.lab.places()).map(|end| standing.lab.counters(end)).collect();

    let mut outcome = Outcome::default();
    let ping = parts.iter().flat_map(|p| p.done.iter().flat_map(|d| &d.ends)).find(|e| e.name == Role::Ping.word());
    let slot_0_ns = ping.map_or(0, |e| e.t0_ns);
    for (part, (_, agent)) in parts.iter_mut().zip(&mut standing.agents) {
        store_part(record, &dir, part, agent, (unmatched.is_some(), slot_0_ns), &mut outcome).await?;
    }
    if spec.attribution == Attribution::On && !outcome.late.is_empty() {
        store_switches(record, &parts, standing, &outcome.late).await?;
    }
    for warning in unheard(&parts) {
        record.warn(warning.at_trial(id))?;
    }
    for end in 0..after.len() {
        let name = proof::name(end);
        let change = after[end].iter().map(|(k, v)| (k.clone(), v - before[end].get(k).unwrap_or(&0))).collect();
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
    for text in standing.knobs.verify() {
        let mend = "keep others from setting it while measuring: tuned, irqbalance, a second run";
        record.warn(Warning::new("host_setting_changed", Severity::Invalid, text, mend).at_trial(id))?;
    }
    let invalid = record.manifest.warnings.iter().any(|w| w.trial == Some(id) && w.severity == Severity::Invalid);
    record.manifest.trials[id].status = if invalid { TrialStatus::Invalid } else { TrialStatus::Valid };
    record.event(Event::TrialEnded { trial: id, scheduled: outcome.scheduled, answered: outcome.answered })?;
    record.save()?;
    finish(&parts, standing, context.journal).await;
    Ok(Some(outcome))
}

/// What keeps an end from opening ends the run, unless another condition may fare better.
fn hopeless(context: &TrialContext<'_>, parts: &[Part], record: &RecordWriter) -> Option<Failed> {
    let failed = parts.iter().find_map(|p| p.failed.clone())?;
    let others = context.plan.conditions.iter().filter(|c| c.not_possible.is_none()).count() > 1;
    let measured = record.manifest.trials.iter().any(|t| t.status == TrialStatus::Valid);
    (!others && !measured).then_some(failed)
}

fn order(
    context: &TrialContext<'_>,
    spec: &TrialSpec,
    roles: &[Role],
    standing: &Standing,
    dir: &std::path::Path,
) -> Order {
    let (slots, warm_up) = slots(spec);
    let ring = (spec.collect == Collect::Live).then(|| live::ring_cells(spec));
    let ends = roles
        .iter()
        .map(|role| {
            let end = if *role == Role::Ping { &spec.ping } else { &spec.pong };
            let options = standing.lab.end(standing.place_of(*role)).driver_options.clone();
            EndOrder { role: *role, options, scheduling: end.scheduling.clone() }
        })
        .collect();
    let duration_ns = match (&spec.measure, spec.rate) {
        (Measure::PingPong(PingPong { length: Length::Duration(d), .. }), Rate::Max) => Some(d.0),
        _ => None,
    };
    let limit_ns = limit(spec).as_nanos() as i64 + proof::quiet(spec).0;
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
        match_timeout_ns: MATCH_TIMEOUT.0,
        limit_ns,
        driver_path: None,
        rescue: dir.to_str().map(str::to_owned),
        housekeeping: context.housekeeping.clone(),
        streams: Vec::new(),
    }
}

/// Orders go out to all before the first answer is awaited: ends match each other while they prepare.
async fn prepare(parts: &mut [Part], standing: &mut Standing) -> Result<(), RunError> {
    let deadline = Instant::now() + MATCH_TIMEOUT.duration() + Duration::from_secs(50);
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

fn record_prepared(record: &mut RecordWriter, id: usize, part: &Part) -> Result<(), RunError> {
    for warning in &part.prepared.warnings {
        record.warn(warning.clone().at_trial(id))?;
    }
    if let Some(driver) = &part.prepared.driver {
        record.manifest.drivers.entry(part.order.spec.driver.name.clone()).or_insert_with(|| driver.clone());
    }
    let host = record.manifest.hosts.keys().next().cloned().unwrap_or_default();
    for end in &part.prepared.ends {
        let entry = record.manifest.trials[id].ends.entry(end.name.clone()).or_default();
        *entry = EndRecord {
            host: host.clone(),
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
    Some(format!("{} never met its peer over {} within {MATCH_TIMEOUT}: {}", why.0, spec.path, why.1))
}

async fn store_part(
    record: &mut RecordWriter,
    dir: &std::path::Path,
    part: &mut Part,
    agent: &mut Agent,
    (unmatched, slot_0_ns): (bool, i64),
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
        if part.order.spec.measure.flow().is_some_and(|f| f.rows == FlowRows::None) {
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
            let text = format!(
                "the wall clock was stepped by {} between {} and {} after slot 0: kernel stamps in that window cannot be used",
                Nanos(window.step_ns),
                Nanos(window.from_ns - slot_0_ns),
                Nanos(window.to_ns - slot_0_ns)
            );
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
    for (part, (_, agent)) in parts.iter().zip(&mut standing.agents) {
        if part.done.is_none() || agent.send(Message::Switches(late.to_vec())).await.is_err() {
            continue;
        }
        if let Ok(Message::Switched(seen)) = agent.message(deadline).await {
            record.switches(part.order.trial, &agent.name, &seen)?;
        }
    }
    Ok(())
}

/// A load that was not there for as long as it was to: the figures are of something else.
fn fell_short(load: &LoadDone) -> Option<Warning> {
    let text = format!("the load `{}` was not there as long as it was to: {}", load.run, load.failed.as_ref()?);
    let mend = "give it a `duration` that it keeps, or mend its command";
    Some(Warning::new("load_fell_short", Severity::Invalid, text, mend).at_end(load.at.clone()))
}

/// Loads of which nothing arrived.
fn unheard(parts: &[Part]) -> Vec<Warning> {
    let loads: Vec<&LoadDone> = parts.iter().flat_map(|p| &p.done).flat_map(|d| &d.loads).collect();
    let all = |load: &LoadDone, part: LoadPart| -> u64 {
        loads.iter().filter(|l| l.run == load.run && l.part == Some(part)).filter_map(|l| l.messages).sum()
    };
    let unheard = loads.iter().filter(|l| l.part == Some(LoadPart::Receives) && l.failed.is_none());
    let unheard = unheard.filter(|l| all(l, LoadPart::Receives) == 0 && all(l, LoadPart::Sends) > 0);
    let warning = |l: &&LoadDone| {
        let text = format!("of the load `{}` {} messages were sent and none arrived", l.run, all(l, LoadPart::Sends));
        Warning::new("load_fell_short", Severity::Invalid, text, "look at what the path carries, and how much")
            .at_end(l.at.clone())
    };
    unheard.map(warning).collect()
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
async fn finish(parts: &[Part], standing: &mut Standing, journal: &Journal) {
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
