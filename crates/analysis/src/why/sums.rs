//! Sums over the incidents of a condition: how much each cause accounts for, where messages were lost, and runs of late
//! messages.

use crate::why::drops::Reason;
use crate::why::share::Key;
use crate::why::{Explained, TrialFacts, drops};
use std::collections::{BTreeMap, BTreeSet};
use tailbound_document::*;
use tailbound_model::MissWindow;
use tailbound_record::TrialIncidents;

/// What delays are added up by. A program may have many threads with names and ids of their own, so that the sum has the
/// name of the process, and no thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sum {
    pub cause: CauseWord,
    pub end: &'static str,
    pub by: Option<CausedBy>,
}

impl Sum {
    /// The sum to which an entry of a ledger with this key belongs.
    pub fn of(key: &Key) -> Sum {
        let program = |by: CausedBy| CausedBy { name: by.process.unwrap_or(by.name), process: None, tid: None, ..by };
        Sum { cause: key.cause, end: key.end, by: key.by.clone().map(program) }
    }
}

/// Adds the sums over all trials to the report of a condition. `incidents` are the incidents that have details.
pub(crate) fn add(
    condition: &mut ConditionReport,
    trials: &[&TrialFacts],
    incidents: &[Explained],
    window: MissWindow,
) {
    let found: Vec<_> = trials.iter().filter_map(|t| Some((t.trial, t.found.as_ref()?))).collect();
    condition.losses = losses(trials);
    condition.misses = misses(trials, window);
    if found.is_empty() {
        return;
    }
    let limit = |(trial, f): &(usize, &TrialIncidents)| LateLimit {
        trial: *trial,
        limit_ns: f.rule.limit_ns,
        median_ns: f.rule.median_ns,
        late_share: f.found.late as f64 / f.slots.max(1) as f64,
    };
    condition.late_limits = found.iter().map(limit).collect();
    let (totals, causes) = totals(found.iter().map(|(_, found)| *found), incidents);
    condition.causes = causes;
    condition.incident_totals = Some(totals);
}

/// How many incidents the trials have and how long they took, and the time by cause, over those incidents whose delay could be
/// divided among causes.
pub(crate) fn totals<'a>(
    found: impl Iterator<Item = &'a TrialIncidents>,
    incidents: &[Explained],
) -> (IncidentTotals, Vec<CauseShare>) {
    let mut totals = IncidentTotals::default();
    for of_trial in found {
        totals.incidents += of_trial.found.count;
        totals.late += of_trial.found.late;
        totals.lost += of_trial.found.lost;
        totals.excess_ns += of_trial.found.excess_ns;
    }
    for incident in incidents.iter().map(|e| &e.report).filter(|i| i.ledger.is_some()) {
        totals.covered_ns += incident.excess_ns;
        totals.unexplained_ns += incident.unexplained_ns.max(0);
    }
    (totals, causes(incidents, totals.covered_ns))
}

/// Sums and maxima over the trials that have messages; `None` if no trial has one.
fn misses(trials: &[&TrialFacts], MissWindow { m, k }: MissWindow) -> Option<MissesReport> {
    let of = || trials.iter().map(|t| &t.misses).filter(|misses| misses.messages > 0);
    Some(MissesReport {
        longest_run: of().map(|misses| misses.longest_run).max()?,
        m_of_k: MOfK { m, k, violated_windows: of().map(|misses| misses.violated_windows).sum() },
        longest_recovery_ns: of().filter_map(|misses| misses.longest_recovery_ns).max(),
        unrecovered_trials: of().filter(|misses| misses.unrecovered_ns().is_some()).count() as u64,
    })
}

/// Number of delayed threads that the sum of a cause names.
const DELAYED_NAMED: usize = 4;

/// Name, role and CPU of a delayed thread, as far as they are known.
type Delayed = (Option<String>, Option<String>, Option<u32>);

/// What is added up for one cause.
#[derive(Default)]
struct OfCause {
    ns: i64,
    proven_ns: i64,
    incidents: u64,
    /// Time of each delayed thread on each CPU, by name, role and CPU, as far as it was seen or counted.
    delayed: BTreeMap<Delayed, i64>,
}

impl OfCause {
    /// The delayed threads, the one with the largest time first.
    fn delayed(self) -> Vec<DelayedThread> {
        let of = |((thread, role, cpu), ns)| DelayedThread { thread, role, cpu, ns };
        let mut all: Vec<DelayedThread> = self.delayed.into_iter().map(of).collect();
        all.retain(|one| one.thread.is_some() || one.cpu.is_some());
        all.sort_by_key(|one| std::cmp::Reverse(one.ns));
        all.truncate(DELAYED_NAMED);
        all
    }
}

/// Sums by cause, end and program.
fn causes(incidents: &[Explained], covered_ns: i64) -> Vec<CauseShare> {
    let mut sums: BTreeMap<Sum, OfCause> = BTreeMap::new();
    for incident in incidents {
        let mut of_incident: BTreeSet<Sum> = BTreeSet::new();
        for (entry, delayed) in incident.entries.iter().zip(&incident.delayed).filter(|(e, _)| e.low_ns > 0) {
            let key = Sum::of(&entry.key);
            let sum = sums.entry(key.clone()).or_default();
            sum.ns += entry.low_ns;
            if matches!(entry.evidence, Evidence::Seen | Evidence::Counted) {
                sum.proven_ns += entry.low_ns;
                let thread = (delayed.thread.clone(), delayed.role.clone(), delayed.cpu);
                *sum.delayed.entry(thread).or_default() += entry.low_ns;
            }
            of_incident.insert(key);
        }
        for key in of_incident {
            sums.entry(key).or_default().incidents += 1;
        }
    }
    let share = |(Sum { cause, end, by }, sum): (Sum, OfCause)| CauseShare {
        cause,
        end: Some(end.to_owned()),
        by,
        ns: sum.ns,
        share: sum.ns as f64 / covered_ns.max(1) as f64,
        incidents: sum.incidents,
        explains: cause.explains(),
        proven_ns: sum.proven_ns,
        delayed: sum.delayed(),
    };
    let mut causes: Vec<CauseShare> = sums.into_iter().map(share).collect();
    causes.sort_by_key(|c| std::cmp::Reverse(c.ns));
    causes
}

fn losses(trials: &[&TrialFacts]) -> Vec<LossReport> {
    let mut sums: BTreeMap<(LossPlace, Option<Reason>), u64> = BTreeMap::new();
    trials.iter().flat_map(|t| &t.read.lost.0).for_each(|(at, count)| *sums.entry(at.clone()).or_default() += count);
    let report = |((place, reason), count): ((LossPlace, Option<Reason>), u64)| {
        let end = if place == LossPlace::OnTheWayOut { "pong" } else { "ping" };
        LossReport {
            place,
            count,
            reason: reason.as_ref().map(|reason| drops::words(reason, end)),
            kind: reason.as_ref().map(drops::kind),
            evidence: match reason {
                Some(Reason::Counted(..)) => Evidence::Counted,
                // The gate counts all packets, also of other senders, over the whole trial.
                Some(Reason::Policed(_)) => Evidence::AtMost,
                // By the schedule, without a report of the kernel.
                Some(Reason::OutsideWindow) => Evidence::Inferred,
                _ => Evidence::Seen,
            },
        }
    };
    sums.into_iter().map(report).collect()
}
