//! Tests of verdicts on simulated pairs with trial effects and bursts: false verdicts are as rare as promised, and true
//! differences are found. The seeds are fixed, so the result is the same on every machine.

use crate::random::Random;
use tailbound_stats::Quantile;
use tailbound_stats::compare::{Cell, Chunks, Group, Statistic, Verdict, judge, within_runs};

const SLOTS: usize = 4_000;
const LOST: i64 = i64::MIN;

/// Simulates one trial: log-normal latencies; an effect that all messages of the trial share; stalls that each make
/// about twenty messages in a row late, more stalls in some trials than in others; and one lost message in 4,000.
fn trial(random: &mut Random, scale: f64, values: &mut Vec<i64>) {
    let body = 50_000.0 * scale * (0.05 * random.normal()).exp();
    let stalls_each = 0.002 * (0.4 * random.normal()).exp();
    let mut stall: f64 = 0.0;
    values.clear();
    for _ in 0..SLOTS {
        if random.unit() < stalls_each {
            stall = 400_000.0 * scale * random.unit();
        }
        let value = body * (0.2 * random.normal()).exp() + stall;
        values.push(if random.unit() < 1.0 / 4_000.0 { LOST } else { value as i64 });
        stall = (stall - 20_000.0 * scale).max(0.0);
    }
}

/// Computes the logarithms of p50, p99, p99.9 and the mean of simulated values.
fn statistics(values: &mut [i64]) -> [f64; 4] {
    let answered: Vec<f64> = values.iter().filter(|v| **v != LOST).map(|v| *v as f64).collect();
    let mean = answered.iter().sum::<f64>() / answered.len() as f64;
    values.iter_mut().filter(|v| **v == LOST).for_each(|v| *v = i64::MAX);
    values.sort_unstable();
    let quantile = |q: Quantile| match values[q.rank(values.len() as u64) as usize - 1] {
        i64::MAX => f64::INFINITY,
        v => (v as f64).ln(),
    };
    [quantile(Quantile::P50), quantile(Quantile::P99), quantile(Quantile::P99_9), mean.ln()]
}

/// Simulates the trials of one condition on both sides, where side b is slower by the factor `ratio`.
fn group(random: &mut Random, trials: [usize; 2], ratio: f64) -> Group {
    let mut cells = vec![Cell::default(); 4];
    let mut values = Vec::new();
    for (side, (count, scale)) in [(trials[0], 1.0), (trials[1], ratio)].into_iter().enumerate() {
        for _ in 0..count {
            trial(random, scale, &mut values);
            for (cell, value) in cells.iter_mut().zip(statistics(&mut values)) {
                if side == 0 { &mut cell.a } else { &mut cell.b }.push(value);
            }
        }
    }
    Group { cells }
}

fn differs(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Lower | Verdict::Higher)
}

/// Simulates `tables` tables of comparisons. Returns the share of tables in which a difference is found, the share of
/// tables in which an interval does not contain the true ratio, and the share of cells in which a difference is found.
fn tables(seed: u64, tables: usize, conditions: usize, trials: [usize; 2], ratio: f64) -> [f64; 3] {
    let mut random = Random::seeded(seed);
    let (mut found, mut missed, mut found_cells) = (0, 0, 0);
    for _ in 0..tables {
        let groups: Vec<Group> = (0..conditions).map(|_| group(&mut random, trials, ratio)).collect();
        let judged = judge(&groups, None).concat();
        found_cells += judged.iter().filter(|j| differs(j.verdict)).count();
        found += usize::from(judged.iter().any(|j| differs(j.verdict)));
        let truth = ratio.ln();
        let holds = |(low, high): (f64, f64)| (low..=high).contains(&truth);
        missed += usize::from(!judged.iter().filter_map(|j| j.interval).all(holds));
    }
    let share = |n: usize, of: usize| n as f64 / of as f64;
    [share(found, tables), share(missed, tables), share(found_cells, tables * conditions * 4)]
}

/// Asserts that, if the sides do not differ, a difference is found in 3 to 7 % of the tables.
fn rarely_false(seed: u64, conditions: usize, trials: [usize; 2]) {
    let [found, ..] = tables(seed, 600, conditions, trials, 1.0);
    println!("A/A, {conditions} conditions, {trials:?} trials: {found} of tables");
    assert!((0.03..=0.07).contains(&found), "{conditions} conditions, {trials:?} trials: {found}");
}

#[test]
fn false_verdicts_over_one_condition() {
    rarely_false(1, 1, [5, 5]);
}

#[test]
fn false_verdicts_over_several_conditions() {
    rarely_false(2, 3, [5, 5]);
}

#[test]
fn false_verdicts_with_more_trials() {
    rarely_false(3, 1, [10, 10]);
}

#[test]
fn false_verdicts_with_unequal_sides() {
    rarely_false(4, 2, [5, 9]);
}

/// Every message of side b takes 10 % longer; trials of a side differ by 5 % (standard deviation).
#[test]
fn a_shift_of_ten_per_cent_is_found() {
    let [found, missed, cells] = tables(7, 200, 1, [15, 15], 1.1);
    println!("10 % slower, 15 trials a side: found in {found} of tables, {cells} of cells; {missed} do not hold 1.1");
    assert!(found >= 0.95 && cells > 0.5, "{found} {cells}");
    assert!(missed <= 0.08, "{missed}");
    let [found, missed, _] = tables(8, 200, 2, [5, 5], 1.3);
    println!("30 % slower, 5 trials a side, 2 conditions: found in {found} of tables; {missed} do not hold 1.3");
    assert!(found >= 0.95 && missed <= 0.08, "{found} {missed}");
}

