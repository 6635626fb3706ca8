//! Parts of a delay with their causes, and what is known about a trial.

use crate::why::course::Piece;
use crate::why::guest::Guest;
use crate::why::threads::Threads;
use tailbound_document::{CauseWord, CausedBy, Evidence};
use tailbound_model::{Counter, CounterMove, CounterSeries, Metric, Switches};

/// What one part of a delay is ascribed to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub cause: CauseWord,
    pub leg: Metric,
    pub end: &'static str,
    pub cpu: Option<u32>,
    pub thread: Option<i32>,
    pub by: Option<CausedBy>,
}

/// A time span of a delay with its cause. The lower end of its time is at most the length of the span; it is 0 if only an
/// upper bound is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    pub key: Key,
    pub from_ns: i64,
    pub to_ns: i64,
    pub low_ns: i64,
    pub high_ns: i64,
    pub evidence: Evidence,
}

impl Share {
    /// The same share, which is no better known than `evidence` says.
    pub fn no_better_known(&self, evidence: Evidence) -> Share {
        let low_ns = if evidence == Evidence::AtMost { 0 } else { self.low_ns };
        Share { evidence: self.evidence.max(evidence), low_ns, ..self.clone() }
    }
}

/// Everything that is known about one trial, from which the causes of time spans follow.
pub(crate) struct Circumstances<'a> {
    pub threads: &'a Threads<'a>,
    pub seen: &'a [Switches],
    /// Begin and end of the incidents of the trial, monotonic ns.
    pub incidents: &'a [(i64, i64)],
    /// The guests in which ends run, if their threads on the host are recorded.
    pub guests: &'a [Guest],
}

impl<'a> Circumstances<'a> {
    /// What the agent of this end recorded.
    pub fn of_end(&self, end: &str) -> impl Iterator<Item = &'a Switches> {
        self.seen.iter().filter(move |s| s.ends.iter().any(|e| e == end))
    }

    /// The increases of the steal time of a CPU that were counted at this end.
    pub fn steal_moves(&self, end: &str, cpu: u32) -> impl Iterator<Item = &'a CounterMove> {
        let of = CounterSeries::of_cpu(cpu);
        let all = self.of_end(end).flat_map(|s| &s.counters).filter(|c| c.counter == Counter::StealNs);
        all.filter(move |c| c.of == of).flat_map(|c| &c.moves)
    }

    fn quotas(&self, end: &str) -> impl Iterator<Item = &'a CounterSeries> {
        self.of_end(end).flat_map(|s| &s.counters).filter(|c| c.counter == Counter::QuotaThrottledNs)
    }

    /// The stops by the CPU quota that the kernel counted at this end. It counts the time of a stop when the stop ends.
    pub fn quota_moves(&self, end: &str) -> impl Iterator<Item = &'a CounterMove> {
        self.quotas(end).flat_map(|c| &c.moves)
    }

    /// Whether a stop by the CPU quota can have been in this time.
    pub fn quota_may_have_stopped(&self, end: &str, from_ns: i64, to_ns: i64) -> bool {
        let left_out = |s: &CounterSeries| s.complete_from_ns.is_some_and(|complete| from_ns < complete);
        self.quotas(end).any(left_out)
            || self.quota_moves(end).any(|m| m.from_ns.saturating_sub(m.by as i64) < to_ns && from_ns < m.to_ns)
    }
}

/// The entry of the ledger to which a part of the delay belongs, if it has this cause.
pub(crate) fn key(part: &Piece, cause: CauseWord, cpu: Option<u32>, by: Option<CausedBy>) -> Key {
    Key { cause, leg: part.leg, end: part.end, cpu, thread: (part.thread != 0).then_some(part.thread), by }
}

/// A share that ascribes the whole time of a part of the delay to one cause.
pub(crate) fn whole(
    part: &Piece,
    cause: CauseWord,
    cpu: Option<u32>,
    by: Option<CausedBy>,
    evidence: Evidence,
) -> Share {
    let ns = part.to_ns - part.from_ns;
    let low_ns = if evidence == Evidence::AtMost { 0 } else { ns };
    Share { key: key(part, cause, cpu, by), from_ns: part.from_ns, to_ns: part.to_ns, low_ns, high_ns: ns, evidence }
}
