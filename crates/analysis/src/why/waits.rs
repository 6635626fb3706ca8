//! Causes of a wait for a CPU: the threads and interrupts that had the CPU, a limit of CPU time, or what a counter says.

use crate::why::course::Piece;
use crate::why::delays::delay;
use crate::why::interruptions::{divide, interrupted};
use crate::why::share::{Circumstances, Share, whole};
use crate::why::slow;
use crate::why::steal::divided;
use crate::why::timeline::{Timeline, UNKNOWN};
use crate::why::wake::LONGEST_IDLE_EXIT_NS;
use tailbound_document::{CauseWord, Evidence};
use tailbound_model::{CounterMove, CpuLimit, SleepState};

/// Longest time that a CPU takes to run a thread which the scheduler prefers to the present one, ns: an interrupt from another CPU, the
/// end of a part of the kernel that is not preempted, and a virtual CPU.
const LONGEST_PREEMPTION_NS: i64 = 200_000;

/// The share of a limit of CPU time, which certainly lasted until the time `free`.
pub(crate) fn limited_share(part: &Piece, (cpu, limit): (u32, CpuLimit), free: i64) -> Share {
    let share = whole(part, cause_of(limit), Some(cpu), None, Evidence::Seen);
    Share { to_ns: free, low_ns: free - part.from_ns, ..share }
}

fn cause_of(limit: CpuLimit) -> CauseWord {
    match limit {
        CpuLimit::Quota => CauseWord::CpuQuota,
        CpuLimit::RealTime => CauseWord::RtThrottled,
        CpuLimit::Deadline => CauseWord::DeadlineThrottled,
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
            let found = match by {
                Some(by) => slow::interrupt(interrupted(&span, cpu, by, known.threads), by, cpu, timeline),
                None if tid == 0 => idle(&span, (cpu, part.from_ns), timeline, known),
                None if tid == UNKNOWN => {
                    let share = whole(&span, CauseWord::WaitedForCpu, Some(cpu), None, evidence);
                    slow::without_standstill(share, cpu, timeline)
                }
                None => {
                    let found = displaced(&span, part, (cpu, evidence), (tid, from), timeline, known);
                    match timeline.left_idle(cpu, from) {
                        Some(since) => found.into_iter().flat_map(|share| after_idle(share, since, known)).collect(),
                        None => found,
                    }
                }
            };
            let bounded = |share| match evidence {
                Evidence::AtMost => Share { low_ns: 0, evidence, ..share },
                _ => share,
            };
            shares.extend(found.into_iter().map(bounded));
        }
    }
}

/// The share of a thread that got an idle CPU at an unknown time after `since`: the CPU took some time to leave idle, and the
/// hypervisor can have had it.
fn after_idle(share: Share, since: i64, known: &Circumstances) -> Vec<Share> {
    let surely_ns = share.to_ns - share.from_ns.max(since + LONGEST_IDLE_EXIT_NS);
    let low_ns = share.low_ns.min(surely_ns).max(0);
    let evidence = if low_ns == 0 { Evidence::AtMost } else { share.evidence.max(Evidence::Inferred) };
    divided(Share { low_ns, evidence, ..share }, known)
}

/// The cause of a part `span` of the wait `part`, in which another thread had the CPU since the time `from`.
fn displaced(
    span: &Piece,
    part: &Piece,
    (cpu, evidence): (u32, Evidence),
    (tid, from): (i32, i64),
    timeline: &Timeline,
    known: &Circumstances,
) -> Vec<Share> {
    let (cause, by) = known.threads.had_the_cpu(tid);
    let share = |cause, by| slow::without_standstill(whole(span, cause, Some(cpu), by, evidence), cpu, timeline);
    if known.threads.rank(part.thread) <= known.threads.rank(tid) {
        return share(cause, Some(by));
    }
    // The scheduler prefers the thread that waits, but for the fair server.
    if timeline.is_served(cpu, from) {
        return share(CauseWord::FairServer, Some(by));
    }
    // The other thread does not keep the CPU: it takes this long to run the thread that waits, as an idle CPU does. If the thread had
    // had its memory, it would not have slept.
    let of_memory = timeline.memory.why(part.thread, span.from_ns).and_then(asleep);
    match of_memory.filter(|_| part.to_ns - part.from_ns <= LONGEST_PREEMPTION_NS) {
        Some((cause, evidence)) => slow::without_standstill(whole(span, cause, None, None, evidence), cpu, timeline),
        None => share(cause, Some(by)),
    }
}

