//! Causes of a wait for a CPU: the threads and interrupts that had the CPU, a limit of CPU time, or what a counter says.

use crate::why::course::Piece;
use crate::why::delays::delay;
use crate::why::interruptions::{divide, interrupted};
use crate::why::share::{Circumstances, Share, whole};
use crate::why::timeline::Timeline;
use tailbound_document::{CauseWord, Evidence};
use tailbound_model::{CounterMove, CpuLimit};

/// The share of a limit of CPU time, which certainly lasted until the time `free`.
pub(crate) fn limited_share(part: &Piece, (cpu, limit): (u32, CpuLimit), free: i64) -> Share {
    let share = whole(part, cause_of(limit), Some(cpu), None, Evidence::Seen);
    Share { to_ns: free, low_ns: free - part.from_ns, ..share }
}

fn cause_of(limit: CpuLimit) -> CauseWord {
    match limit {
        CpuLimit::Quota => CauseWord::CpuQuota,
        CpuLimit::RealTime => CauseWord::RtThrottled,
    }
}

/// The causes of a wait for a CPU: the threads and interrupts that had the CPU in this time.
pub(crate) fn waited(
    part: &Piece,
    (cpu, evidence): (u32, Evidence),
    timeline: &Timeline,
    known: &Circumstances,
    shares: &mut Vec<Share>,
) {
    if !timeline.sees_cpu(cpu) {
        return shares.extend(waited_unseen(part, (cpu, evidence), quota_at_most_ns(part, known)));
    }
    for (from, to, tid) in timeline.occupants(cpu, part.from_ns, part.to_ns) {
        for (from_ns, to_ns, by) in divide(from, to, &timeline.interrupts(cpu, from, to)) {
            let span = Piece { from_ns, to_ns, ..*part };
            let share = match by {
                Some(by) => interrupted(&span, cpu, by),
                // No thread had the CPU, so that something kept the thread from it that no event shows.
                None if tid == 0 => match idle(&span, (cpu, part.from_ns), timeline, known) {
                    Some((cause, evidence)) => whole(&span, cause, Some(cpu), None, evidence),
                    None => continue,
                },
                None => {
                    let (cause, by) = known.threads.had_the_cpu(tid);
                    whole(&span, cause, Some(cpu), Some(by), evidence)
                }
            };
            shares.push(if evidence == Evidence::AtMost { Share { low_ns: 0, evidence, ..share } } else { share });
        }
    }
}

/// The causes of a wait for a CPU whose threads are not recorded: another program, or a stop by the CPU quota, which took at
/// most the time `quota_ns`. The kernel adds up the stops of all CPUs, so that none of them is certain to concern this CPU.
fn waited_unseen(part: &Piece, (cpu, evidence): (u32, Evidence), quota_ns: i64) -> Vec<Share> {
    let waited = whole(part, CauseWord::WaitedForCpu, Some(cpu), None, evidence);
    if quota_ns == 0 {
        return vec![waited];
    }
    let quota = whole(part, CauseWord::CpuQuota, Some(cpu), None, Evidence::AtMost);
    let low_ns = (waited.low_ns - quota_ns).max(0);
    let evidence = if low_ns == 0 { Evidence::AtMost } else { Evidence::Counted };
    vec![Share { low_ns, evidence, ..waited }, Share { high_ns: quota_ns, ..quota }]
}

/// Largest part of a piece that stops by the CPU quota can have taken, ns.
fn quota_at_most_ns(piece: &Piece, known: &Circumstances) -> i64 {
    let within = |m: &CounterMove| {
        let stopped_ns = m.by as i64;
        let overlap = piece.to_ns.min(m.to_ns) - piece.from_ns.max(m.from_ns.saturating_sub(stopped_ns));
        overlap.clamp(0, stopped_ns)
    };
    known.quota_moves(piece.end).map(within).sum::<i64>().min(piece.to_ns - piece.from_ns)
}

