//! Tests that simulated warm-ups are found where they end, and that no warm-up is found in trials without a warm-up.
//!
//! Fixed seeds: the outcome is the same on every machine.

use crate::random::Random;
use tailbound_stats::{BlockMedians, WarmUp};

fn found(values: &[i64]) -> Option<WarmUp> {
    let mut medians = BlockMedians::default();
    // The values are added in uneven pieces, like the batches of a record.
    values.chunks(1_013).for_each(|piece| medians.push_all(piece));
    medians.warm_up()
}

/// Draws latencies of about 60 us with stalls: one in `every` messages begins a stall that lasts about `long` messages.
fn stalling(random: &mut Random, n: usize, every: f64, long: f64) -> Vec<i64> {
    let mut left = 0.0f64;
    let mut value = |_| {
        if random.unit() < 1.0 / every {
            left = left.max(long * random.exponential());
        }
        let late = 20_000.0 * left;
        left = (left - 1.0).max(0.0);
        (50_000.0 + 10_000.0 * random.exponential() + late) as i64
    };
    (0..n).map(&mut value).collect()
}

#[test]
fn a_planted_warm_up_is_found_where_it_ends() {
    for (n, warm, factor, seed) in
        [(60_000, 1_200, 1.3, 1), (10_000, 2_000, 1.1, 2), (2_000, 200, 2.0, 3), (60_000, 6_000, 0.8, 4)]
    {
        let mut random = Random::seeded(seed);
        let mut close = 0;
        for _ in 0..20 {
            let mut values = stalling(&mut random, n, 2_000.0, 20.0);
            values[..warm].iter_mut().for_each(|v| *v = (*v as f64 * factor) as i64);
            let Some(WarmUp { slots, of, before_ns, after_ns }) = found(&values) else { continue };
            assert_eq!(of, n as u64);
            let ratio = before_ns / after_ns;
            assert!((ratio - factor).abs() < 0.1 * factor, "{ratio} for {factor}");
            close += u32::from(slots.abs_diff(warm as u64) as usize <= n / 40);
        }
        assert!(close >= 18, "{warm} of {n}, {factor}: {close} of 20");
    }
}

/// If a warm-up fades gradually, the detected end of the warm-up is where little of the additional latency is left.
#[test]
fn a_warm_up_that_fades_is_found() {
    let mut values = stalling(&mut Random::seeded(5), 40_000, 2_000.0, 20.0);
    values.iter_mut().enumerate().for_each(|(k, v)| *v += (60_000.0 * (-(k as f64) / 2_000.0).exp()) as i64);
    let end = found(&values).expect("a warm-up").slots;
    // 5 % of 57 us is left after 6,100 messages.
    assert!((3_500..9_000).contains(&end), "{end}");
}

#[test]
fn stationary_trials_have_none() {
    for (n, every, long, seed) in [
        (10_000, 2_000.0, 20.0, 6),
        (10_000, 500.0, 20.0, 7),
        (40_000, 4_000.0, 400.0, 8),
        (1_000, 200.0, 10.0, 9),
        (400, 50.0, 5.0, 10),
    ] {
        let mut random = Random::seeded(seed);
        let invented = (0..100).filter(|_| found(&stalling(&mut random, n, every, long)).is_some()).count();
        assert!(invented <= 5, "{n} {every} {long}: {invented} of 100");
    }
}

#[test]
fn what_has_no_beginning() {
    assert_eq!(found(&[]), None);
    assert_eq!(found(&[5; 300]), None);
    assert_eq!(found(&[5; 10_000]), None);
    // A change in the second half of a trial is not a warm-up.
    let late: Vec<i64> = (0..10_000).map(|k| if k < 7_000 { 90_000 } else { 50_000 }).collect();
    assert_eq!(found(&late), None);
    let early: Vec<i64> = (0..10_000).map(|k| if k < 3_000 { 90_000 } else { 50_000 }).collect();
    let end = found(&early).unwrap();
    assert_eq!((end.before_ns, end.after_ns), (90_000.0, 50_000.0));
    assert!(end.slots.abs_diff(3_000) <= 32, "{end:?}");
}

/// A message without an answer has no latency. The value that marks the missing latency must not be taken for a latency
/// of 292 years.
#[test]
fn lost_messages_are_no_level() {
    let warm = |n: usize| {
        let mut values = stalling(&mut Random::seeded(6), n, 2_000.0, 20.0);
        values[..2_000].iter_mut().for_each(|v| *v *= 2);
        values
    };
    // The second half is lost: no steady level is known.
    let mut values = warm(20_000);
    values[10_000..].fill(i64::MAX);
    assert_eq!(found(&values), None);
    // A part of the second half is lost: both medians are of messages that were answered.
    let mut values = warm(20_000);
    values[12_000..14_000].fill(i64::MAX);
    let WarmUp { slots, before_ns, after_ns, .. } = found(&values).expect("a warm-up");
    assert!(slots.abs_diff(2_000) < 500, "{slots}");
    assert!(before_ns < 300_000.0 && after_ns < 150_000.0, "{before_ns} {after_ns}");
}
