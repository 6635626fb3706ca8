//! Bounds of the time that a thread lost because its CPU stood still or had a low frequency.
//!
//! Input: a time span in which a thread ran. Output: the same time span, divided. Only the upper ends are known: an interrupt of
//! a timer is late as well while the kernel runs with interrupts disabled, and work that waits for memory is not faster at a
//! higher frequency.

use crate::why::course::Piece;
use crate::why::share::{Circumstances, Share, whole};
use crate::why::steal;
use crate::why::timeline::Timeline;
use tailbound_document::{CauseWord, CausedBy, Evidence};
use tailbound_model::Interruption;

/// Longest time for which an interrupt of a device or of the CPU itself is taken to have a CPU, ns: their handlers take far
/// less than a millisecond.
const LONGEST_INTERRUPT_NS: i64 = 5_000_000;
/// Longest time for which one run of a soft interrupt is taken to have an idle CPU, ns: the kernel ends the reception of packets
/// after two ticks, which are at most 20 ms (`netdev_budget_usecs`).
const LONGEST_SOFT_INTERRUPT_NS: i64 = 25_000_000;

/// The causes of a time in which a thread ran on `cpu` with the cause `own`: the hypervisor, if the kernel counted time that
/// it took, and the CPU may have stood still or been slow.
pub(crate) fn ran(
    part: &Piece,
    (cpu, own, evidence): (u32, CauseWord, Evidence),
    timeline: &Timeline,
    known: &Circumstances,
) -> Vec<Share> {
    let slowed_ns = known
        .threads
        .highest_khz(cpu)
        .map_or(0, |full_khz| timeline.pace.slowed_ns(cpu, (part.from_ns, part.to_ns), full_khz));
    let full = known.threads.highest_khz(cpu).map(|khz| CausedBy::named(format!("below {khz} kHz")));
    let frequency = (CauseWord::Frequency, full, slowed_ns);
    let gap_ns = timeline.pace.still_ns(cpu, part.from_ns, part.to_ns);
    let others = [Some((CauseWord::MachineGap, None, gap_ns)), Some(frequency)];
    let divided = steal::divided(whole(part, own, Some(cpu), None, evidence), known).into_iter();
    let bounded = divided.flat_map(|share| match share.key.cause {
        CauseWord::Steal => vec![share],
        _ => bounded(share, cpu, others.clone()),
    });
    bounded.collect()
}

/// Divides a share between its own cause and times in which `cpu`, which ran threads or interrupts all the time, may have stood
/// still.
pub(crate) fn without_standstill(share: Share, cpu: u32, timeline: &Timeline) -> Vec<Share> {
    let gap_ns = timeline.pace.still_ns(cpu, share.from_ns, share.to_ns);
    bounded(share, cpu, [Some((CauseWord::MachineGap, None, gap_ns)), None])
}

/// Divides the share of an interrupt, or of a packet at a soft interrupt, between its own cause and times in which `cpu` may have
/// stood still. Interrupts of devices and of the CPU itself keep the timer's interrupt away, and an idle CPU has no ticks: if
/// one of them seems to last for very long, the CPU may have stood still in it.
pub(crate) fn interrupt(share: Share, by: Interruption, cpu: u32, timeline: &Timeline) -> Vec<Share> {
    // The share can be a part of the interrupt.
    let lasted_ns = timeline.lasted_ns(cpu, by, share.from_ns).max(share.high_ns);
    let is_too_long = match by {
        Interruption::Softirq(_) => {
            lasted_ns > LONGEST_SOFT_INTERRUPT_NS && timeline.had(cpu, share.from_ns) == Some(0)
        }
        Interruption::Irq(_) | Interruption::Vector(_) => lasted_ns > LONGEST_INTERRUPT_NS,
    };
    let gap_ns = if is_too_long { share.high_ns } else { timeline.pace.still_ns(cpu, share.from_ns, share.to_ns) };
    bounded(share, cpu, [Some((CauseWord::MachineGap, None, gap_ns)), None])
}

/// Another cause to which a part of a share may belong, and the largest part, ns.
type Other = (CauseWord, Option<CausedBy>, i64);

