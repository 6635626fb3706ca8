//! Finds how early messages must be due at the ping so that they reach the kernel in time, for a stated share of misses.
//!
//! Input: the samples of a condition with a rate: for each message the time from its due time to the return of its send call, that
//! is, the lateness of the wake-up and the duration of the send call. Output: a time that this is exceeded by at most the stated
//! share of messages, with 97.5 % confidence.

use crate::names;
use std::collections::BTreeMap;
use tailbound_gates::Gate;
use tailbound_model::{LaunchRefusal, NO_TIME, Nanos, Rate, StreamSpec, TrialSpec};
use tailbound_record::{Columns, Record, RecordError, SlotBatch, TrialStatus};
use tailbound_stats::{Exceedance, Quantile, interval_ranks_of_dependent, needs};

/// What a condition shows about the time that messages need until they are in the kernel.
#[derive(Debug)]
pub struct LeadAdvice {
    /// Name of the condition.
    pub condition: String,
    /// Number of messages of the valid trials, without the warm-up.
    pub messages: u64,
    /// Number of messages that were not sent. They count as later than all others.
    pub not_sent: u64,
    /// Equivalent number of independent messages.
    pub effective: u64,
    /// Shortest time from the due time to the return of the send call, ns; `i64::MAX` = no message was sent.
    pub least_ns: i64,
    /// Median of this time, ns; `i64::MAX` = half of the messages were not sent.
    pub median_ns: i64,
    /// The time, or the reason why there is none.
    pub lead: Result<Nanos, NoLead>,
    /// The windows of the gate of the ping, if it has one: for each window, the first and last time at which the frame may be
    /// sent after the begin of a cycle.
    pub windows: Vec<(Nanos, Nanos)>,
    /// Cycle of this gate; 0 = no gate.
    pub cycle: Nanos,
    /// Period of the messages.
    pub period: Nanos,
    /// The stream of the condition, if it has one.
    pub stream: Option<StreamSpec>,
    /// Number of messages that the queue refused because their launch time had passed, although they were in the kernel before the
    /// queue had to give them to the device: the queue released them too late, by a late timer or because the
    /// device queue was stopped, which no lead time prevents.
    pub late_timers: u64,
}

/// Why no time keeps the share of misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLead {
    /// Too few messages: at least this number is needed, and more if messages depend on each other.
    Needs(u64),
    /// More messages were not sent than may miss.
    NotSent,
}

/// Computes the advice for each condition with a rate and a valid trial.
///
/// # Errors
/// The samples of a trial are damaged.
pub fn lead_times(record: &Record, q: Quantile) -> Result<Vec<LeadAdvice>, RecordError> {
    let (plan, names) = (&record.manifest.plan, names::names(&record.manifest.plan));
    let mut found = Vec::new();
    for (id, condition) in plan.conditions.iter().enumerate() {
        let Rate::Period(period) = condition.spec.rate else { continue };
        let is_used = |trial: usize| {
            let valid = |t: &tailbound_record::TrialRecord| t.id == trial && t.status == TrialStatus::Valid;
            record.manifest.trials.iter().any(valid) && record.has_slots(trial)
        };
        let mut times = Times::default();
        let mut gate = None;
        for trial in plan.trials.iter().filter(|trial| trial.condition == id && is_used(trial.id)) {
            let launches = Launches::of(record, trial.id, &condition.spec);
            record.scan(trial.id, &Columns::of(&METRICS), &mut |batch| times.add(batch, launches.as_ref()))?;
            times.ends.push(times.ns.len());
            gate = gate.or_else(|| gate_of_ping(record, trial.id, &condition.spec));
        }
        if times.ns.is_empty() {
            continue;
        }
        let bound = times.bound(q);
        found.push(LeadAdvice {
            condition: names[id].clone(),
            messages: times.ns.len() as u64,
            not_sent: times.ns.iter().filter(|ns| **ns == NOT_SENT).count() as u64,
            effective: bound.effective,
            least_ns: bound.sorted[0],
            median_ns: bound.sorted[bound.sorted.len() / 2],
            lead: bound.lead,
            windows: gate.as_ref().map_or_else(Vec::new, windows),
            cycle: Nanos(gate.as_ref().map_or(0, Gate::cycle_ns)),
            period,
            stream: condition.spec.stream,
            late_timers: times.late_timers,
        });
    }
    Ok(found)
}

