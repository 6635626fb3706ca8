//! Threads of the kernel that a message needs: they receive its packet, or wake its sender at the time at which it is due.
//! While such a thread waits for a CPU, so does the message.
//!
//! Input: a time span in which no thread of an end worked on the message. Output: the waits of the kernel thread that it
//! needed.

use crate::why::course::{Doing, Piece};
use crate::why::guest::{Kept, in_turn};
use crate::why::other_clock::{kernel_cpu, kernel_id};
use crate::why::threads::Threads;
use crate::why::timeline::Timeline;
use crate::why::way::{Place, Step};
use tailbound_document::Evidence;
use tailbound_model::{Metric, SleepState};

/// Begins of the names of kernel threads that run soft interrupts, timers of real-time kernels, interrupts of devices, and
/// NAPI.
const NAMES: [&str; 4] = [SOFT_INTERRUPTS, TIMERS, "irq/", "napi/"];
const SOFT_INTERRUPTS: &str = "ksoftirqd/";
const TIMERS: &str = "ktimers/";

/// The soft interrupt that ended a time span.
struct Ended {
    /// Number of the CPU on which it ran.
    cpu: u32,
    /// Id of the thread that had the CPU.
    within: Option<i32>,
    /// How it is known that the message had to wait for it.
    evidence: Evidence,
    /// Begins of the names of the threads of this CPU that the kernel wakes for it.
    woken: &'static [&'static str],
}

/// The times within a piece in which a kernel thread that the message needed waited for a CPU, in their order.
pub(crate) fn kept(piece: &Piece, timeline: &Timeline, threads: &Threads) -> Vec<Kept> {
    let Some(ended) = ended(piece, timeline) else { return Vec::new() };
    let waits = |thread| timeline.kept_ready(thread, piece.from_ns, piece.to_ns);
    let kept = |thread, (from_ns, to_ns, idle), evidence| Kept { from_ns, to_ns, thread, idle, evidence };
    let mut found = Vec::new();
    if let Some(thread) = ended.within.filter(|tid| carries(*tid, threads)) {
        let mut all = waits(thread);
        if ended.evidence == Evidence::Inferred {
            // In an earlier turn, the thread would have woken the thread of the end.
            all = all.pop().into_iter().collect();
        }
        found.extend(all.into_iter().map(|wait| kept(thread, wait, ended.evidence)));
    }
    // Another thread of the CPU can run the soft interrupt before the thread that was woken for it gets the CPU.
    let of_pong = kernel_cpu(ended.cpu) != ended.cpu;
    for name in ended.woken.iter().map(|name| format!("{name}{}", kernel_cpu(ended.cpu))) {
        let same_host = |tid: &i32| (kernel_id(*tid) != *tid) == of_pong && Some(*tid) != ended.within;
        for thread in threads.of_the_kernel(&name).filter(same_host) {
            let last = waits(thread).pop().filter(|(_, to_ns, _)| *to_ns == piece.to_ns);
            found.extend(last.map(|wait| kept(thread, wait, Evidence::Inferred)));
        }
    }
    in_turn(found)
}

fn ended(piece: &Piece, timeline: &Timeline) -> Option<Ended> {
    let woken = |packet: bool, woken| {
        let wake = timeline.woken(piece.thread, piece.to_ns, piece.to_ns).filter(|wake| wake.packet || !packet)?;
        wake.within?;
        Some(Ended { cpu: wake.cpu, within: wake.within, evidence: Evidence::Inferred, woken })
    };
    match piece.what {
        // The packet left the queue of this CPU at the end of the piece.
        Doing::Passed(Step::At(Place::Receive { cpu, .. })) => {
            let within = timeline.had(cpu, piece.to_ns);
            Some(Ended { cpu, within, evidence: Evidence::Seen, woken: &[SOFT_INTERRUPTS] })
        }
        Doing::SleptForMessage(None | Some(SleepState::Interruptible)) => woken(true, &[SOFT_INTERRUPTS]),
        // The sender slept although its message was due.
        Doing::Slept(None | Some(SleepState::Interruptible)) if piece.leg == Metric::SendLateness => {
            woken(false, &[TIMERS, SOFT_INTERRUPTS])
        }
        _ => None,
    }
}

fn carries(tid: i32, threads: &Threads) -> bool {
    threads.is_of_the_kernel(tid) && threads.name(tid).is_some_and(|name| NAMES.iter().any(|n| name.starts_with(n)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::timeline::Idle;
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
        waits_in(Metric::Out, seen, from_ns, what)
    }

    fn waits_in(leg: Metric, seen: &[Switches], from_ns: i64, what: Doing) -> Vec<(i64, i64, Evidence)> {
        let piece = Piece { from_ns, to_ns: 650, leg, end: "pong", thread: RECEIVER, what };
        let found = kept(&piece, &Timeline::of(seen, (0, 1_000)), &Threads::of_tasks(seen));
        assert!(found.iter().all(|kept| kept.thread == CARRIER && matches!(kept.idle, Idle::Ready { cpu: 1, .. })));
        found.iter().map(|kept| (kept.from_ns, kept.to_ns, kept.evidence)).collect()
    }

    #[test]
    fn a_packet_waits_while_the_kernel_thread_that_hands_it_on_waits_for_a_cpu() {
        let seen = seen("ksoftirqd/1", true);
        let slept = Doing::SleptForMessage(Some(SleepState::Interruptible));
        assert_eq!(waits(&seen, 100, slept), [(300, 600, Evidence::Inferred)]);
        // The message was sent after the thread had become ready.
        assert_eq!(waits(&seen, 400, slept), [(400, 600, Evidence::Inferred)]);
        let queued = Doing::Passed(Step::At(Place::Receive { cpu: 1, device: None }));
        assert_eq!(waits(&seen, 400, queued), [(400, 600, Evidence::Seen)]);
        assert_eq!(waits(&seen, 100, Doing::Passed(Step::Between)), []);
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
        assert_eq!(waits_in(Metric::SendLateness, &seen, 100, slept), [(300, 600, Evidence::Inferred)]);
        assert_eq!(waits_in(Metric::Turnaround, &seen, 100, slept), []);
    }

    #[test]
    fn a_thread_in_whose_time_an_interrupt_ran_does_not_carry_packets() {
        let slept = Doing::SleptForMessage(None);
        assert_eq!(waits(&seen("kworker/1:0", true), 100, slept), []);
        assert_eq!(waits(&seen("ksoftirqd/1", false), 100, slept), []);
    }
}
