//! The steps that trials of drivers and trials of tools have in common: order, begin, prepare, end, finish.

use super::active_lab::ActiveLab;
use super::agent_protocol::Lost;
use super::context::RunContext;
use super::trial_length::{limit, quiet, slots};
use super::trial_state::{Part, TrialContext, TrialResult};
use super::{RunError, cpu_plan, discovery, flow, free_cpus, host_watch, security};
use crate::live_collect;
use std::path::Path;
use std::time::Duration;
use tailbound_model::*;
use tailbound_record::*;
use tailbound_wire::*;
use tokio::time::Instant;

/// Writes into the record that a trial begins, with the facts that are known before it.
pub(super) fn begin(context: &TrialContext<'_>, lab: &ActiveLab, record: &mut RecordWriter) -> Result<(), RunError> {
    let (id, spec) = (context.trial.id, context.spec());
    record.manifest.trial_mut(id).status = TrialStatus::Running;
    let discovery = (!spec.has_tool()).then(|| discovery::facts(spec, lab));
    record.manifest.trial_mut(id).path =
        Some(PathFacts { discovery, security: security::facts(spec), ..lab.path.clone() });
    if let Some(settings) = lab.settings.and_then(|i| record.manifest.host_settings.get_mut(i)) {
        settings.trials.push(id);
    }
    record.event(Event::TrialBegan { trial: id, condition: context.trial.condition })?;
    Ok(record.save()?)
}

/// Writes into the record that a trial has ended, and whether it is valid.
pub(super) fn end(id: usize, lab: &ActiveLab, record: &mut RecordWriter, result: &TrialResult) -> Result<(), RunError> {
    for text in lab.changed() {
        let remedy = "prevent other programs, for example tuned, irqbalance or a second run of Tailbound, from changing the \
             setting during a measurement";
        record.warn(Warning::new("host_setting_changed", Severity::Invalid, text, remedy).at_trial(id))?;
    }
    let invalid = record.manifest.warnings.iter().any(|w| w.trial == Some(id) && w.severity == Severity::Invalid);
    record.manifest.trial_mut(id).status = if invalid { TrialStatus::Invalid } else { TrialStatus::Valid };
    record.event(Event::TrialEnded { trial: id, scheduled: result.scheduled, answered: result.answered })?;
    record.save()?;
    Ok(())
}

/// Failure of an end that could not open, if this failure ends the run: the plan has no other condition, and no trial
/// was valid so far.
pub(super) fn ends_run(context: &TrialContext<'_>, parts: &[Part], record: &RecordWriter) -> Option<Failed> {
    let failed = parts.iter().find_map(|p| p.failed.clone())?;
    let others = context.plan.conditions.iter().filter(|c| c.not_possible.is_none()).count() > 1;
    let measured = record.manifest.trials.iter().any(|t| t.status == TrialStatus::Valid);
    (!others && !measured).then_some(failed)
}

/// Makes the order to prepare a trial, for an agent whose ends have the given roles (for example ping).
pub(super) fn order(context: &TrialContext<'_>, roles: &[Role], lab: &ActiveLab, dir: &Path) -> Order {
    let spec = context.spec();
    let (slots, warm_up) = match roles[0] {
        Role::Publisher(_) => (0, 0),
        _ => slots(spec),
    };
    let end_order = |role: &Role| EndOrder {
        role: *role,
        options: discovery::options(spec, lab.place_of(*role), lab),
        security: context.run.security.of(spec, *role),
    };
    let host = lab.host_of(roles[0]);
    let named_cpus = cpu_plan::named_cpus_at(spec, !roles[0].receives());
    let housekeeping = match host {
        Some(h) if h.place.is_remote() || !context.housekeeping.0.iter().all(|cpu| h.cpus.contains(cpu)) => {
            cpu_plan::housekeeping_of(&named_cpus, &h.cpus)
        }
        _ => context.housekeeping.clone(),
    };
    let place = if roles[0].receives() { &spec.pong.place } else { &spec.ping.place };
    let gates_of_ping = lab.path.ends.first().and_then(|ping| ping.gates.as_ref());
    // Tools send by CLOCK_TAI.
    let stream_card = gates_of_ping.and_then(|gates| gates.hardware_clock).filter(|_| !spec.has_tool());
    Order {
        run_id: context.run.run_id.clone(),
        trial: context.trial.id,
        ends: roles.iter().map(end_order).collect(),
        slots,
        warm_up,
        duration_ns: match (&spec.measure, spec.rate) {
            (Measure::PingPong(PingPong { length: Length::Duration(d), .. }), Rate::Max) => Some(d.0),
            _ => None,
        },
        ring: (spec.collect == Collect::Live).then(|| match context.until {
            Some(_) => live_collect::smallest_ring_cells(spec),
            None => live_collect::ring_cells(spec),
        }),
        match_timeout_ns: flow::match_timeout(spec).0,
        limit_ns: limit(spec).as_nanos() as i64 + quiet(spec).0,
        driver_path: None,
        // Only an agent on this host reaches the record.
        rescue: dir.to_str().filter(|_| host.is_none()).map(str::to_owned),
        free: free_cpus::free(spec, place, &housekeeping),
        housekeeping,
        allowed: if host.is_none() { context.allowed.clone() } else { CpuList::default() },
        // An agent on this host records the threads of the guests there.
        guest_cpus: if host.is_none() { cpus_of_few(host_watch::guest_cpus(lab)) } else { CpuList::default() },
        late_above_ns: context.plan.report.late_above.map(|limit| limit.0),
        figures: context.run.figures,
        tool: None,
        streams: Vec::new(),
        neighbour_of: None,
        stream_base_ns: gates_of_ping.map_or(0, |gates| stream_base_ns(gates, stream_card.is_some())),
        stream_card,
        spec: if roles.iter().all(|r| r.receives()) { spec.of_pong() } else { spec.clone() },
    }
}