const METRICS: [tailbound_model::Metric; 2] =
    [tailbound_model::Metric::SendLateness, tailbound_model::Metric::SendDuration];

fn gate_of_ping(record: &Record, trial: usize, spec: &TrialSpec) -> Option<Gate> {
    let gates: BTreeMap<String, Gate> = crate::gates::of_trial(record, trial, spec).into_iter().collect();
    gates.get("ping").cloned()
}

fn windows(gate: &Gate) -> Vec<(Nanos, Nanos)> {
    gate.starts().into_iter().map(|(from_ns, to_ns)| (Nanos(from_ns), Nanos(to_ns))).collect()
}

/// Stands for a message that was not sent: later than everything.
const NOT_SENT: i64 = i64::MAX;

/// Times from the due time to the return of the send call, ns, in the order of the slots.
#[derive(Default)]
struct Times {
    ns: Vec<i64>,
    /// For each trial, the number of messages up to its end.
    ends: Vec<usize>,
    late_timers: u64,
}

/// The refused launch times of a trial.
struct Launches {
    /// Time from the due time of a message to the time at which the queue has to give it to the device, ns.
    due_in_queue_ns: i64,
    t0_ns: i64,
    period_ns: i64,
    /// Slots of messages whose launch time passed in the queue, in rising order.
    missed: Vec<u64>,
}

impl Launches {
    fn of(record: &Record, trial: usize, spec: &TrialSpec) -> Option<Launches> {
        let (launch, Rate::Period(period)) = (spec.stream?.launch?, spec.rate) else { return None };
        let done = record.manifest.trials.iter().find(|done| done.id == trial)?;
        let refused = done.stream.as_ref()?.refused.iter();
        Some(Launches {
            due_in_queue_ns: launch.lead.0 - launch.ahead.0,
            t0_ns: done.t0_ns?,
            period_ns: period.0.max(1),
            missed: refused.filter(|one| one.why == LaunchRefusal::Missed).map(|one| one.slot).collect(),
        })
    }

    /// True if the queue refused a message that it had in time.
    fn timer_was_late(&self, intended_ns: i64, sent_ns: i64) -> bool {
        let slot = u64::try_from((intended_ns - self.t0_ns + self.period_ns / 2) / self.period_ns);
        sent_ns != NO_TIME
            && sent_ns <= intended_ns + self.due_in_queue_ns
            && slot.is_ok_and(|slot| self.missed.binary_search(&slot).is_ok())
    }
}

struct BoundOf {
    lead: Result<Nanos, NoLead>,
    effective: u64,
    sorted: Vec<i64>,
}

impl Times {
    fn add(&mut self, batch: &SlotBatch, launches: Option<&Launches>) {
        for i in (0..batch.len()).filter(|i| !batch.warm_up[*i] && batch.intended_ns[*i] != NO_TIME) {
            let (intended_ns, sent_ns) = (batch.intended_ns[i], batch.send_end_ns[i]);
            self.late_timers += u64::from(launches.is_some_and(|all| all.timer_was_late(intended_ns, sent_ns)));
            self.ns.push(if sent_ns == NO_TIME { NOT_SENT } else { sent_ns.saturating_sub(intended_ns) });
        }
    }

