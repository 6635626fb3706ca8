//! Test: predictions are what a simulation gives that looks at every nanosecond.

use crate::{Entry, Frame, Prediction, Rule, Schedule, Speed, predict};
use tailbound_stats::SplitMix64;

/// Whether the gate of a class is open, for each nanosecond of `cycles` cycles. The list is carried out entry by entry.
fn gate(schedule: &Schedule, class: u32, rule: Rule, cycles: u64) -> (u64, Vec<bool>) {
    let sum: u64 = schedule.entries.iter().map(|entry| entry.interval_ns).sum();
    let cycle_ns = if schedule.cycle_ns == 0 { sum } else { schedule.cycle_ns };
    let mut open = Vec::new();
    let mut repeats_ns = cycle_ns;
    for cycle in 0.. {
        if cycle == cycles {
            break;
        }
        let begin = open.len() as u64;
        for (number, entry) in schedule.entries.iter().enumerate() {
            let is_extended = rule == Rule::Standard && number + 1 == schedule.entries.len();
            let mut left = if is_extended { u64::MAX } else { entry.interval_ns };
            while left > 0 && (open.len() as u64) < begin + cycle_ns {
                open.push(entry.gates >> class & 1 == 1);
                left -= 1;
            }
        }
        repeats_ns = open.len() as u64 - begin;
    }
    (repeats_ns, open)
}

/// The waits of a frame that needs the wire for `need_ns`, ready at each nanosecond of a cycle; `None` = it is never sent.
fn simulated(repeats_ns: u64, open: &[bool], need_ns: usize) -> Option<Vec<u64>> {
    // Number of nanoseconds for which the gate remains open, from each one on.
    let mut remains = vec![0_usize; open.len() + 1];
    for at in (0..open.len()).rev() {
        remains[at] = if open[at] { remains[at + 1] + 1 } else { 0 };
    }
    let is_always = open.iter().all(|open| *open);
    let one = |ready: u64| {
        let mut starts = ready as usize..open.len();
        starts.find(|at| is_always || remains[*at] >= need_ns).map(|at| at as u64 - ready)
    };
    (0..repeats_ns).map(one).collect()
}

#[test]
fn predictions_are_what_a_simulation_of_every_nanosecond_gives() {
    let seed = 20_261_127;
    println!("seed {seed}");
    let mut random = SplitMix64(seed);
    let mut below = |n: u64| random.bits() % n;
    let (mut fitting, mut wrapping) = (0, 0);
    for number in 0..10_000 {
        let entries = (0..1 + below(6)).map(|_| Entry { gates: below(4) as u32, interval_ns: 1 + below(240) });
        let entries: Vec<Entry> = entries.collect();
        let sum: u64 = entries.iter().map(|entry| entry.interval_ns).sum();
        let cycle_ns = [0, sum, 1 + below(2 * sum)][below(3) as usize];
        let schedule = Schedule { entries, cycle_ns };
        let rule = [Rule::Kernel, Rule::Standard][below(2) as usize];
        // 0.08, 0.32 or 0.8 ns for a byte.
        let bits = [100_000_000_000, 25_000_000_000, 10_000_000_000][below(3) as usize];
        let frame = Frame { bytes: 60 + below(200), speed: Speed::of_bits_per_second(bits).expect("a speed") };
        let (repeats_ns, open) = gate(&schedule, 0, rule, 4);
        let windows = schedule.windows(0, rule);
        assert_eq!(windows.cycle_ns, repeats_ns, "case {number}: {schedule:?} {rule:?}");
        let found = predict(&windows, frame);
        let context = || format!("case {number}: {schedule:?} {rule:?} {frame:?} {found:?}");
        let Some(waits) = simulated(repeats_ns, &open, frame.wire_ns() as usize) else {
            assert!(!found.fits && windows.wait_ns(0, frame).is_none(), "{}", context());
            continue;
        };
        fitting += 1;
        let at = |phase_ns: usize| windows.wait_ns(phase_ns as u64, frame);
        assert!(waits.iter().enumerate().all(|(phase_ns, wait)| at(phase_ns) == Some(*wait)), "{}", context());
        wrapping += u32::from(windows.open.iter().any(|(_, close)| *close > windows.cycle_ns));
        let worst = waits.iter().copied().max();
        let without = waits.iter().filter(|wait| **wait == 0).count() as f64 / repeats_ns as f64;
        let mean = waits.iter().sum::<u64>() as f64 / repeats_ns as f64;
        let Prediction { fits, worst_wait_ns, worst_arrival_ns, mean_wait_ns, share_without_wait } = found.clone();
        assert_eq!((fits, worst_wait_ns), (true, worst), "{}", context());
        let arrival = worst_arrival_ns.expect("an arrival") as usize;
        assert_eq!(Some(waits[arrival]), worst, "{}", context());
        assert!((mean_wait_ns.expect("a mean") - mean).abs() < 1e-9, "{} {mean}", context());
        assert!((share_without_wait.expect("a share") - without).abs() < 1e-12, "{} {without}", context());
    }
    assert!(fitting > 3_000 && wrapping > 500, "{fitting} {wrapping}");
}
