//! Two clocks of which one is stepped or changes its speed: for every message outside the reported changes, the bounds must
//! enclose the true difference.

use crate::random::Random;
use tailbound_stats::{ClockMessage, ClockReading, NoBounds, SteadyParts, SteadySearch};

const START: i64 = 7_777_777_777_777;
const PERIOD: i64 = 1_000_000;

/// A clock that is ahead by an offset and runs faster by a drift (ns per s) from this time on, ns.
#[derive(Clone, Copy)]
struct Line {
    from_ns: i64,
    offset_ns: i64,
    drift: f64,
}

/// Time by which the clock is ahead at a true time.
fn ahead(lines: &[Line], at_ns: i64) -> i64 {
    let line = lines.iter().rev().find(|line| line.from_ns <= at_ns).unwrap_or(&lines[0]);
    line.offset_ns + (line.drift * (at_ns - line.from_ns) as f64 / 1e9) as i64
}

/// Messages every millisecond, of which some answers are lost and some arrive milliseconds later.
fn messages(count: i64, lines: &[Line], random: &mut Random) -> Vec<ClockMessage> {
    let mut delay = |least: f64, mean: f64| (least + mean * random.exponential()) as i64;
    let message = |k: i64| {
        let sent = START + k * PERIOD;
        let arrived = sent + delay(12_000.0, 8_000.0);
        let answered = arrived + 3_000;
        let slow = if k % 97 == 0 { 4_000_000 } else { 0 };
        let received = answered + slow + delay(31_000.0, 40_000.0);
        let there = |lost: bool| !lost;
        ClockMessage {
            sent_a_ns: sent,
            arrived_b_ns: there(k % 31 == 0).then(|| arrived + ahead(lines, arrived)),
            answered_b_ns: there(k % 31 == 0).then(|| answered + ahead(lines, answered)),
            received_a_ns: there(k % 13 == 0).then_some(received),
        }
    };
    (0..count).map(message).collect()
}

fn parts(messages: &[ClockMessage]) -> Result<SteadyParts, NoBounds> {
    let mut search = SteadySearch::default();
    messages.iter().for_each(|message| search.add(message));
    search.finish()
}

/// Checks every message outside the changes, and returns the number of messages in them.
fn check(parts: &SteadyParts, messages: &[ClockMessage], lines: &[Line], case: &str) -> u64 {
    let mut changed = 0;
    for message in messages {
        let at = message.sent_a_ns;
        let within = parts.changes().iter().any(|change| (change.from_ns..=change.to_ns).contains(&at));
        match parts.at(at) {
            Some(bounds) => {
                let ([low, high], truth) = (bounds.offset_ns(at), ahead(lines, at));
                assert!(!within && low <= truth && truth <= high, "{case}: at {at}: {truth} not in {low} to {high}");
            }
            None => {
                assert!(within, "{case}: neither bounds nor a change at {at}");
                changed += 1;
            }
        }
    }
    assert_eq!(changed, parts.changes().iter().map(|change| change.messages).sum::<u64>(), "{case}");
    changed
}

#[test]
fn steps_are_found_and_the_bounds_around_them_hold_the_truth() {
    for seed in 0..60 {
        let mut random = Random::seeded(seed);
        let count = 6_000 + (random.unit() * 60_000.0) as i64;
        let steps = 1 + seed as i64 % 5;
        let mut offset_ns = ((random.unit() - 0.5) * 4e18) as i64;
        let drift = (random.unit() - 0.5) * 200_000.0;
        let mut lines = vec![Line { from_ns: START, offset_ns, drift }];
        for n in 0..steps {
            let from_ns = START + (count * PERIOD / (steps + 1)) * (n + 1) + (random.unit() * 7e8) as i64;
            let size = [200_000.0, 1e6, 3.6e12][seed as usize % 3] * (1.0 + random.unit());
            let by = if random.unit() < 0.5 { size } else { -size };
            offset_ns = ahead(&lines, from_ns) + by as i64;
            lines.push(Line { from_ns, offset_ns, drift });
        }
        let messages = messages(count, &lines, &mut random);
        let parts = parts(&messages).unwrap();
        let case = format!("seed {seed}");
        let changed = check(&parts, &messages, &lines, &case);
        assert_eq!(parts.changes().len() as i64, steps, "{case}: {:?}", parts.changes());
        for (change, line) in parts.changes().iter().zip(&lines[1..]) {
            assert!(change.from_ns <= line.from_ns && line.from_ns <= change.to_ns, "{case}: {change:?}");
            let step = line.offset_ns - ahead(&lines, line.from_ns - 1);
            assert!(
                change.least_ns.signum() == step.signum() && change.least_ns.abs() <= step.abs(),
                "{case}: {change:?}, not {step}"
            );
            assert!(
                change.step_ns.is_some_and(|[low, high]| low <= step && step <= high),
                "{case}: {change:?}, not {step}"
            );
            // Beside the width of the bounds, about 50 us.
            assert!(change.least_ns.abs() > step.abs() - 120_000, "{case}: {change:?}, not {step}");
        }
        assert!(changed < 120 * steps as u64, "{case}: {changed} messages of {count}");
        assert!(parts.whole().is_none() && parts.steady_share() > 0.9, "{case}");
    }
}

