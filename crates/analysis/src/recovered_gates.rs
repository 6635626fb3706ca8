//! Recovers the gate schedules that messages met on their way, for each trial and direction.
//!
//! Input: the samples of the trials whose ends have one clock, and the schedules that the kernel reported, if there are any.
//! Output: the schedule of each way, or the reason why there is none, beside the configured one.

use crate::clocks::has_one_clock;
use crate::{gates, names};
use tailbound_gates::{ConfiguredGate, Gate, NotRecovered, Probe, Recovery, recover, used_send_times};
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
    /// Length of the time from which messages are used, from the first message that arrived, s.
    pub used_s: u64,
    /// Number of messages that were sent until the end of this time and did not arrive.
    pub lost: u64,
    /// Number of messages that arrived, but are not used, because they were sent after this time.
    pub left_out: u64,
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
            let part = way.part();
            let (recovered, beside) = beside(recover(&way.probes), gate);
            found.ways.push(RecoveredGate {
                condition: names[id].clone(),
                trial: trial.id,
                end,
                used_s: part.used_s,
                lost: part.lost,
                left_out: part.left_out,
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
    /// Send times of all messages, ns.
    sent_ns: Vec<i64>,
}

/// The part of the messages that is used, as in [`RecoveredGate`].
#[derive(Debug, PartialEq)]
struct Part {
    used_s: u64,
    lost: u64,
    left_out: u64,
}

impl Way {
    fn add(&mut self, batch: &SlotBatch, out: bool) {
        let sent = if out { &batch.send_begin_ns } else { &batch.echo_begin_ns };
        let is_measured = |i: &usize| !batch.warm_up[*i];
        self.sent_ns.extend((0..sent.len()).filter(is_measured).map(|i| sent[i]).filter(|ns| *ns != NO_TIME));
        let ways = batch.ways(out).filter(|(i, ..)| is_measured(i));
        self.probes.extend(ways.map(|(_, sent_ns, arrived_ns)| Probe { sent_ns, arrived_ns }));
    }

    fn part(&self) -> Part {
        let times = used_send_times(&self.probes);
        let used = self.probes.iter().filter(|probe| times.contains(&probe.sent_ns)).count();
        let sent = self.sent_ns.iter().filter(|ns| **ns < times.end).count();
        Part {
            used_s: (times.end.saturating_sub(times.start) / 1_000_000_000) as u64,
            lost: sent.saturating_sub(used) as u64,
            left_out: (self.probes.len() - used) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test: a message each second for 400 s. The first three, every tenth, and all after 300 s are lost.
    #[test]
    fn losses_are_counted_in_the_part_that_is_used() {
        let sent_ns: Vec<i64> = (0..400).map(|s| s * 1_000_000_000).collect();
        let arrives = |s: &usize| (3..300).contains(s) && !s.is_multiple_of(10);
        let probe = |s: usize| Probe { sent_ns: sent_ns[s], arrived_ns: sent_ns[s] + 1 };
        let way = Way { probes: (0..400).filter(arrives).map(probe).collect(), sent_ns: sent_ns.clone() };
        // Used: from 3 to 252 s. Lost: 0, 1, 2, 10, 20, …, 250 s. Left out: from 253 to 299 s without 260, 270, 280 and 290 s.
        assert_eq!(way.part(), Part { used_s: 250, lost: 28, left_out: 43 });
    }
}
