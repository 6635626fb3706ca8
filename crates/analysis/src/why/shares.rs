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
        Doing::Ran { cpu } => ran(part, cpu, timeline, shares),
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

/// The causes of a time in which a thread of an end had a CPU: interrupts, page faults that it handled, and its own work.
fn ran(part: &Piece, cpu: u32, timeline: &Timeline, shares: &mut Vec<Share>) {
    // If interrupts are not recorded, any part of the time can be theirs.
    let evidence = if timeline.sees_interrupts(cpu) { Evidence::Seen } else { Evidence::AtMost };
    for (from_ns, to_ns, by) in divide(part.from_ns, part.to_ns, &timeline.interrupts(cpu, part.from_ns, part.to_ns)) {
        let span = |from_ns, to_ns| Piece { from_ns, to_ns, ..*part };
        if let Some(by) = by {
            shares.push(interrupted(&span(from_ns, to_ns), cpu, by));
            continue;
        }
        let own = |from_ns, to_ns| whole(&span(from_ns, to_ns), CauseWord::OwnWork, Some(cpu), None, evidence);
        let mut at = from_ns;
        for (begin, end) in timeline.page_faults(part.thread, from_ns, to_ns) {
            shares.push(own(at, begin));
            // Without the CPU, so that it is one entry with the sleep in a page fault.
            shares.push(whole(&span(begin, end), CauseWord::PageFault, None, None, Evidence::Seen));
            at = end;
        }
        shares.push(own(at, to_ns));
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

/// Largest part of a piece that stops by the CPU quota can have taken, ns. The kernel counts the time of a stop when the
/// stop ends.
fn quota_at_most_ns(piece: &Piece, known: &Circumstances) -> i64 {
    let quotas = known.of_end(piece.end).flat_map(|s| &s.counters).filter(|c| c.counter == Counter::QuotaThrottledNs);
    let within = |m: &CounterMove| {
        let stopped_ns = m.by as i64;
        let overlap = piece.to_ns.min(m.to_ns) - piece.from_ns.max(m.from_ns.saturating_sub(stopped_ns));
        overlap.clamp(0, stopped_ns)
    };
    quotas.flat_map(|c| &c.moves).map(within).sum::<i64>().min(piece.to_ns - piece.from_ns)
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
    use std::collections::BTreeMap;
    use tailbound_model::{CounterSeries, CpuList, SwitchEvent, SwitchKind, SwitchScope};

    const THREAD: i32 = 20;

    /// The shares of a thread that runs on CPU 1 from 100 to 900, as (cause, lower end, upper end).
    fn shares_of_a_run(interrupts: bool, events: &[(i64, SwitchKind)]) -> Vec<(CauseWord, i64, i64)> {
        let scope = SwitchScope::Cpus(CpuList::one(1));
        let events = events.iter().map(|(at_ns, what)| SwitchEvent { at_ns: *at_ns, cpu: 1, what: *what }).collect();
        let timeline = Timeline::of(&[Switches { scope, interrupts, events, ..Switches::default() }], (60, 1_000));
        let (leg, what) = (Metric::Turnaround, Doing::Ran { cpu: 1 });
        let piece = Piece { from_ns: 100, to_ns: 900, leg, end: "pong", thread: THREAD, what };
        let mut shares = Vec::new();
        ran(&piece, 1, &timeline, &mut shares);
        let mut sums: BTreeMap<CauseWord, (i64, i64)> = BTreeMap::new();
        for share in shares {
            let sum = sums.entry(share.key.cause).or_default();
            *sum = (sum.0 + share.low_ns, sum.1 + share.high_ns);
        }
        sums.into_iter().map(|(cause, (low_ns, high_ns))| (cause, low_ns, high_ns)).collect()
    }

    #[test]
    fn a_page_fault_is_no_work_of_the_thread_and_contains_no_interrupt() {
        let fault = |thread, ns| SwitchKind::PageFault { thread, ns, disk: false };
        let interrupt = SwitchKind::Interrupted { by: Interruption::Softirq(3), ns: 50 };
        // The first page fault began before the run, and before the recorded time span.
        let seen = shares_of_a_run(true, &[(50, fault(THREAD, 150)), (400, fault(THREAD, 300)), (500, interrupt)]);
        let expected = [(CauseWord::Softirq, 50, 50), (CauseWord::PageFault, 350, 350), (CauseWord::OwnWork, 400, 400)];
        assert_eq!(seen, expected);
        // Page faults of other threads do not concern this one.
        assert_eq!(shares_of_a_run(true, &[(400, fault(THREAD + 1, 300))]), [(CauseWord::OwnWork, 800, 800)]);
    }

    #[test]
    fn without_recorded_interrupts_the_work_of_a_thread_is_an_upper_bound() {
        assert_eq!(shares_of_a_run(true, &[]), [(CauseWord::OwnWork, 800, 800)]);
        assert_eq!(shares_of_a_run(false, &[]), [(CauseWord::OwnWork, 0, 800)]);
    }

    #[test]
    fn a_quota_and_another_program_cannot_be_told_apart_without_the_threads_of_the_cpu() {
        let moves = vec![CounterMove { from_ns: 850, to_ns: 1_000, by: 300 }];
        let counter = Counter::QuotaThrottledNs;
        let counters = vec![CounterSeries { counter, of: "group".into(), moves, longest_step_ns: 150 }];
        let seen = [Switches { ends: vec!["pong".into()], counters, ..Switches::default() }];
        let threads = Threads::default();
        let known = Circumstances { threads: &threads, seen: &seen };
        let shares_of = |from_ns, to_ns| {
            let what = Doing::Waited { cpu: 1, evidence: Evidence::Seen, limited: None };
            let piece = Piece { from_ns, to_ns, leg: Metric::Turnaround, end: "pong", thread: THREAD, what };
            let found = shares(&piece, &Timeline::default(), &known);
            found.iter().map(|s| (s.key.cause, s.low_ns, s.high_ns)).collect::<Vec<_>>()
        };
        let (waited, quota) = (CauseWord::WaitedForCpu, CauseWord::CpuQuota);
        assert_eq!(shares_of(600, 900), [(waited, 0, 300), (quota, 0, 300)]);
        // The stop was at most 300 ns long, and ended in the time from 850 to 1000.
        assert_eq!(shares_of(100, 900), [(waited, 500, 800), (quota, 0, 300)]);
        assert_eq!(shares_of(100, 500), [(waited, 400, 400)]);
    }

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