/// The limit of CPU time because of which no thread had a CPU for which a thread had waited since `waits_since`.
fn idle(
    span: &Piece,
    (cpu, waits_since): (u32, i64),
    timeline: &Timeline,
    known: &Circumstances,
) -> Option<(CauseWord, Evidence)> {
    // The limit that made another thread leave the CPU also holds for this thread: it is ready, and the CPU is free.
    let limit = timeline.limit(cpu, waits_since, span.from_ns).map(|limit| (cause_of(limit), Evidence::Inferred));
    limit.or_else(|| quota_may_have_lasted(span, known).then_some((CauseWord::CpuQuota, Evidence::Counted)))
}

/// Whether the kernel counted, at the end of this piece or later, a stop by the CPU quota that can cover the whole piece.
fn quota_may_have_lasted(piece: &Piece, known: &Circumstances) -> bool {
    let covers = |m: &CounterMove| m.from_ns - m.by as i64 <= piece.from_ns && piece.to_ns <= m.to_ns;
    known.quota_moves(piece.end).any(covers)
}

/// The wait for a CPU at the end of a time in which a thread slept or waited, if the recorded events cannot tell which of
/// both: bounded by the counter of run delays of the thread. `None` if the counter says nothing.
pub(crate) fn hidden_wait(part: &Piece, timeline: &Timeline, known: &Circumstances) -> Option<Share> {
    let (came, cpu) = timeline.comes(part.thread, part.to_ns)?;
    let delay = delay(part.thread, part.end, came, timeline, known)?;
    // The wait ended when the thread got the CPU, which may have been after this part.
    let within = |ns: i64| (part.to_ns - part.from_ns.max(came.saturating_sub(ns))).max(0);
    let (low_ns, high_ns) = (within(delay.least_ns), within(delay.most_ns));
    let whole = whole(part, CauseWord::WaitedForCpu, Some(cpu), None, Evidence::Counted);
    Some(Share { from_ns: part.to_ns - high_ns, low_ns, high_ns, ..whole })
}

/// The causes of a sleep in a page fault that may end with a wait for a CPU. Without bounds of the wait, the page fault is
/// only bounded too.
pub(crate) fn hidden_page_fault(part: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let Some(wait) = hidden_wait(part, timeline, known) else {
        return vec![whole(part, CauseWord::PageFault, None, None, Evidence::AtMost)];
    };
    let fault = whole(part, CauseWord::PageFault, None, None, Evidence::Seen);
    let fault = Share { low_ns: fault.high_ns - wait.high_ns, high_ns: fault.high_ns - wait.low_ns, ..fault };
    vec![fault, wait]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::course::Doing;
    use crate::why::threads::Threads;
    use tailbound_model::{Counter, CounterSeries, Metric, Switches};

    #[test]
    fn a_quota_and_another_program_cannot_be_told_apart_without_the_threads_of_the_cpu() {
        let moves = vec![CounterMove { from_ns: 850, to_ns: 1_000, by: 300 }];
        let counter = Counter::QuotaThrottledNs;
        let counters = vec![CounterSeries { counter, of: "group".into(), moves, longest_step_ns: 150 }];
        let seen = [Switches { ends: vec!["pong".into()], counters, ..Switches::default() }];
        let threads = Threads::default();
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[] };
        let shares_of = |from_ns, to_ns| {
            let what = Doing::Waited { cpu: 1, evidence: Evidence::Seen, limited: None };
            let part = Piece { from_ns, to_ns, leg: Metric::Turnaround, end: "pong", thread: 20, what };
            let mut found = Vec::new();
            waited(&part, (1, Evidence::Seen), &Timeline::default(), &known, &mut found);
            found.iter().map(|s| (s.key.cause, s.low_ns, s.high_ns)).collect::<Vec<_>>()
        };
        let (waited, quota) = (CauseWord::WaitedForCpu, CauseWord::CpuQuota);
        assert_eq!(shares_of(600, 900), [(waited, 0, 300), (quota, 0, 300)]);
        // The stop was at most 300 ns long, and ended in the time from 850 to 1000.
        assert_eq!(shares_of(100, 900), [(waited, 500, 800), (quota, 0, 300)]);
        assert_eq!(shares_of(100, 500), [(waited, 400, 400)]);
    }
}
