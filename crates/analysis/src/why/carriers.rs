//! Threads of the kernel that a message needs: they receive its packet, or wake its sender at the time at which it is due.
//! While such a thread waits for a CPU, so does the message.
//!
//! Input: a time span in which no thread of an end worked on the message. Output: the waits of the kernel thread that it
//! needed.

use crate::why::course::{Doing, Piece};
use crate::why::guest::{Kept, in_turn, without};
use crate::why::other_clock::{Machine, kernel_cpu};
use crate::why::threads::Threads;
use crate::why::timeline::{Idle, Timeline};
use crate::why::way::{Place, Step};
use tailbound_document::Evidence;
use tailbound_model::{Metric, SleepState};

/// Begins of the names of the kernel threads that receive packets in soft interrupts, one for each CPU.
const RECEIVERS: [&str; 2] = ["ksoftirqd/", "backlog_napi/"];
/// Begins of the names of the kernel threads that run timers of time-sharing threads on real-time kernels, one for each CPU.
const TIMERS: [&str; 2] = ["ktimers/", "ksoftirqd/"];
/// Begins of the names of the kernel threads that receive packets without a soft interrupt: for the queue of a CPU, and for a
/// card (threaded NAPI).
const POLLERS: [&str; 2] = ["backlog_napi/", "napi/"];
/// Begin of the names of the kernel threads that run the handler of an interrupt. Where all interrupts have such threads, the
/// threads also run the soft interrupts that the handlers raise.
const HANDLER: &str = "irq/";
/// Longest time between the end of a wait of a kernel thread and the wake-up that it causes, ns, if only the order of the events
/// shows that the wait delayed the message: what the thread does later may be due to a packet that came later.
const LONGEST_TURN_NS: i64 = 300_000;

/// What ended a time span: a soft interrupt, or a kernel thread that receives packets without one.
struct Ended {
    /// Number of the CPU on which it ran.
    cpu: u32,
    /// Id of the thread that had the CPU.
    within: i32,
    /// How it is known that the message had to wait for it.
    evidence: Evidence,
    /// Begins of the names of the threads of this CPU that the kernel wakes for it.
    woken: &'static [&'static str],
}

/// The times within a piece in which a kernel thread that the message needed waited for a CPU, in their order.
pub(crate) fn kept(piece: &Piece, timeline: &Timeline, threads: &Threads) -> Vec<Kept> {
    let Some(ended) = ended(piece, timeline, threads) else { return Vec::new() };
    let machine = Machine::of_cpu(ended.cpu);
    if ended.woken == RECEIVERS && is_poller(ended.within, threads) {
        return in_turn(waits(ended.within, &ended, piece, timeline, threads));
    }
    // The thread in which the soft interrupt ran comes first: others that were woken for it wait as long, as a rule.
    let mut first = Vec::new();
    if ended.woken == RECEIVERS && is_in_a_handler_or_timers(&ended, threads) {
        first = in_turn(waits(ended.within, &ended, piece, timeline, threads));
    }
    let mut found = Vec::new();
    for name in ended.woken.iter().map(|name| format!("{name}{}", kernel_cpu(ended.cpu))) {
        for thread in threads.of_the_kernel(&name).filter(|tid| Machine::of_thread(*tid) == machine) {
            let of_thread = waits(thread, &ended, piece, timeline, threads).into_iter();
            found.extend(of_thread.flat_map(|kept| without(kept, &first)));
        }
    }
    found.extend(first);
    in_turn(found)
}

/// Whether a thread of the kernel receives packets without a soft interrupt.
fn is_poller(thread: i32, threads: &Threads) -> bool {
    let has_name = |name: String| POLLERS.iter().any(|begin| name.starts_with(begin));
    threads.is_of_the_kernel(thread) && threads.name(thread).is_some_and(has_name)
}