/// Whether the limit of all real-time threads of a CPU keeps the thread that waits in this piece from `cpu`, which is idle. Perf
/// events are not enough: they can show a frozen thread as ready.
fn stops_real_time(piece: &Piece, cpu: u32, timeline: &Timeline, known: &Circumstances) -> bool {
    let is_real_time = |tid| known.threads.is_real_time(tid);
    known.threads.kernel(cpu).throttles
        && timeline.sees_packets()
        && is_real_time(piece.thread)
        && timeline.stops_real_time(cpu, piece.from_ns, is_real_time)
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

/// The cause that the kernel's state of a sleeping thread shows by itself, and how certain it is.
pub(crate) fn asleep(state: SleepState) -> Option<(CauseWord, Evidence)> {
    match state {
        // The thread may have waited for a lock as well as for a disk.
        SleepState::Uninterruptible => Some((CauseWord::BlockedIo, Evidence::AtMost)),
        SleepState::Io => Some((CauseWord::BlockedIo, Evidence::Seen)),
        SleepState::PageFault => Some((CauseWord::PageFault, Evidence::Seen)),
        SleepState::Reclaim => Some((CauseWord::Reclaim, Evidence::Seen)),
        // The thread waited neither for a disk nor for a page.
        SleepState::KernelLock => Some((CauseWord::KernelLock, Evidence::Inferred)),
        SleepState::Frozen => Some((CauseWord::Frozen, Evidence::Seen)),
        SleepState::Stopped => Some((CauseWord::Stopped, Evidence::Seen)),
        SleepState::Interruptible | SleepState::Ended => None,
    }
}

/// Why a CPU ran no thread, although a thread had waited for it since `waits_since`.
fn idle(span: &Piece, (cpu, waits_since): (u32, i64), timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    // The limit that made another thread leave the CPU also holds for this thread: it is ready, and the CPU is free. Threads of
    // the kernel have no quota.
    let is_limited = !known.threads.is_of_the_kernel(span.thread);
    if let Some(limit) = timeline.limit(cpu, waits_since, span.from_ns).filter(|_| is_limited) {
        return vec![whole(span, cause_of(limit), Some(cpu), None, Evidence::Inferred)];
    }
    if stops_real_time(span, cpu, timeline, known) {
        return vec![whole(span, CauseWord::RtThrottled, Some(cpu), None, Evidence::Inferred)];
    }
    if is_limited && quota_may_have_lasted(span, known) {
        return vec![whole(span, CauseWord::CpuQuota, Some(cpu), None, Evidence::Counted)];
    }
    // If it had had its memory, the thread would not have slept.
    if let Some((cause, evidence)) = timeline.memory.why(span.thread, span.from_ns).and_then(asleep) {
        return vec![whole(span, cause, None, None, evidence)];
    }
    let idle = divided(whole(span, CauseWord::IdleExit, Some(cpu), None, Evidence::Inferred), known);
    let left_idle = span.to_ns - span.from_ns <= LONGEST_IDLE_EXIT_NS;
    idle.into_iter().filter(|share| left_idle || share.key.cause == CauseWord::Steal).collect()
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
    use crate::why::kernels::Kernel;
    use crate::why::threads::Threads;
    use tailbound_model::{
        Attribution, Counter, CounterSeries, CpuList, Metric, RecordedBy, Recorder, SwitchEvent, SwitchKind,
        SwitchScope, Switches, Task,
    };

    /// The causes of a wait of thread 20 for the idle CPU 1, from 200 to `came`, with a page fault of this length from 90 on,
    /// if the hypervisor took this time from the CPU until 1,000,000,000: cause, lower end, evidence.
    fn waits_for_an_idle_cpu(came: i64, fault_ns: u32, stolen_ns: u64) -> Vec<(CauseWord, i64, Evidence)> {
        let mut events = vec![
            event(100, switch(20, 0, false)),
            event(200, SwitchKind::Wake { thread: 20, by: 0, interrupt: true, packet: false, limit: None }),
            event(came, switch(0, 20, false)),
        ];
        if fault_ns > 0 {
            events.insert(0, event(90, SwitchKind::PageFault { thread: 20, ns: fault_ns, disk: true }));
        }
        let scope = SwitchScope::Cpus(CpuList([1].into()));
        let window = (0, came + 100);
        let (ends, windows) = (vec!["pong".to_owned()], vec![window]);
        let stolen = CounterMove { from_ns: 0, to_ns: 1_000_000_000, by: stolen_ns };
        let counters = vec![CounterSeries {
            counter: Counter::StealNs,
            of: "cpu 1".into(),
            moves: if stolen_ns > 0 { vec![stolen] } else { Vec::new() },
            longest_step_ns: 1_000_000_000,
            complete_from_ns: None,
        }];
        let seen = [Switches { ends, scope, wakes: true, windows, events, counters, ..Switches::default() }];
        let timeline = Timeline::of(&seen, window);
        let threads = Threads::default();
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[] };
        let what = Doing::Waited { cpu: 1, evidence: Evidence::Seen, limited: None };
        let part = Piece { from_ns: 200, to_ns: came, leg: Metric::Turnaround, end: "pong", thread: 20, what };
        let mut found = Vec::new();
        waited(&part, (1, Evidence::Seen), &timeline, &known, &mut found);
        found.iter().map(|s| (s.key.cause, s.low_ns, s.evidence)).collect()
    }

    /// The first cause of a wait of a thread for CPU 1, from 200 to 900. Threads 20 and 22 are real-time threads, 21 and 30 are
    /// not. `throttles`: whether the kernel has no fair server.
    fn cause_of_a_wait(waits: i32, throttles: bool, mut events: Vec<SwitchEvent>) -> CauseWord {
        events.push(event(900, switch(30, waits, true)));
        let task =
            |policy: &str| Task { name: "name".into(), policy: policy.parse().ok(), process: None, kernel: false };
        let tasks = [(20, task("fifo 50")), (21, task("other")), (22, task("fifo 1")), (30, task("other"))].into();
        let scope = SwitchScope::Cpus(CpuList([1].into()));
        let recorder = Some(Recorder {
            level: Attribution::Machine,
            by: RecordedBy::Bpf,
            instead: None,
            cost: None,
            others: Vec::new(),
        });
        let windows = vec![(0, 1000)];
        let seen = [Switches { scope, wakes: true, windows, events, tasks, recorder, ..Switches::default() }];
        let timeline = Timeline::of(&seen, (0, 1000));
        let threads = Threads::of_tasks(&seen).of_kernels([Kernel { throttles, ..Kernel::default() }; 3]);
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[] };
        let what = Doing::Waited { cpu: 1, evidence: Evidence::Seen, limited: None };
        let part = Piece { from_ns: 200, to_ns: 900, leg: Metric::Turnaround, end: "pong", thread: waits, what };
        let mut found = Vec::new();
        waited(&part, (1, Evidence::Seen), &timeline, &known, &mut found);
        found[0].key.cause
    }

    fn event(at_ns: i64, what: SwitchKind) -> SwitchEvent {
        SwitchEvent { at_ns, cpu: 1, what }
    }

    fn switch(out: i32, into: i32, preempted: bool) -> SwitchKind {
        SwitchKind::Switch { out, into, preempted, state: None, limit: None }
    }

    #[test]
    fn the_fair_server_displaces_a_real_time_thread() {
        let displaced = || vec![event(100, switch(20, 30, true))];
        let served = || [displaced(), vec![event(100, SwitchKind::FairServer { thread: 30 })]].concat();
        assert_eq!(cause_of_a_wait(20, false, served()), CauseWord::FairServer);
        assert_eq!(cause_of_a_wait(20, false, displaced()), CauseWord::WaitedForCpu);
        // The thread that waits is a time-sharing thread too.
        assert_eq!(cause_of_a_wait(21, false, served()), CauseWord::WaitedForCpu);
    }

    #[test]
    fn a_kernel_without_fair_server_stops_all_real_time_threads_of_a_cpu() {
        // The real-time thread 22 left the idle CPU although it was ready.
        let then_idle = |preempted| {
            vec![
                event(50, switch(0, 22, false)),
                event(100, switch(22, 0, preempted)),
                event(800, switch(0, 30, false)),
            ]
        };
        assert_eq!(cause_of_a_wait(20, true, then_idle(true)), CauseWord::RtThrottled);
        assert_eq!(cause_of_a_wait(22, true, then_idle(true)), CauseWord::RtThrottled);
        // A time-sharing thread had the CPU meanwhile.
        let then_another = [
            vec![event(50, switch(0, 22, false)), event(100, switch(22, 30, true))],
            vec![event(150, switch(30, 0, false)), event(800, switch(0, 30, false))],
        ]
        .concat();
        assert_eq!(cause_of_a_wait(20, true, then_another), CauseWord::RtThrottled);
        // The kernel has a fair server; the thread that waits is a time-sharing thread; the last real-time thread fell asleep.
        assert_eq!(cause_of_a_wait(20, false, then_idle(true)), CauseWord::IdleExit);
        assert_eq!(cause_of_a_wait(21, true, then_idle(true)), CauseWord::IdleExit);
        assert_eq!(cause_of_a_wait(20, true, then_idle(false)), CauseWord::IdleExit);
        // What had the CPU is named as long as something had it: a thread whose priority was raised displaces others too.
        let displaced = vec![event(50, switch(0, 22, false)), event(100, switch(22, 30, true))];
        assert_eq!(cause_of_a_wait(20, true, displaced), CauseWord::WaitedForCpu);
    }

    /// A cause, the thread that had the CPU, bounds in us, and the evidence.
    type Found = (CauseWord, Option<i32>, (i64, i64), Evidence);

    /// The causes of a wait of thread 20 for CPU 1 in events of perf that were recorded on Linux 6.18, with these wake-ups by interrupts
    /// while thread 30 had the CPU. The switch from the idle thread to thread 30 is missing, as is its own wake-up.
    fn waits_behind_a_thread_that_came_unseen(wakes_ns: &[(i64, i32)]) -> Vec<Found> {
        const WOKEN: i64 = 4_498_661_516_857;
        const CAME: i64 = 4_498_665_387_834;
        let wake = |thread, by| SwitchKind::Wake { thread, by, interrupt: true, packet: false, limit: None };
        let mut events =
            vec![event(WOKEN - 943_458, switch(20, 0, false)), SwitchEvent { cpu: 0, ..event(WOKEN, wake(20, 40)) }];
        events.extend(
            wakes_ns.iter().map(|(ns, woken)| event(WOKEN + ns, wake(*woken, if *woken == 30 { 0 } else { 30 }))),
        );
        events.push(event(CAME, switch(30, 20, false)));
        let window = (WOKEN - 2_000_000, CAME + 1_000_000);
        let scope = SwitchScope::Cpus(CpuList([0, 1].into()));
        let seen = [Switches { scope, wakes: true, windows: vec![window], events, ..Switches::default() }];
        let (timeline, threads) = (Timeline::of(&seen, window), Threads::of_tasks(&[]));
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[] };
        let what = Doing::Waited { cpu: 1, evidence: Evidence::Seen, limited: None };
        let part = Piece { from_ns: WOKEN, to_ns: CAME, leg: Metric::Out, end: "pong", thread: 20, what };
        let mut found = Vec::new();
        waited(&part, (1, Evidence::Seen), &timeline, &known, &mut found);
        let one = |s: &Share| {
            let by = s.key.by.as_ref().and_then(|by| by.tid);
            (s.key.cause, by, (s.low_ns / 1_000, s.high_ns / 1_000), s.evidence)
        };
        found.iter().map(one).collect()
    }

    #[test]
    fn a_cpu_is_not_idle_while_a_thread_is_ready() {
        use CauseWord::{IdleExit, WaitedForCpu};
        let waits = waits_behind_a_thread_that_came_unseen;
        let inferred = |low, high| (WaitedForCpu, Some(30), (low, high), Evidence::Inferred);
        assert_eq!(waits(&[]), [inferred(2_870, 3_870)]);
        // As recorded: the interrupts show which thread they interrupted.
        let exit = (IdleExit, None, (21, 21), Evidence::Inferred);
        let seen = (WaitedForCpu, Some(30), (3_849, 3_849), Evidence::Seen);
        assert_eq!(waits(&[(21_557, 50), (223_417, 50)]), [exit, seen]);
        let seen = (WaitedForCpu, Some(30), (1_370, 1_370), Evidence::Seen);
        assert_eq!(waits(&[(2_500_000, 50)]), [inferred(1_499, 2_499), seen]);
        // The thread itself was woken late: it did not have the CPU before.
        let late = waits(&[(2_500_000, 30)]);
        let of_it: Vec<_> =
            late.iter().filter(|(_, by, ..)| *by == Some(30)).map(|(_, _, bounds, _)| *bounds).collect();
        assert_eq!(of_it, [(1_370, 1_370)], "{late:?}");
    }

    #[test]
    fn an_idle_cpu_takes_a_short_time_to_run_a_thread() {
        assert_eq!(waits_for_an_idle_cpu(60_200, 0, 0), [(CauseWord::IdleExit, 60_000, Evidence::Inferred)]);
        assert_eq!(waits_for_an_idle_cpu(1_000_201, 0, 0), []);
    }

    #[test]
    fn a_hypervisor_can_have_had_the_idle_cpu() {
        // The thread waited for 900 ms of 1,010 ms, in which 800 ms were counted, or one unit less.
        let (steal, counted) = (CauseWord::Steal, Evidence::Counted);
        assert_eq!(waits_for_an_idle_cpu(900_000_200, 0, 800_000_000), [(steal, 680_000_000, counted)]);
        assert_eq!(waits_for_an_idle_cpu(900_000_200, 0, 20_000_000), [(steal, 0, Evidence::AtMost)]);
        let short = [(CauseWord::IdleExit, 0, Evidence::AtMost), (steal, 0, Evidence::AtMost)];
        assert_eq!(waits_for_an_idle_cpu(60_200, 0, 20_000_000), short);
    }

    #[test]
    fn the_wait_for_an_idle_cpu_within_a_page_fault_belongs_to_the_page_fault() {
        assert_eq!(waits_for_an_idle_cpu(60_200, 60_200, 0), [(CauseWord::PageFault, 60_000, Evidence::Seen)]);
        assert_eq!(waits_for_an_idle_cpu(2_000_200, 2_000_200, 0), [(CauseWord::PageFault, 2_000_000, Evidence::Seen)]);
    }

    #[test]
    fn the_time_to_preempt_a_thread_within_a_page_fault_belongs_to_the_page_fault() {
        let fault = |thread| event(150, SwitchKind::PageFault { thread, ns: 750, disk: true });
        let ran = || event(100, switch(0, 30, false));
        assert_eq!(cause_of_a_wait(20, false, vec![ran(), fault(20)]), CauseWord::PageFault);
        assert_eq!(cause_of_a_wait(20, false, vec![ran()]), CauseWord::WaitedForCpu);
        // The scheduler does not prefer the thread that waits.
        assert_eq!(cause_of_a_wait(21, false, vec![ran(), fault(21)]), CauseWord::WaitedForCpu);
    }

    #[test]
    fn a_quota_and_another_program_cannot_be_told_apart_without_the_threads_of_the_cpu() {
        let moves = vec![CounterMove { from_ns: 850, to_ns: 1_000, by: 300 }];
        let counter = Counter::QuotaThrottledNs;
        let of = "group".to_owned();
        let counters = vec![CounterSeries { counter, of, moves, longest_step_ns: 150, complete_from_ns: None }];
        let seen = [Switches { ends: vec!["pong".into()], counters, ..Switches::default() }];
        let threads = Threads::default();
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[] };
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
