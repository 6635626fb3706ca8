//! Two clocks of which one is stepped or changes its speed: for every message outside the reported changes, the bounds must
//! enclose the true difference.

use crate::random::Random;
use tailbound_stats::{ClockMessage, NoBounds, SteadyParts, SteadySearch};

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