fn bounded(share: Share, cpu: u32, others: [Option<Other>; 2]) -> Vec<Share> {
    let others: Vec<Other> = others.into_iter().flatten().filter(|(.., ns)| *ns > 0).collect();
    if others.is_empty() {
        return vec![share];
    }
    let low_ns = (share.low_ns - others.iter().map(|(.., ns)| *ns).sum::<i64>()).max(0);
    let evidence = if low_ns > 0 { share.evidence } else { Evidence::AtMost };
    let rest = Share { low_ns, evidence, ..share.clone() };
    let other = |(cause, by, high_ns): Other| {
        let mut key = share.key.clone();
        (key.cause, key.cpu, key.thread, key.by) = (cause, Some(cpu), None, by);
        Share { key, low_ns: 0, high_ns, evidence: Evidence::AtMost, ..share.clone() }
    };
    std::iter::once(rest).chain(others.into_iter().map(other)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::course::Doing;
    use crate::why::threads::Threads;
    use tailbound_model::{
        Away, Counter, CounterMove, CounterSeries, CpuList, Metric, SwitchEvent, SwitchKind, SwitchScope, Switches,
    };

    const THREAD: i32 = 20;

    /// The causes of the time from 100 to 900 in which a thread ran on CPU 1 (cause, lower end, upper end), if these events
    /// happened there, and this was known before the recorded time.
    fn found(events: &[(i64, u32, SwitchKind)], before: &[SwitchKind], stolen_ns: u64) -> Vec<(CauseWord, i64, i64)> {
        let event = |(at_ns, cpu, what): &(i64, u32, SwitchKind)| SwitchEvent { at_ns: *at_ns, cpu: *cpu, what: *what };
        let into = SwitchKind::Switch { out: 0, into: THREAD, preempted: false, state: None, limit: None };
        let mut all: Vec<SwitchEvent> = [(80, 1, into)].iter().chain(events).map(event).collect();
        all.sort_by_key(|event| event.at_ns);
        let away = |what: &SwitchKind| Away { until_ns: 60, event: SwitchEvent { at_ns: 10, cpu: 1, what: *what } };
        let counters = vec![CounterSeries {
            counter: Counter::StealNs,
            of: "cpu 1".into(),
            moves: if stolen_ns > 0 {
                vec![CounterMove { from_ns: 0, to_ns: 1_000, by: stolen_ns }]
            } else {
                Vec::new()
            },
            longest_step_ns: 1_000,
            complete_from_ns: None,
        }];
        let seen = [Switches {
            ends: vec!["pong".to_owned()],
            scope: SwitchScope::Cpus(CpuList([1, 2].into())),
            interrupts: true,
            windows: vec![(60, 1_000)],
            events: all,
            away: before.iter().map(away).collect(),
            counters,
            ..Switches::default()
        }];
        let timeline = Timeline::of(&seen, (60, 1_000));
        let threads = Threads::of_tasks(&seen);
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[] };
        let (leg, what) = (Metric::Turnaround, Doing::Ran { cpu: 1 });
        let piece = Piece { from_ns: 100, to_ns: 900, leg, end: "pong", thread: THREAD, what };
        let shares = ran(&piece, (1, CauseWord::OwnWork, Evidence::Seen), &timeline, &known);
        for share in &shares {
            assert_eq!(share.evidence == Evidence::AtMost, share.low_ns == 0, "{share:?}");
        }
        shares.into_iter().map(|share| (share.key.cause, share.low_ns, share.high_ns)).collect()
    }

    #[test]
    fn a_cpu_without_ticks_may_have_stood_still() {
        let no_tick = |at_ns, cpu, ns| (at_ns, cpu, SwitchKind::NoTick { ns });
        let own = |low, high| (CauseWord::OwnWork, low, high);
        let gap = |high| (CauseWord::MachineGap, 0, high);
        assert_eq!(found(&[no_tick(200, 1, 300)], &[], 0), [own(500, 800), gap(300)]);
        // It began before the thread ran, and it ended after that.
        assert_eq!(found(&[no_tick(70, 1, 930)], &[], 0), [own(0, 800), gap(800)]);
        assert_eq!(found(&[no_tick(200, 2, 300)], &[], 0), [own(800, 800)]);
        // An interrupt of a device in this time says nothing about the time before it and after it.
        let interrupt = (300, 1, SwitchKind::Interrupted { by: Interruption::Irq(7), ns: 20 });
        assert_eq!(found(&[no_tick(200, 1, 300), interrupt], &[], 0), [own(500, 800), gap(300)]);
        // The interrupt of the timer itself ends the time without ticks.
        let timer = (500, 1, SwitchKind::Interrupted { by: Interruption::Vector(0xec), ns: 5 });
        assert_eq!(found(&[no_tick(200, 1, 300), timer], &[], 0), [own(500, 800), gap(300)]);
        // The kernel counted the time that the hypervisor took; it may not have counted all of it.
        let stolen = [own(0, 800), gap(300), (CauseWord::Steal, 0, 800)];
        assert_eq!(found(&[no_tick(200, 1, 300)], &[], 10_000_000), stolen);
    }

    #[test]
    fn a_low_frequency_takes_at_most_the_time_that_the_highest_one_would_have_saved() {
        let set = |at_ns, khz| (at_ns, 1, SwitchKind::Frequency { khz });
        let frequency = |high| (CauseWord::Frequency, 0, high);
        let had = [SwitchKind::Frequency { khz: 1_000_000 }];
        // Half of the highest frequency, which the CPU gets after the run of the thread.
        let slow = [(CauseWord::OwnWork, 400, 800), frequency(400)];
        assert_eq!(found(&[set(950, 2_000_000)], &had, 0), slow);
        // From 500 on, the thread has the highest frequency.
        assert_eq!(found(&[set(500, 2_000_000)], &had, 0), [(CauseWord::OwnWork, 600, 800), frequency(200)]);
        // One frequency all the time, and no known frequency before the first change.
        assert_eq!(found(&[], &had, 0), [(CauseWord::OwnWork, 800, 800)]);
        assert_eq!(found(&[set(900, 2_000_000)], &[], 0), [(CauseWord::OwnWork, 800, 800)]);
        // Another CPU.
        let other = (950, 2, SwitchKind::Frequency { khz: 2_000_000 });
        assert_eq!(found(&[other], &had, 0), [(CauseWord::OwnWork, 800, 800)]);
    }
}
