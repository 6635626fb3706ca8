//! Causes of the time spans of a message: who had the CPU, who stopped the thread, or where the message was.

use crate::why::course::{Doing, Piece};
use crate::why::threads::Threads;
use crate::why::timeline::{InterruptSpan, Timeline};
use crate::why::walk::Limited;
use tailbound_document::{CauseWord, CausedBy, Evidence};
use tailbound_model::{Counter, CounterMove, CpuLimit, Interruption, Metric, SleepState, Switches};

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

/// A time span of a delay with its cause. The lower end of its time is the length of the span, or 0 if only an upper
/// bound is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Share {
    pub key: Key,
    pub from_ns: i64,
    pub to_ns: i64,
    pub low_ns: i64,
    pub high_ns: i64,
    pub evidence: Evidence,
}

/// Everything that is known about one trial, from which the causes of time spans follow.
pub(crate) struct Circumstances<'a> {
    pub threads: &'a Threads<'a>,
    pub seen: &'a [Switches],
}

impl Circumstances<'_> {
    /// What the agent of this end recorded.
    fn of_end(&self, end: &str) -> impl Iterator<Item = &Switches> {
        self.seen.iter().filter(move |s| s.ends.iter().any(|e| e == end))
    }
}

/// The causes of one time span. A part of the span without any cause has no share.
pub(crate) fn shares(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let mut shares = Vec::new();
    let hidden = piece.is_hidden(timeline);
    for (from_ns, to_ns, stopped) in split_by_stops(piece, timeline, known) {
        let part = Piece { from_ns, to_ns, ..*piece };
        match stopped {
            Some((cause, evidence)) => shares.push(whole(&part, cause, None, None, evidence)),
            None if hidden => {}
            None => of_part(&part, timeline, known, &mut shares),
        }
    }
    shares
}

fn of_part(part: &Piece, timeline: &Timeline, known: &Circumstances, shares: &mut Vec<Share>) {
    match part.what {
        Doing::Ran { cpu } => {
            let interrupts = timeline.interrupts(cpu, part.from_ns, part.to_ns);
            for (from_ns, to_ns, by) in divide(part.from_ns, part.to_ns, &interrupts) {
                let span = Piece { from_ns, to_ns, ..*part };
                shares.push(match by {
                    Some(by) => interrupted(&span, cpu, by),
                    None => whole(&span, CauseWord::OwnWork, Some(cpu), None, Evidence::Seen),
                });
            }
        }
        Doing::Waited { cpu, evidence, limited } => {
            let free = limited.map_or(part.from_ns, |l| l.until_ns.clamp(part.from_ns, part.to_ns));
            if let Some(Limited { limit, .. }) = limited {
                shares.push(limited_share(part, (cpu, limit), free));
            }
            // What had the CPU after the limit can have ended may have had it because of the limit.
            let evidence = if limited.is_some() { Evidence::AtMost } else { evidence };
            waited(&Piece { from_ns: free, ..*part }, (cpu, evidence), timeline, known, shares);
        }
        Doing::Locked { by } => {
            let (_, by) = known.threads.had_the_cpu(by);
            shares.push(whole(part, CauseWord::UserLock, None, Some(by), Evidence::Inferred));
        }
        Doing::SleptInCall(state) => {
            let (cause, evidence) = asleep(state).unwrap_or((CauseWord::DriverCall, Evidence::Seen));
            shares.push(whole(part, cause, None, None, evidence));
        }
        Doing::SleptForMessage(state) => {
            // That no thread had the message is concluded from the absence of events.
            let (cause, evidence) = asleep(state).unwrap_or((CauseWord::Network, Evidence::Inferred));
            shares.push(Share {
                key: Key { thread: None, ..key(part, cause, None, None) },
                ..whole(part, cause, None, None, evidence)
            });
        }
        Doing::Slept(state) => {
            let cause = asleep(state);
            shares.extend(cause.map(|(cause, evidence)| whole(part, cause, None, None, evidence)));
        }
        Doing::Unknown => {}
    }
}