/// Begin of a gate schedule that the kernel reported, ns of the clock of the stream: the clock of the schedule, or CLOCK_TAI. If the
/// schedule is on another clock than CLOCK_TAI, that clock is converted as it was read before the trial.
fn stream_base_ns(gates: &GatesFact, is_by_card: bool) -> i64 {
    if gates.clock == libc::CLOCK_TAI || is_by_card {
        return gates.base_ns;
    }
    let tai = tailbound_host::clock::read_offset_with(tailbound_host::monotonic_ns, tailbound_host::clock::tai_ns);
    gates.base_ns - gates.ahead_ns + tai.offset_ns
}

/// These CPUs if there are few of them, otherwise none: the events of many CPUs would displace the events of the ends.
fn cpus_of_few(cpus: CpuList) -> CpuList {
    const MOST: usize = 8;
    if cpus.0.len() <= MOST { cpus } else { CpuList::default() }
}

/// Sends the orders to all agents, then waits for their answers, because the ends match each other while they prepare.
/// Agents that fail are marked as lost.
pub(super) async fn prepare(parts: &mut [Part], lab: &mut ActiveLab) -> Result<(), RunError> {
    let matching = parts.iter().map(|p| p.order.match_timeout_ns).max().unwrap_or(0);
    let deadline = Instant::now() + Nanos(matching).duration() + Duration::from_secs(50);
    for (part, (_, agent)) in parts.iter_mut().zip(&mut lab.agents) {
        agent.bytes_while_silent = 0;
        if let Err(lost) = agent.send(Message::Prepare(Box::new(part.order.clone()))).await {
            part.lost = Some(lost.to_string());
        }
    }
    for (part, (_, agent)) in parts.iter_mut().zip(&mut lab.agents) {
        if part.lost.is_some() {
            continue;
        }
        let lost = match agent.message(deadline).await {
            Ok(Message::Prepared(prepared)) => {
                agent.map_memory(&prepared.memory_fds, &part.roles, part.order.ring.is_some());
                part.prepared = *prepared;
                continue;
            }
            Ok(Message::Failed(failed)) => {
                let lost = Lost::Reported(failed.problem.what.clone());
                part.failed = Some(failed);
                lost
            }
            Ok(other) => Lost::unexpected(&other, "`prepared`"),
            Err(lost) => lost,
        };
        tracing::warn!(agent = agent.name, trial = part.order.trial, %lost, "the agent did not prepare the trial");
        part.lost = Some(lost.to_string());
    }
    Ok(())
}

/// Ends the trial at the agents after the trial is stored. Agents that were lost are ended, and the next trial starts
/// new agents.
pub(super) async fn finish(parts: &[Part], lab: &mut ActiveLab, run: &RunContext) {
    let deadline = Instant::now() + Duration::from_secs(15);
    let mut kept = Vec::new();
    for (part, (roles, mut agent)) in parts.iter().zip(std::mem::take(&mut lab.agents)) {
        let mut usable = part.lost.is_none() && agent.send(Message::Finish).await.is_ok();
        while usable {
            match agent.frame(deadline).await {
                Ok(Frame::Message(m)) if *m == Message::Finished => break,
                Ok(_) => {}
                Err(_) => usable = false,
            }
        }
        agent.unmap_memory();
        if usable { kept.push((roles, agent)) } else { agent.end(run).await }
    }
    lab.agents = kept;
}
