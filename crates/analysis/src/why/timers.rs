//! Late timers: a sender slept although its message was due, because the interrupt of its timer came late.
//!
//! Input: a time span in which the sender slept, and of which nothing else explains a part. Output: the time from the due time
//! to the begin of the interrupt that woke the sender.

use crate::why::course::{Doing, Piece};
use crate::why::share::{Circumstances, Share, whole};
use crate::why::steal::divided;
use crate::why::timeline::{Left, Timeline};
use crate::why::wake::Wake;
use tailbound_document::{CauseWord, Evidence};
use tailbound_model::{Interruption, Metric, SleepState};

/// Timers that are late by less than this time are not named, ns.
const LEAST_LATE_NS: i64 = 50_000;
/// Time by which the kernel may delay the timers of a thread by default, ns.
const DEFAULT_SLACK_NS: i64 = 50_000;
/// Interrupts that take less time are not recorded, ns.
const SHORTEST_INTERRUPT_NS: i64 = 2_000;
/// The vector of the local timer of x86 (`arch/x86/include/asm/irq_vectors.h`).
const LOCAL_TIMER: u32 = 0xec;

/// The share of a late timer in a sleep of the sender. Where the hypervisor took time from the CPU, the share is divided.
pub(crate) fn late(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Vec<Share> {
    let threads = known.threads;
    let is_asleep = matches!(piece.what, Doing::Slept(None | Some(SleepState::Interruptible)));
    if piece.leg != Metric::SendLateness || !is_asleep || !threads.sleep_until_due() {
        return Vec::new();
    }
    let Some((wake, began_ns)) = interrupt(piece, timeline, known) else { return Vec::new() };
    // On real-time kernels, a thread runs the timers of time-sharing threads, some time after their interrupt.
    let is_by_interrupt = !threads.kernel(wake.cpu).is_real_time || threads.is_real_time(piece.thread);
    let slack_ns = threads.timer_slack_ns(piece.thread).unwrap_or(DEFAULT_SLACK_NS);
    let from_ns = piece.from_ns.saturating_add(slack_ns);
    if !is_by_interrupt || began_ns - from_ns < LEAST_LATE_NS || !timeline.covers(piece.from_ns, piece.to_ns) {
        return Vec::new();
    }
    let part = Piece { from_ns, to_ns: began_ns, ..*piece };
    divided(whole(&part, CauseWord::TimerLate, Some(wake.cpu), None, Evidence::Inferred), known)
}

/// The wake-up that ended a sleep, which had begun before the message was due, and the begin of the timer's interrupt that caused
/// the wake-up. `None` if something else woke the thread, or if the CPU handled another interrupt after the message was due.
fn interrupt(piece: &Piece, timeline: &Timeline, known: &Circumstances) -> Option<(Wake, i64)> {
    let wake = timeline.woken(piece.thread, piece.to_ns, piece.to_ns)?;
    let (came, _) = timeline.comes(piece.thread, piece.to_ns)?;
    let (left, Left::Asleep(_)) = timeline.left(piece.thread, came) else { return None };
    let is_timer = wake.by.is_none() && !wake.packet && timeline.sees_interrupts(wake.cpu);
    if !is_timer || left >= piece.from_ns {
        return None;
    }
    let spans = timeline.interrupts(wake.cpu, piece.from_ns, wake.at_ns + 1);
    let around = spans.iter().rev().find(|span| span.to_ns > wake.at_ns);
    let began_ns = match around.map(|span| (span.by, span.from_ns)) {
        Some((Interruption::Irq(_), from_ns)) => from_ns,
        Some((Interruption::Vector(LOCAL_TIMER), from_ns)) if known.threads.kernel(wake.cpu).is_x86 => from_ns,
        Some(_) => return None,
        // An interrupt too short to be recorded. Only with BPF, which marks all wake-ups that happen in an interrupt.
        None if timeline.sees_packets() => wake.at_ns - SHORTEST_INTERRUPT_NS,
        None => return None,
    };
    spans.iter().all(|span| span.from_ns >= began_ns).then_some((wake, began_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::conduct::Conduct;
    use crate::why::guest::Guest;
    use crate::why::kernels::Kernel;
    use crate::why::other_clock::Pong;
    use crate::why::shares::shares;
    use crate::why::threads::Threads;
    use tailbound_document::{Thread, ThreadReport};
    use tailbound_model::{
        Attribution, Counter, CounterMove, CounterSeries, CpuList, RecordedBy, Recorder, SwitchEvent, SwitchKind,
        SwitchScope, Switches,
    };

    const SENDER: i32 = 20;
    const HOG: i32 = 40;
    const DUE_NS: i64 = 100_000;
    const WOKEN_NS: i64 = 402_000;
    /// The interrupt of the timer, from 400,000 to 405,000, in which the sender is woken.
    const TIMER: (i64, SwitchKind) = (400_000, interrupted(Interruption::Vector(LOCAL_TIMER), 5_000));

    const fn interrupted(by: Interruption, ns: u32) -> SwitchKind {
        SwitchKind::Interrupted { by, ns }
    }

    /// A sender on CPU 1 that sleeps although its message is due.
    struct Case {
        asleep_ns: i64,
        interrupts: bool,
        by: RecordedBy,
        wake: SwitchKind,
        kernel: Kernel,
        policy: &'static str,
        slack_ns: Option<u64>,
        sleep_until_due: bool,
        state: SleepState,
        steal_ns: u64,
    }

    impl Case {
        fn usual() -> Case {
            Case {
                asleep_ns: 50_000,
                interrupts: true,
                by: RecordedBy::Bpf,
                wake: SwitchKind::Wake { thread: SENDER, by: 0, interrupt: true, packet: false, limit: None },
                kernel: Kernel { is_x86: true, ..Kernel::default() },
                policy: "other",
                slack_ns: Some(1),
                sleep_until_due: true,
                state: SleepState::Interruptible,
                steal_ns: 0,
            }
        }

        fn seen(&self, others: &[(i64, SwitchKind)]) -> Switches {
            let switch = |out, into| {
                let state = Some(self.state);
                SwitchKind::Switch { out, into, preempted: false, state, limit: None }
            };
            let own = [(10, switch(0, SENDER)), (self.asleep_ns, switch(SENDER, 0)), (WOKEN_NS, self.wake)];
            let event = |&(at_ns, what): &(i64, SwitchKind)| SwitchEvent { at_ns, cpu: 1, what };
            let mut events: Vec<SwitchEvent> =
                own.iter().chain(&[(410_000, switch(0, SENDER))]).chain(others).map(event).collect();
            events.sort_by_key(|event| event.at_ns);
            let (level, by) = (Attribution::Machine, self.by);
            let stolen = CounterMove { from_ns: 0, to_ns: 500_000, by: self.steal_ns };
            let counters = vec![CounterSeries {
                counter: Counter::StealNs,
                of: "cpu 1".into(),
                moves: if self.steal_ns > 0 { vec![stolen] } else { Vec::new() },
                longest_step_ns: 500_000,
                complete_from_ns: None,
            }];
            Switches {
                ends: vec!["ping".into()],
                scope: SwitchScope::Cpus(CpuList::one(1)),
                wakes: true,
                interrupts: self.interrupts,
                windows: vec![(0, 500_000)],
                recorder: Some(Recorder { level, by, instead: None, cost: None, others: Vec::new() }),
                events,
                counters,
                ..Switches::default()
            }
        }

        /// The causes of the sleep after the due time: cause, begin, end, lower end.
        fn found(&self, others: &[(i64, SwitchKind)], guests: &[Guest]) -> Vec<(CauseWord, i64, i64, i64)> {
            let seen = [self.seen(others)];
            let thread = Thread {
                tid: SENDER,
                policy: self.policy.to_owned(),
                timer_slack_ns: self.slack_ns,
                ..Thread::default()
            };
            let tables = [ThreadReport {
                ends: vec!["ping".into()],
                pid: SENDER,
                before: vec![thread],
                ..ThreadReport::default()
            }];
            let conduct = Conduct { sleep_until_due: self.sleep_until_due, ..Conduct::default() };
            let threads = Threads::of(&tables, 0, &seen, &Pong::SameClock);
            let threads = threads.of_kernels([self.kernel; 3]).of_conduct(conduct);
            let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests };
            let (leg, what) = (Metric::SendLateness, Doing::Slept(Some(self.state)));
            let piece = Piece { from_ns: DUE_NS, to_ns: WOKEN_NS, leg, end: "ping", thread: SENDER, what };
            let found = shares(&piece, &Timeline::of(&seen, (0, 500_000)), &known);
            found.iter().map(|s| (s.key.cause, s.from_ns, s.to_ns, s.low_ns)).collect()
        }
    }

    const LATE: (CauseWord, i64, i64, i64) = (CauseWord::TimerLate, DUE_NS + 1, 400_000, 299_999);

    #[test]
    fn the_timer_of_a_sender_is_late_if_its_interrupt_comes_long_after_the_due_time() {
        assert_eq!(Case::usual().found(&[TIMER], &[]), [LATE]);
        // Another thread had the CPU meanwhile.
        let hog = SwitchKind::Switch { out: 0, into: HOG, preempted: false, state: None, limit: None };
        assert_eq!(Case::usual().found(&[(60_000, hog), TIMER], &[]), [LATE]);
        // The interrupt was too short to be recorded: it began at most 2 us before the wake-up.
        assert_eq!(Case::usual().found(&[], &[]), [(CauseWord::TimerLate, DUE_NS + 1, 400_000, 299_999)]);
        assert_eq!(Case { by: RecordedBy::Perf, ..Case::usual() }.found(&[], &[]), []);
        // The kernel may delay the timer by the slack of the thread, or by 50 us if the slack is not known.
        let with = |slack_ns| Case { slack_ns, ..Case::usual() }.found(&[TIMER], &[]);
        assert_eq!(with(Some(200_000)), [(CauseWord::TimerLate, 300_000, 400_000, 100_000)]);
        assert_eq!(with(None), [(CauseWord::TimerLate, 150_000, 400_000, 250_000)]);
        assert_eq!(with(Some(260_000)), []);
    }

    #[test]
    fn what_else_the_cpu_handled_after_the_due_time_can_explain_a_late_timer() {
        let found = |at_ns, by| Case::usual().found(&[(at_ns, interrupted(by, 30_000)), TIMER], &[]);
        assert_eq!(found(200_000, Interruption::Irq(7)), []);
        assert_eq!(found(80_000, Interruption::Softirq(3)), []);
        assert_eq!(found(380_000, Interruption::Softirq(3)), []);
        // Before the due time.
        assert_eq!(found(60_000, Interruption::Irq(7)), [LATE]);
    }

    #[test]
    fn a_sender_that_no_timer_woke_has_no_late_timer() {
        let wake = |by, interrupt, packet| SwitchKind::Wake { thread: SENDER, by, interrupt, packet, limit: None };
        for wake in [wake(HOG, false, false), wake(0, true, true)] {
            assert_eq!(Case { wake, ..Case::usual() }.found(&[TIMER], &[]), []);
        }
        for by in [Interruption::Vector(0xfb), Interruption::Softirq(1)] {
            assert_eq!(Case::usual().found(&[(400_000, interrupted(by, 5_000))], &[]), []);
        }
        // It fell asleep after its message was due.
        assert_eq!(Case { asleep_ns: 150_000, ..Case::usual() }.found(&[TIMER], &[]), []);
        // The middleware sets the timer, and may set it late.
        assert_eq!(Case { sleep_until_due: false, ..Case::usual() }.found(&[TIMER], &[]), []);
        assert_eq!(Case { interrupts: false, ..Case::usual() }.found(&[TIMER], &[]), []);
    }

    #[test]
    fn a_thread_runs_the_timers_of_time_sharing_threads_on_real_time_kernels() {
        let kernel = Kernel { is_real_time: true, has_irq_threads: true, is_x86: true, ..Kernel::default() };
        assert_eq!(Case { kernel, ..Case::usual() }.found(&[TIMER], &[]), []);
        assert_eq!(Case { kernel, policy: "fifo 50", ..Case::usual() }.found(&[TIMER], &[]), [LATE]);
    }

    #[test]
    fn a_known_cause_of_the_sleep_comes_before_a_late_timer() {
        let frozen = Case { state: SleepState::Frozen, ..Case::usual() }.found(&[TIMER], &[]);
        assert_eq!(frozen.iter().map(|found| found.0).collect::<Vec<_>>(), [CauseWord::Frozen]);
        // The thread of the virtual CPU waited for a CPU of the host from 200,000 to 300,000.
        const VCPU: i32 = 50;
        let switch = |out, into, preempted| SwitchKind::Switch { out, into, preempted, state: None, limit: None };
        let on_host = [(20_000, switch(0, VCPU, false)), (200_000, switch(VCPU, HOG, true))];
        let then = [(300_000, switch(HOG, VCPU, true)), TIMER];
        let guest = Guest { ends: vec!["ping"], vcpus: [(1, VCPU)].into(), ..Guest::default() };
        let found = Case::usual().found(&[on_host, then].concat(), &[guest]);
        assert_eq!(found.iter().map(|found| found.0).collect::<Vec<_>>(), [CauseWord::WaitedForCpu]);
        // The hypervisor took 300 us or less from the CPU.
        let stolen = Case { steal_ns: 10_000_000, ..Case::usual() }.found(&[TIMER], &[]);
        let bounds = [(CauseWord::TimerLate, DUE_NS + 1, 400_000, 0), (CauseWord::Steal, DUE_NS + 1, 400_000, 0)];
        assert_eq!(stolen, bounds);
    }
}