#[test]
fn four_trials_a_side_are_decided_by_relabelling() {
    let [found, ..] = tables(5, 2_000, 1, [4, 4], 1.0);
    println!("A/A, four trials a side: {found}");
    // 2 of 70 relabellings at most.
    assert!(found <= 0.04, "{found}");
    let [found, ..] = tables(6, 200, 1, [4, 4], 1.5);
    println!("half as slow again, four trials a side: {found}");
    assert!(found > 0.9, "{found}");
}

#[test]
fn three_trials_are_not_enough() {
    let judged = judge(&[group(&mut Random::seeded(9), [3, 3], 2.0)], Some(0.05)).concat();
    assert!(judged.iter().all(|j| j.verdict == Verdict::NotEnough { more_trials: 2 } && j.interval.is_none()));
}

/// Sides that differ little are equal within a margin that contains the interval; for a narrower margin, the necessary
/// number of trials is estimated.
#[test]
fn a_margin_turns_no_difference_into_equal() {
    let side = |shift: f64| (0..10).map(|k| shift + 0.01 * (f64::from(k) - 4.5)).collect::<Vec<f64>>();
    let group = [Group { cells: vec![Cell { a: side(0.0), b: side(0.004) }] }];
    let [wide, narrow, none] = [Some(0.05), Some(0.01), None].map(|m| judge(&group, m)[0][0]);
    assert_eq!(wide.verdict, Verdict::Equal);
    let (low, high) = wide.interval.unwrap();
    // By hand: standard error sqrt(2 * 0.000916667 / 10), Student's t with 18 degrees 2.101.
    assert!((low + 0.0244).abs() < 0.001 && (high - 0.0324).abs() < 0.001, "{low} {high}");
    let Verdict::NoDifference { trials_for_margin: Some(more) } = narrow.verdict else { panic!("{narrow:?}") };
    assert!((200..=260).contains(&more), "{more}");
    assert_eq!(none.verdict, Verdict::NoDifference { trials_for_margin: None });
}

/// If a quantile lies among the lost messages on one side, this side is slower, whatever its other values are.
#[test]
fn lost_on_one_side_is_slower() {
    let cell = |b: f64| Cell { a: (0..6).map(f64::from).collect(), b: vec![b; 6] };
    let judged = judge(&[Group { cells: vec![cell(f64::INFINITY)] }], None)[0][0];
    assert_eq!((judged.verdict, judged.log_ratio, judged.interval), (Verdict::Higher, None, None));
    let both = Cell { a: vec![f64::INFINITY; 6], b: vec![f64::INFINITY; 6] };
    let judged = judge(&[Group { cells: vec![both] }], None)[0][0];
    assert_eq!(judged.verdict, Verdict::NoDifference { trials_for_margin: None });
}

/// With bursts but without differences between trials, the intervals from moving blocks contain the true ratio nearly
/// as often as promised, for statistics that are not rarer than the bursts.
#[test]
fn moving_blocks_cover_within_runs() {
    let mut random = Random::seeded(10);
    let chunks = |random: &mut Random| {
        let mut chunks = Chunks::default();
        let mut level: f64 = 0.0;
        let values: Vec<i64> = (0..20_000)
            .map(|_| {
                level = 0.9 * level + 0.1 * random.normal();
                (50_000.0 * (level + 0.1 * random.normal()).exp()) as i64
            })
            .collect();
        chunks.push_all(&values, LOST);
        [chunks]
    };
    let statistics = [Statistic::Quantile(Quantile::P50), Statistic::Quantile(Quantile::P99), Statistic::Mean];
    let mut covered = [0; 3];
    for _ in 0..200 {
        let (a, b) = (chunks(&mut random), chunks(&mut random));
        for (n, interval) in covered.iter_mut().zip(within_runs(&a, &b, &statistics)) {
            let (low, high) = interval.unwrap();
            *n += i32::from(low <= 0.0 && high >= 0.0);
        }
    }
    println!("moving blocks, of 200: p50 {} p99 {} mean {}", covered[0], covered[1], covered[2]);
    assert!(covered.iter().all(|n| (180..=198).contains(n)), "{covered:?}");
}

#[test]
fn blocks_of_too_short_or_lost_trials_say_nothing() {
    let chunks = |values: &[i64]| {
        let mut chunks = Chunks::default();
        chunks.push_all(values, LOST);
        [chunks]
    };
    let (short, long) = (chunks(&[5; 100]), chunks(&[5; 10_000]));
    let half_lost: Vec<i64> = (0..10_000).map(|k| if k % 2 == 0 { LOST } else { 7 }).collect();
    let median = [Statistic::Quantile(Quantile::P50)];
    assert_eq!(within_runs(&short, &long, &median), [None]);
    assert_eq!(within_runs(&long, &chunks(&half_lost), &[Statistic::Quantile(Quantile::P99)]), [None]);
    assert_eq!(within_runs(&long, &long, &median), [Some((0.0, 0.0))]);
}