/// Whether the soft interrupt ran in the thread of an interrupt, or in the thread that runs timers. The latter also runs what else
/// its CPU has to do in soft interrupts, if it gets the CPU first.
fn is_in_a_handler_or_timers(ended: &Ended, threads: &Threads) -> bool {
    let timers = format!("ktimers/{}", kernel_cpu(ended.cpu));
    let kernel = threads.kernel(ended.cpu);
    let is_handler = |name: &str| kernel.has_irq_threads && name.starts_with(HANDLER);
    let is_one = |name: String| is_handler(&name) || kernel.is_real_time && name == timers;
    threads.is_of_the_kernel(ended.within) && threads.name(ended.within).is_some_and(is_one)
}

/// The waits of one thread that the kernel wakes for the soft interrupt.
fn waits(thread: i32, ended: &Ended, piece: &Piece, timeline: &Timeline, threads: &Threads) -> Vec<Kept> {
    let mut all = timeline.kept_ready(thread, piece.from_ns, piece.to_ns);
    let mut evidence = ended.evidence;
    if thread != ended.within {
        // On a real-time kernel, another thread of the CPU can run the soft interrupt before the thread that was woken for it
        // gets the CPU. Other kernels run it without any thread.
        let last = all.pop().filter(|(_, to_ns, _)| *to_ns == piece.to_ns && threads.kernel(ended.cpu).is_real_time);
        all = last.into_iter().collect();
        evidence = evidence.max(Evidence::Inferred);
    } else if evidence != Evidence::Seen {
        // In an earlier turn, the thread would have woken the thread of the end.
        let last = all.pop().filter(|(_, to_ns, _)| piece.to_ns - to_ns <= LONGEST_TURN_NS);
        all = last.into_iter().collect();
    }
    let mut found = Vec::new();
    for (from_ns, to_ns, idle) in all {
        let mut kept = Kept { from_ns, to_ns, thread, idle, evidence };
        if let Idle::Ready { cpu, .. } = idle
            && threads.kernel(ended.cpu).is_real_time
            && let Some(since_ns) = timeline.locked_out_since(thread, from_ns, cpu)
        {
            kept.from_ns = since_ns.max(piece.from_ns);
            kept.evidence = evidence.max(Evidence::Inferred);
        }
        found.push(kept);
    }
    found
}