    /// The upper end of the 95 % interval of the quantile, by order statistics, with as many messages as the dependent ones are
    /// worth.
    fn bound(&self, q: Quantile) -> BoundOf {
        let n = self.ns.len() as u64;
        let mut sorted = self.ns.clone();
        sorted.sort_unstable();
        let at = |rank: u64| sorted[usize::try_from(rank).unwrap_or(usize::MAX).clamp(1, sorted.len()) - 1];
        let threshold_ns = at(q.rank(n));
        let mut exceeded = Exceedance::new();
        let mut from = 0;
        for end in self.ends.iter().copied().chain([self.ns.len()]).filter(|end| *end > 0) {
            exceeded.push_all(&self.ns[from.min(end)..end], threshold_ns.min(NOT_SENT - 1));
            exceeded.end_sequence();
            from = end;
        }
        let effective = exceeded.effective().slots.clamp(1, n);
        let lead = match interval_ranks_of_dependent(n, effective, q) {
            Err(_) => Err(NoLead::Needs(needs(q))),
            Ok(ranks) if at(ranks.upper) == NOT_SENT => Err(NoLead::NotSent),
            Ok(ranks) => Ok(Nanos(at(ranks.upper))),
        };
        BoundOf { lead, effective, sorted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_stats::SplitMix64;

    fn unit(random: &mut SplitMix64) -> f64 {
        (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Test: the share of simulated records whose time is exceeded by more than the stated share of messages is 2.5 %, or as little
    /// above it as the documentation says, for independent times and for times that come in runs.
    #[test]
    fn the_time_keeps_the_share_of_misses() {
        const RECORDS: u64 = 1_000;
        let q: Quantile = Quantile::P99;
        for run in [1_u64, 20] {
            let mut missed = 0;
            for seed in 0..RECORDS {
                let random = &mut SplitMix64(seed);
                let mut times = Times::default();
                while times.ns.len() < 4_000 {
                    // Exponential with a mean of 50 us: the true quantile is known.
                    let ns = (-(1.0 - unit(random)).ln() * 50e3) as i64;
                    (0..run).for_each(|_| times.ns.push(ns));
                }
                let Ok(Nanos(bound)) = times.bound(q).lead else { continue };
                missed += u64::from((bound as f64) < -(0.01_f64).ln() * 50e3);
            }
            // 25 of 1,000 at 2.5 %, and three standard errors; for runs, the effective number is itself estimated.
            let most = if run == 1 { 40 } else { 70 };
            assert!(missed <= most, "{missed} of {RECORDS} with runs of {run}");
        }
    }

    #[test]
    fn a_message_that_the_queue_refused_although_it_had_it_in_time_shows_a_late_timer() {
        // Launch 1 ms after the due time, and 0.3 ms before it the queue gives the message to the device.
        let launches = Launches { due_in_queue_ns: 700, t0_ns: 5_000, period_ns: 10_000, missed: vec![1, 3] };
        let late = |slot: i64, sent_ns: i64| launches.timer_was_late(5_000 + slot * 10_000, sent_ns);
        assert!(late(1, 15_000 + 700) && late(3, 35_000));
        assert!(!late(1, 15_000 + 701), "the message itself was late");
        assert!(!late(2, 25_000), "it was sent");
        assert!(!late(1, NO_TIME) && !late(-1, -6_000));
    }

    #[test]
    fn too_few_messages_and_messages_that_were_not_sent_give_no_time() {
        let times = |n: i64, not_sent: usize| {
            let mut ns: Vec<i64> = (0..n).map(|k| 1_000 + (k * 7_919) % 10_007).collect();
            ns.iter_mut().step_by(50).take(not_sent).for_each(|ns| *ns = NOT_SENT);
            Times { ns, ..Times::default() }.bound(Quantile::P99).lead
        };
        assert_eq!(times(300, 0), Err(NoLead::Needs(368)));
        assert!(times(4_000, 0).is_ok_and(|lead| (10_900..=11_010).contains(&lead.0)));
        assert!(times(4_000, 5).is_ok());
        assert_eq!(times(4_000, 60), Err(NoLead::NotSent));
    }
}