/// The cause that the kernel's state of a sleeping thread shows by itself, and how certain it is.
fn asleep(state: Option<SleepState>) -> Option<(CauseWord, Evidence)> {
    match state? {
        // The thread may have waited for a lock as well as for a disk.
        SleepState::Uninterruptible => Some((CauseWord::BlockedIo, Evidence::AtMost)),
        SleepState::Io => Some((CauseWord::BlockedIo, Evidence::Seen)),
        SleepState::PageFault => Some((CauseWord::PageFault, Evidence::Seen)),
        // The thread waited neither for a disk nor for a page.
        SleepState::KernelLock => Some((CauseWord::KernelLock, Evidence::Inferred)),
        SleepState::Frozen => Some((CauseWord::Frozen, Evidence::Seen)),
        SleepState::Stopped => Some((CauseWord::Stopped, Evidence::Seen)),
        SleepState::Interruptible | SleepState::Ended => None,
    }
}

/// The share of a limit of CPU time, which certainly lasted until the time `free`.
fn limited_share(part: &Piece, (cpu, limit): (u32, CpuLimit), free: i64) -> Share {
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
fn waited(
    part: &Piece,
    (cpu, evidence): (u32, Evidence),
    timeline: &Timeline,
    known: &Circumstances,
    shares: &mut Vec<Share>,
) {
    if !timeline.sees_cpu(cpu) {
        // Without the threads of the CPU, a used-up quota looks like a wait.
        if quota_may_have_lasted(part, known) {
            return shares.push(whole(part, CauseWord::CpuQuota, Some(cpu), None, Evidence::Counted));
        }
        return shares.push(whole(part, CauseWord::WaitedForCpu, Some(cpu), None, evidence));
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
/// The kernel counts the time of a stop when it ends.
fn quota_may_have_lasted(piece: &Piece, known: &Circumstances) -> bool {
    let quotas = known.of_end(piece.end).flat_map(|s| &s.counters).filter(|c| c.counter == Counter::QuotaThrottledNs);
    let covers = |m: &CounterMove| m.from_ns - m.by as i64 <= piece.from_ns && piece.to_ns <= m.to_ns;
    quotas.flat_map(|c| &c.moves).any(covers)
}

fn interrupted(part: &Piece, cpu: u32, by: Interruption) -> Share {
    let (cause, name) = match by {
        Interruption::Irq(number) => (CauseWord::Irq, format!("irq {number}")),
        Interruption::Vector(number) => (CauseWord::Irq, format!("vector {number}")),
        Interruption::Softirq(number) => (CauseWord::Softirq, softirq(number)),
    };
    whole(part, cause, Some(cpu), Some(CausedBy { name, process: None, tid: None, policy: None }), Evidence::Seen)
}

/// Name of a soft interrupt, in the order of `/proc/softirqs`.
fn softirq(number: u32) -> String {
    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
    NAMES.get(number as usize).map_or_else(|| format!("soft interrupt {number}"), |name| (*name).to_owned())
}

fn key(part: &Piece, cause: CauseWord, cpu: Option<u32>, by: Option<CausedBy>) -> Key {
    Key { cause, leg: part.leg, end: part.end, cpu, thread: (part.thread != 0).then_some(part.thread), by }
}

/// A share for the whole time of a part.
fn whole(part: &Piece, cause: CauseWord, cpu: Option<u32>, by: Option<CausedBy>, evidence: Evidence) -> Share {
    let ns = part.to_ns - part.from_ns;
    let low_ns = if evidence == Evidence::AtMost { 0 } else { ns };
    Share { key: key(part, cause, cpu, by), from_ns: part.from_ns, to_ns: part.to_ns, low_ns, high_ns: ns, evidence }
}

/// Divides a time span by the interrupts in it. At each instant the interrupt that began last counts, so that an
/// interrupt inside a soft interrupt counts once.
fn divide(from_ns: i64, to_ns: i64, spans: &[InterruptSpan]) -> Vec<(i64, i64, Option<Interruption>)> {
    let mut parts = Vec::new();
    let mut open: Vec<&InterruptSpan> = Vec::new();
    let mut at = from_ns;
    let mut until = |at: &mut i64, to: i64, by: Option<Interruption>| {
        if *at < to {
            parts.push((*at, to, by));
            *at = to;
        }
    };
    for span in spans {
        while let Some(inner) = open.last().filter(|inner| inner.to_ns <= span.from_ns) {
            until(&mut at, inner.to_ns, Some(inner.by));
            open.pop();
        }
        until(&mut at, span.from_ns, open.last().map(|s| s.by));
        open.push(span);
    }
    while let Some(inner) = open.pop() {
        until(&mut at, inner.to_ns, Some(inner.by));
    }
    until(&mut at, to_ns, None);
    parts
}

/// Divides a time span of a thread that did not run by the times in which its process was stopped or frozen.
fn split_by_stops(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<(i64, i64, Option<Halt>)> {
    let mut halts = match piece.what {
        Doing::Ran { .. } => Vec::new(),
        _ => halts(piece, timeline, known),
    };
    halts.sort_unstable();
    let mut parts = Vec::new();
    let mut at = piece.from_ns;
    for (from, to, halt) in halts {
        if at < from {
            parts.push((at, from, None));
        }
        if at.max(from) < to {
            parts.push((at.max(from), to, Some(halt)));
            at = to;
        }
    }
    if at < piece.to_ns {
        parts.push((at, piece.to_ns, None));
    }
    parts
}

/// What stopped all threads of a process, and how it is known.
type Halt = (CauseWord, Evidence);

/// The times within a piece in which the process of its end was stopped or frozen.
fn halts(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<(i64, i64, Halt)> {
    let threads = || known.threads.of_end(piece.end);
    let noticed = known.of_end(piece.end).flat_map(|s| &s.stops).filter_map(|(from, to)| {
        // The supervisor may notice a stop late, or only with its end, at time 0; the process had then not run since it
        // was stopped.
        let seen_ns = if *from == 0 { *to } else { *from };
        let from = timeline.idle_since(threads(), seen_ns).map_or(seen_ns, |idle| idle.min(seen_ns));
        Some((from, *to, (CauseWord::Stopped, Evidence::Seen))).filter(|(from, to, _)| from < to)
    });
    // The freezer does not wake threads that sleep in some system calls, so that only other threads of their process
    // show it.
    let shown = threads().flat_map(|tid| {
        let evidence = if tid == piece.thread { Evidence::Seen } else { Evidence::Inferred };
        timeline
            .asleep_as(tid, SleepState::Frozen)
            .into_iter()
            .map(move |(from, to)| (from, to, (CauseWord::Frozen, evidence)))
    });
    let clipped = |(from, to, halt): (i64, i64, Halt)| (from.max(piece.from_ns), to.min(piece.to_ns), halt);
    noticed.chain(shown).map(clipped).filter(|(from, to, _)| from < to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_inside_each_other_count_once() {
        let span = |from_ns, to_ns, by| InterruptSpan { from_ns, to_ns, by };
        let (soft, irq) = (Interruption::Softirq(3), Interruption::Irq(7));
        let parts = divide(0, 100, &[span(10, 60, soft), span(20, 30, irq), span(40, 45, irq), span(80, 90, irq)]);
        let expected = [
            (0, 10, None),
            (10, 20, Some(soft)),
            (20, 30, Some(irq)),
            (30, 40, Some(soft)),
            (40, 45, Some(irq)),
            (45, 60, Some(soft)),
            (60, 80, None),
            (80, 90, Some(irq)),
            (90, 100, None),
        ];
        assert_eq!(parts, expected);
    }
}