#[test]
fn changes_of_the_speed_are_found_and_the_bounds_around_them_hold_the_truth() {
    for seed in 0..30 {
        let mut random = Random::seeded(1_000 + seed);
        let count = 30_000;
        let mut lines = vec![Line { from_ns: START, offset_ns: -5_000_000_000, drift: 40_000.0 }];
        for n in 1..=seed as i64 % 3 + 1 {
            let from_ns = START + n * 8_000_000_000 + (random.unit() * 1e9) as i64;
            let drift = 40_000.0 + if n % 2 == 1 { 300_000.0 } else { 0.0 };
            lines.push(Line { from_ns, offset_ns: ahead(&lines, from_ns), drift });
        }
        let messages = messages(count, &lines, &mut random);
        let parts = parts(&messages).unwrap();
        let case = format!("seed {seed}");
        check(&parts, &messages, &lines, &case);
        assert_eq!(parts.changes().len(), lines.len() - 1, "{case}");
        assert!(parts.changes().iter().all(|change| change.least_ns == 0), "{case}: {:?}", parts.changes());
        assert!(parts.steady_share() > 0.9, "{case}: {}", parts.steady_share());
    }
}

#[test]
fn a_clock_that_is_stepped_all_the_time_has_hardly_a_steady_part() {
    let step = |n: i64| Line { from_ns: START + n * 20 * PERIOD, offset_ns: n * n * 400_000, drift: 0.0 };
    let lines: Vec<Line> = (0..500).map(step).collect();
    let messages = messages(10_000, &lines, &mut Random::seeded(1));
    let parts = parts(&messages).unwrap();
    check(&parts, &messages, &lines, "stepped");
    assert!(parts.steady_share() < 0.5, "{}", parts.steady_share());
}

#[test]
fn a_steady_clock_has_one_part_however_many_messages_there_are() {
    let lines = [Line { from_ns: START, offset_ns: 123_456_789, drift: -7_000.0 }];
    for count in [1, 8, 9, 4_000, 300_000] {
        let messages = messages(count + 1, &lines, &mut Random::seeded(2));
        let parts = parts(&messages).unwrap();
        assert_eq!((parts.changes(), parts.begin_ns()), (&[][..], START), "{count}");
        assert_eq!(check(&parts, &messages, &lines, "steady"), 0);
        let [low, high] = parts.whole().unwrap().offset_ns(START);
        assert!(count < 1_000 || high - low < 60_000, "{count}: {low} to {high}");
    }
}

#[test]
fn messages_in_one_direction_have_no_parts() {
    assert_eq!(parts(&[]), Err(NoBounds::OneWay));
    let one = ClockMessage { sent_a_ns: 1, arrived_b_ns: Some(2), answered_b_ns: None, received_a_ns: None };
    assert_eq!(parts(&[one; 100]), Err(NoBounds::OneWay));
}

/// Readings of a clock every second, each of them between two readings of the other clock that are up to 20 us apart.
fn readings(count: i64, lines: &[Line], random: &mut Random) -> Vec<ClockReading> {
    let reading = |k: i64| {
        let at = START + k * 1_000_000_000;
        let mut until = || (10_000.0 * random.unit()) as i64;
        ClockReading { before_a_ns: at - until(), clock_b_ns: at + ahead(lines, at), after_a_ns: at + until() }
    };
    (0..count).map(reading).collect()
}

fn parts_of_readings(readings: &[ClockReading]) -> SteadyParts {
    let mut search = SteadySearch::default();
    readings.iter().for_each(|reading| search.add_reading(reading));
    search.finish().unwrap()
}

/// Test: the ranges of each step and of each change of the rate hold the truth. A step or a change that is larger than the widths of
/// the readings is found; a steady clock has none.
#[test]
fn readings_of_a_clock_prove_its_steps_and_changes_of_rate() {
    for seed in 0..300 {
        let mut random = Random::seeded(5_000 + seed);
        let changes = seed as i64 % 4;
        let drift = |random: &mut Random| (random.unit() - 0.5) * 200_000.0;
        let mut lines = vec![Line { from_ns: START, offset_ns: -37_000_000_000, drift: drift(&mut random) }];
        for n in 1..=changes {
            let from_ns = START + n * 20_000_000_000 + (random.unit() * 3e9) as i64;
            let (before, by) = (lines[lines.len() - 1].drift, if random.unit() < 0.5 { -1.0 } else { 1.0 });
            let [step, rate] = if random.unit() < 0.5 { [by * 400_000.0, 0.0] } else { [0.0, by * 20_000.0] };
            lines.push(Line { from_ns, offset_ns: ahead(&lines, from_ns) + step as i64, drift: before + rate });
        }
        let parts = parts_of_readings(&readings(20 * (changes + 1), &lines, &mut random));
        let found = parts.changes();
        assert_eq!(found.len() as i64, changes, "seed {seed}: {found:?}");
        for ((change, line), n) in found.iter().zip(&lines[1..]).zip(0..) {
            let case = format!("seed {seed}: {change:?}");
            let step = line.offset_ns - ahead(&lines[..=n], line.from_ns);
            let rate = line.drift - lines[n].drift;
            let ([low, high], [slow, fast]) = (change.step_ns.unwrap(), change.rate_change_ns_per_s.unwrap());
            assert!(change.from_ns <= line.from_ns && line.from_ns <= change.to_ns, "{case}: {}", line.from_ns);
            assert!(low <= step && step <= high, "{case}: {step}");
            assert!(slow as f64 <= rate && rate <= fast as f64, "{case}: {rate}");
            // What was not changed has a range with 0, and what was changed has not.
            assert_eq!((step != 0, rate.abs() > 1.0), (low > 0 || high < 0, slow > 0 || fast < 0), "{case}");
            // The widths of the readings, and what the rate may be in the seconds around the change.
            assert!(high - low < 200_000 && fast - slow < 10_000, "{case}");
        }
        assert_eq!(parts.parts().count() as i64, changes + 1, "seed {seed}");
    }
}
