//! Recovers the gate schedules that messages met on their way, for each trial and direction.
//!
//! Input: the samples of the trials whose ends have one clock, and the schedules that the kernel reported, if there are any.
//! Output: the schedule of each way, or the reason why there is none, beside the configured one.

use crate::clocks::has_one_clock;
use crate::{gates, names};
use tailbound_gates::{ConfiguredGate, Gate, NotRecovered, Probe, Recovery, recover};
use tailbound_model::NO_TIME;
use tailbound_record::{Record, RecordError, SlotBatch, Source};

/// The gate on the way of the messages of one end, in one trial.
#[derive(Debug)]
pub struct RecoveredGate {
    /// Name of the condition.
    pub condition: String,
    /// Number of the trial.
    pub trial: usize,
    /// End that sent the messages: `ping` (the way out) or `pong` (the way back).
    pub end: &'static str,
    /// Number of messages that were sent and did not arrive.
    pub lost: u64,
    /// The schedule of the gate, or the reason why it was not recovered.
    pub found: Result<Recovery, NotRecovered>,
    /// The schedule that the kernel reported, if the end has gates and a schedule was recovered.
    pub configured: Option<ConfiguredGate>,
}

/// The gates on the ways of the messages of a record.
#[derive(Debug)]
pub struct RecoveredGates {
    /// One for each trial and direction.
    pub ways: Vec<RecoveredGate>,
    /// Number of trials that were left out, because their ends have different clocks.
    pub other_clocks: usize,
}

/// Recovers the gate schedules of a record. A way without a message that arrived is left out, and so are messages of the warm-up.
///
/// # Errors
/// The samples of a trial are damaged.
pub fn recover_gates(record: &Record) -> Result<RecoveredGates, RecordError> {
    let (plan, names) = (&record.manifest.plan, names::names(&record.manifest.plan));
    let mut found = RecoveredGates { ways: Vec::new(), other_clocks: 0 };
    for trial in record.manifest.trials.iter().filter(|t| t.source == Source::Samples && record.has_slots(t.id)) {
        if !has_one_clock(record, trial.id) {
            found.other_clocks += 1;
            continue;
        }
        let Some(id) = plan.trials.iter().find(|planned| planned.id == trial.id).map(|planned| planned.condition)
        else {
            continue;
        };
        let mut ways = [Way::default(), Way::default()];
        record.scan(trial.id, &gates::columns(), &mut |batch| {
            ways.iter_mut().zip([true, false]).for_each(|(way, out)| way.add(batch, out));
        })?;
        let configured = gates::of_trial(record, trial.id, &plan.conditions[id].spec);
        for (end, way) in ["ping", "pong"].into_iter().zip(ways).filter(|(_, way)| !way.probes.is_empty()) {
            let gate = configured.iter().find(|(name, _)| name == end).map(|(_, gate)| gate);
            let lost = way.sent.saturating_sub(way.probes.len() as u64);
            let (recovered, beside) = beside(recover(&way.probes), gate);
            found.ways.push(RecoveredGate {
                condition: names[id].clone(),
                trial: trial.id,
                end,
                lost,
                found: recovered,
                configured: beside,
            });
        }
    }
    Ok(found)
}

type Found = Result<Recovery, NotRecovered>;

fn beside(found: Found, gate: Option<&Gate>) -> (Found, Option<ConfiguredGate>) {
    match (found, gate) {
        (Ok(recovery), Some(gate)) => {
            let (recovery, configured) = recovery.beside(gate);
            (Ok(recovery), Some(configured))
        }
        (found, _) => (found, None),
    }
}

/// The messages of a way.
#[derive(Default)]
struct Way {
    probes: Vec<Probe>,
    sent: u64,
}

impl Way {
    fn add(&mut self, batch: &SlotBatch, out: bool) {
        let sent = if out { &batch.send_begin_ns } else { &batch.echo_begin_ns };
        let is_measured = |i: &usize| !batch.warm_up[*i];
        self.sent += (0..sent.len()).filter(is_measured).filter(|i| sent[*i] != NO_TIME).count() as u64;
        let ways = batch.ways(out).filter(|(i, ..)| is_measured(i));
        self.probes.extend(ways.map(|(_, sent_ns, arrived_ns)| Probe { sent_ns, arrived_ns }));
    }
}
