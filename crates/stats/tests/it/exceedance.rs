//! Tests that the computed lag-1 autocorrelation agrees with the definition.

use proptest::prelude::*;
use tailbound_stats::Exceedance;

fn pushed(slots: &[bool]) -> Exceedance {
    let mut exceedance = Exceedance::new();
    slots.iter().for_each(|&x| exceedance.push(x));
    exceedance
}

/// Computes the lag-1 autocorrelation directly from its definition, over sequences of consecutive slots (true = the
/// slot exceeds the threshold). All sequences share one mean, and no pair spans two sequences.
fn naive(sequences: &[&[bool]]) -> Option<f64> {
    let numbers: Vec<Vec<f64>> =
        sequences.iter().map(|s| s.iter().map(|&x| f64::from(u8::from(x))).collect()).collect();
    let all = numbers.concat();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let variance: f64 = all.iter().map(|x| (x - mean).powi(2)).sum();
    let pairs = numbers.iter().flat_map(|s| s.windows(2));
    let covariance: f64 = pairs.map(|p| (p[0] - mean) * (p[1] - mean)).sum();
    (all.len() >= 3 && variance > 1e-9).then(|| covariance / variance)
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-12,
        (a, b) => a == b,
    }
}

#[test]
fn known_series() {
    let alternating = [true, false].repeat(500);
    assert_eq!(pushed(&alternating).lag1(), Some(-0.999));
    let one_burst = [vec![false; 990], vec![true; 10]].concat();
    let burst = pushed(&one_burst);
    assert!(burst.lag1().unwrap() > 0.89);
    assert_eq!((burst.count(), burst.exceeded()), (1_000, 10));
    let spread = pushed(&[vec![false; 99], vec![true]].concat().repeat(10));
    assert!(spread.lag1().unwrap() < 0.1);
    assert_eq!(spread.effective().slots, 1_000);
}

#[test]
fn what_has_no_coefficient() {
    assert_eq!(pushed(&[]).lag1(), None);
    assert_eq!(pushed(&[true, false]).lag1(), None);
    assert_eq!(pushed(&[true; 100]).lag1(), None);
    assert_eq!(pushed(&[false; 100]).lag1(), None);
    assert!(!pushed(&[]).effective().unresolved);
}

proptest! {
    #[test]
    fn streaming_is_the_definition(slots in prop::collection::vec(any::<bool>(), 0..100)) {
        prop_assert!(close(pushed(&slots).lag1(), naive(&[&slots])));
    }

    #[test]
    fn many_at_once_are_one_by_one(values in prop::collection::vec(0i64..4, 0..200), cut in 0usize..200) {
        let mut together = Exceedance::new();
        let (head, tail) = values.split_at(cut.min(values.len()));
        together.push_all(head, 1);
        together.push_all(tail, 1);
        prop_assert_eq!(together, pushed(&values.iter().map(|v| *v > 1).collect::<Vec<_>>()));
    }

    #[test]
    fn long_runs_of_blocks_without_exceedances_are_one_by_one(
        late in prop::collection::vec((0usize..400, 1usize..20), 0..12),
        cut in 0usize..3000,
    ) {
        let values: Vec<i64> = late.iter().flat_map(|(early, late)| [vec![0; *early], vec![2; *late]].concat()).collect();
        let mut together = Exceedance::new();
        let (head, tail) = values.split_at(cut.min(values.len()));
        together.push_all(head, 1);
        together.push_all(tail, 1);
        prop_assert_eq!(together, pushed(&values.iter().map(|v| *v > 1).collect::<Vec<_>>()));
    }

    #[test]
    fn trials_are_no_neighbours(
        a in prop::collection::vec(any::<bool>(), 0..50),
        b in prop::collection::vec(any::<bool>(), 0..50),
    ) {
        let mut merged = pushed(&a);
        merged.merge(&pushed(&b));
        prop_assert!(close(merged.lag1(), naive(&[&a, &b])));
        let mut continued = pushed(&a);
        continued.end_sequence();
        b.iter().for_each(|&x| continued.push(x));
        continued.end_sequence();
        prop_assert_eq!(merged, continued);
    }
}