fn ended(piece: &Piece, timeline: &Timeline, threads: &Threads) -> Option<Ended> {
    let any_wake = || timeline.woken(piece.thread, piece.to_ns, piece.to_ns);
    let wake = || any_wake().filter(|wake| threads.kernel(wake.cpu).has_irq_threads);
    match piece.what {
        // The packet left the queue of this CPU at the end of the piece.
        Doing::Passed(Step::At(Place::Receive { cpu, .. }), evidence) => {
            let within = timeline.had(cpu, piece.to_ns)?;
            Some(Ended { cpu, within, evidence, woken: &RECEIVERS })
        }
        Doing::SleptForMessage(None | Some(SleepState::Interruptible)) => {
            let poller = any_wake().and_then(|wake| Some((wake.cpu, wake.by.filter(|by| is_poller(*by, threads))?)));
            let (cpu, within) = match poller {
                Some(found) => found,
                None => wake().filter(|wake| wake.packet).and_then(|wake| Some((wake.cpu, wake.within?)))?,
            };
            // Between two machines, the packet can have been anywhere while the thread waited.
            let is_one = threads.kernel(cpu).is_one && !timeline.misses_host();
            let evidence = if is_one { Evidence::Inferred } else { Evidence::AtMost };
            Some(Ended { cpu, within, evidence, woken: &RECEIVERS })
        }
        // The sender slept although its message was due. Timers of real-time threads need no thread.
        Doing::Slept(None | Some(SleepState::Interruptible))
            if piece.leg == Metric::SendLateness && !threads.is_real_time(piece.thread) =>
        {
            let wake = wake().filter(|wake| threads.kernel(wake.cpu).is_real_time)?;
            Some(Ended { cpu: wake.cpu, within: wake.within?, evidence: Evidence::Inferred, woken: &TIMERS })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::kernels::Kernel;
    use tailbound_model::{CpuList, SwitchEvent, SwitchKind, SwitchScope, Switches, Task};

    const RECEIVER: i32 = 20;
    const CARRIER: i32 = 30;
    const HOG: i32 = 40;

    /// On CPU 1: the carrier is woken at 300 while the hog runs, waits until 600, and wakes the receiver at 650, for a packet.
    fn seen(name: &str, kernel: bool) -> [Switches; 1] {
        let event = |at_ns, what| SwitchEvent { at_ns, cpu: 1, what };
        let switch = |out, into, preempted, state| SwitchKind::Switch { out, into, preempted, state, limit: None };
        let wake = |thread, by, packet| SwitchKind::Wake { thread, by, interrupt: true, packet, limit: None };
        let asleep = Some(SleepState::Interruptible);
        let events = vec![
            event(50, switch(CARRIER, RECEIVER, false, asleep)),
            event(100, switch(RECEIVER, HOG, false, asleep)),
            event(300, wake(CARRIER, HOG, false)),
            event(600, switch(HOG, CARRIER, false, asleep)),
            event(650, wake(RECEIVER, CARRIER, true)),
            event(700, switch(CARRIER, RECEIVER, false, asleep)),
        ];
        let task = Task { name: name.into(), policy: None, process: None, kernel };
        let scope = SwitchScope::Cpus(CpuList([1].into()));
        [Switches { scope, wakes: true, events, tasks: [(CARRIER, task)].into(), ..Switches::default() }]
    }

    /// The waits of the carrier in a piece that ends at 650: begin, end, evidence.
    fn waits(seen: &[Switches], from_ns: i64, what: Doing) -> Vec<(i64, i64, Evidence)> {
        waits_in(Metric::Out, REAL_TIME, seen, from_ns, what)
    }

    const REAL_TIME: Kernel = Kernel {
        throttles: true,
        is_real_time: true,
        has_irq_threads: true,
        is_x86: false,
        is_emulated: false,
        is_one: true,
    };

    fn waits_in(
        leg: Metric,
        kernel: Kernel,
        seen: &[Switches],
        from_ns: i64,
        what: Doing,
    ) -> Vec<(i64, i64, Evidence)> {
        let piece = Piece { from_ns, to_ns: 650, leg, end: "pong", thread: RECEIVER, what };
        let found = kept(&piece, &Timeline::of(seen, (0, 1_000)), &Threads::of_tasks(seen).of_kernels([kernel; 3]));
        assert!(found.iter().all(|kept| kept.thread == CARRIER && matches!(kept.idle, Idle::Ready { .. })));
        found.iter().map(|kept| (kept.from_ns, kept.to_ns, kept.evidence)).collect()
    }

    #[test]
    fn a_packet_waits_while_the_kernel_thread_that_hands_it_on_waits_for_a_cpu() {
        let seen = seen("ksoftirqd/1", true);
        let slept = Doing::SleptForMessage(Some(SleepState::Interruptible));
        assert_eq!(waits(&seen, 100, slept), [(300, 600, Evidence::Inferred)]);
        // The message was sent after the thread had become ready.
        assert_eq!(waits(&seen, 400, slept), [(400, 600, Evidence::Inferred)]);
        let queued = Doing::Passed(Step::At(Place::Receive { cpu: 1, device: None }), Evidence::Seen);
        assert_eq!(waits(&seen, 400, queued), [(400, 600, Evidence::Seen)]);
        assert_eq!(waits(&seen, 100, Doing::Passed(Step::Between, Evidence::Seen)), []);
        // Other kernels receive packets without the thread; what their events show is true of them, too.
        let other = Kernel { is_real_time: false, has_irq_threads: false, ..REAL_TIME };
        assert_eq!(waits_in(Metric::Out, other, &seen, 100, slept), []);
        assert_eq!(waits_in(Metric::Out, other, &seen, 400, queued), [(400, 600, Evidence::Seen)]);
        let two_hosts = Kernel { is_one: false, ..REAL_TIME };
        assert_eq!(waits_in(Metric::Out, two_hosts, &seen, 100, slept), [(300, 600, Evidence::AtMost)]);
    }

    /// Test: on a real-time kernel, the soft interrupt for a packet can run in the thread that runs the timers of its CPU.
    #[test]
    fn a_packet_waits_for_the_thread_of_the_timers_if_that_thread_receives_it() {
        let slept = Doing::SleptForMessage(Some(SleepState::Interruptible));
        assert_eq!(waits(&seen("ktimers/1", true), 100, slept), [(300, 600, Evidence::Inferred)]);
        assert_eq!(waits(&seen("ktimers/0", true), 100, slept), []);
        // The thread that was woken for the packet before still waits.
        const WOKEN: i32 = 50;
        let mut both = seen("ktimers/1", true);
        let wake = SwitchKind::Wake { thread: WOKEN, by: HOG, interrupt: true, packet: false, limit: None };
        both[0].events.insert(2, SwitchEvent { at_ns: 200, cpu: 1, what: wake });
        let run = SwitchKind::Switch { out: CARRIER, into: WOKEN, preempted: false, state: None, limit: None };
        both[0].events.last_mut().unwrap().what = run;
        let task = Task { name: "ksoftirqd/1".into(), policy: None, process: None, kernel: true };
        both[0].tasks.insert(WOKEN, task);
        let piece = Piece { from_ns: 100, to_ns: 650, leg: Metric::Out, end: "pong", thread: RECEIVER, what: slept };
        let threads = Threads::of_tasks(&both).of_kernels([REAL_TIME; 3]);
        let found = kept(&piece, &Timeline::of(&both, (0, 1_000)), &threads);
        let covered: i64 = found.iter().map(|kept| (kept.to_ns - kept.from_ns).max(0)).sum();
        assert_eq!((found[0].from_ns, found[0].thread, covered), (200, WOKEN, 450), "{found:?}");
        let other = Kernel { is_real_time: false, has_irq_threads: false, ..REAL_TIME };
        assert_eq!(waits_in(Metric::Out, other, &seen("ktimers/1", true), 100, slept), []);
    }

    /// Test: a soft interrupt runs in the thread of the interrupt that raised it, where all interrupts have threads. Other kernels
    /// have such threads for a few devices, and run soft interrupts in whatever thread has the CPU.
    #[test]
    fn a_packet_waits_for_the_thread_of_the_interrupt_of_its_card() {
        let slept = Doing::SleptForMessage(Some(SleepState::Interruptible));
        let found = |kernel, of_kernel| waits_in(Metric::Out, kernel, &seen("irq/25-virtio0-i", of_kernel), 100, slept);
        let threadirqs = Kernel { is_real_time: false, ..REAL_TIME };
        let stock = Kernel { has_irq_threads: false, ..threadirqs };
        for kernel in [REAL_TIME, threadirqs] {
            assert_eq!(found(kernel, true), [(300, 600, Evidence::Inferred)]);
            assert_eq!(found(kernel, false), [], "a thread of a program with this name");
        }
        assert_eq!(found(stock, true), []);
    }

    /// Test: a thread that receives packets without a soft interrupt wakes the receiver itself, on every kernel.
    #[test]
    fn a_packet_waits_for_a_kernel_thread_that_receives_without_a_soft_interrupt() {
        for name in ["backlog_napi/1", "napi/eth0-8193"] {
            let mut seen = seen(name, true);
            seen[0].events[4].what =
                SwitchKind::Wake { thread: RECEIVER, by: CARRIER, interrupt: false, packet: false, limit: None };
            let slept = Doing::SleptForMessage(Some(SleepState::Interruptible));
            let other = Kernel { is_real_time: false, has_irq_threads: false, ..REAL_TIME };
            for kernel in [REAL_TIME, other] {
                assert_eq!(
                    waits_in(Metric::Out, kernel, &seen, 100, slept),
                    [(300, 600, Evidence::Inferred)],
                    "{name}"
                );
            }
            seen[0].tasks.get_mut(&CARRIER).unwrap().kernel = false;
            assert_eq!(waits(&seen, 100, slept), [], "{name}");
        }
    }

    #[test]
    fn another_thread_of_the_cpu_runs_the_soft_interrupt_before_the_thread_that_was_woken_for_it() {
        let mut seen = seen("ksoftirqd/1", true);
        let slept = Doing::SleptForMessage(None);
        // The hog, and not the carrier, has the CPU until after the receiver is woken.
        seen[0].events.retain(|e| e.at_ns != 600);
        let wake = SwitchKind::Wake { thread: RECEIVER, by: HOG, interrupt: true, packet: true, limit: None };
        seen[0].events[3].what = wake;
        seen[0].events[4].what =
            SwitchKind::Switch { out: HOG, into: CARRIER, preempted: false, state: None, limit: None };
        assert_eq!(waits(&seen, 100, slept), [(300, 650, Evidence::Inferred)]);
        // The carrier was woken on a CPU for which it does not receive packets.
        seen[0].tasks.get_mut(&CARRIER).unwrap().name = "ksoftirqd/0".into();
        assert_eq!(waits(&seen, 100, slept), []);
    }

    #[test]
    fn a_sender_wakes_late_while_the_kernel_thread_of_its_timer_waits_for_a_cpu() {
        let seen = seen("ktimers/1", true);
        let slept = Doing::Slept(Some(SleepState::Interruptible));
        assert_eq!(waits_in(Metric::SendLateness, REAL_TIME, &seen, 100, slept), [(300, 600, Evidence::Inferred)]);
        assert_eq!(waits_in(Metric::Turnaround, REAL_TIME, &seen, 100, slept), []);
    }

    /// Test: on real-time kernels, a thread that receives packets also keeps the timers of its CPU from running, by a lock.
    #[test]
    fn a_kernel_thread_waits_for_a_lock_that_the_thread_before_it_has() {
        let mut seen = seen("ktimers/1", true);
        let switch = |out, into, state: Option<SleepState>| SwitchKind::Switch {
            out,
            into,
            preempted: state.is_none(),
            state,
            limit: None,
        };
        let wake = |by, interrupt| SwitchKind::Wake { thread: CARRIER, by, interrupt, packet: false, limit: None };
        let at = |at_ns, what| SwitchEvent { at_ns, cpu: 1, what };
        // The carrier gets the CPU at 200, and at 210 the lock is taken; the hog, which has it, goes on until 590.
        seen[0].events.retain(|event| event.at_ns != 300);
        seen[0].events.extend([
            at(190, wake(HOG, true)),
            at(200, switch(HOG, CARRIER, None)),
            at(210, switch(CARRIER, HOG, Some(SleepState::KernelLock))),
            at(590, wake(HOG, false)),
        ]);
        seen[0].events.sort_by_key(|event| event.at_ns);
        let slept = Doing::Slept(Some(SleepState::Interruptible));
        let found = |seen: &[Switches]| waits_in(Metric::SendLateness, REAL_TIME, seen, 100, slept);
        assert_eq!(found(&seen), [(210, 600, Evidence::Inferred)], "{:?}", seen[0].events);
        // Who wakes it by an interrupt did not have the lock.
        for event in seen[0].events.iter_mut().filter(|event| event.at_ns == 590) {
            event.what = wake(HOG, true);
        }
        assert_eq!(found(&seen), [(590, 600, Evidence::Inferred)]);
    }

    #[test]
    fn a_wait_long_before_the_wake_up_does_not_count() {
        let mut seen = seen("ksoftirqd/1", true);
        seen[0].events[4].at_ns = 600 + LONGEST_TURN_NS + 1;
        seen[0].events[5].at_ns = 600 + LONGEST_TURN_NS + 2;
        let what = Doing::SleptForMessage(None);
        let to_ns = 600 + LONGEST_TURN_NS + 1;
        let piece = Piece { from_ns: 100, to_ns, leg: Metric::Out, end: "pong", thread: RECEIVER, what };
        let threads = Threads::of_tasks(&seen).of_kernels([REAL_TIME; 3]);
        assert_eq!(kept(&piece, &Timeline::of(&seen, (0, to_ns + 500)), &threads), []);
    }

    #[test]
    fn a_thread_in_whose_time_an_interrupt_ran_does_not_carry_packets() {
        let slept = Doing::SleptForMessage(None);
        assert_eq!(waits(&seen("kworker/1:0", true), 100, slept), []);
        assert_eq!(waits(&seen("ksoftirqd/1", false), 100, slept), []);
    }
}
