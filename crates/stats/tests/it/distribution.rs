//! Estimates from scheduled slots, with lost slots at the upper end of the distribution.

use proptest::prelude::*;
use tailbound_stats::{Bound, Distribution, Estimate, Quantile, interval_ranks, needs, round_outward};

const QUANTILES: [Quantile; 4] = [Quantile::P50, Quantile::P90, Quantile::P99, Quantile::P99_9];

fn distribution(values: &[i64], beyond: u64) -> Distribution {
    let mut distribution = Distribution::new();
    values.iter().for_each(|&v| distribution.value(v));
    (0..beyond).for_each(|_| distribution.beyond());
    distribution
}

fn estimates(values: &[i64], beyond: u64, quantiles: &[Quantile]) -> Vec<Estimate> {
    let mut second = distribution(values, beyond).plan(quantiles);
    values.iter().for_each(|&v| second.offer(v));
    second.finish().unwrap()
}

/// Computes the estimate of a quantile directly from the definitions, by sorting all slots.
fn by_sorting(values: &[i64], beyond: u64, q: Quantile) -> Estimate {
    let mut slots: Vec<Option<i64>> = values.iter().copied().map(Some).collect();
    slots.sort_unstable();
    slots.resize(slots.len() + beyond as usize, None);
    let n = slots.len() as u64;
    let at = |rank: u64| slots[rank as usize - 1];
    let Ok(ranks) = interval_ranks(n, q) else {
        return Estimate::Needs { q, needs: needs(q) };
    };
    let (Some(value_ns), Some(low)) = (at(q.rank(n)), at(ranks.lower)) else {
        return Estimate::Beyond { q };
    };
    Estimate::Value {
        q,
        value_ns,
        low_ns: round_outward(low, low).0,
        high: at(ranks.upper).map_or(Bound::Beyond, |v| Bound::Ns(round_outward(v, v).1)),
    }
}

#[test]
fn nothing_scheduled_needs_everything() {
    let second = Distribution::new().plan(&QUANTILES);
    assert!(!second.needs_values());
    let found = second.finish().unwrap();
    let expected = QUANTILES.map(|q| Estimate::Needs { q, needs: needs(q) });
    assert_eq!(found, expected);
}

#[test]
fn nothing_answered_is_beyond() {
    let found = estimates(&[], 1_000, &[Quantile::P50, Quantile::P99]);
    let expected = [Quantile::P50, Quantile::P99].map(|q| Estimate::Beyond { q });
    assert_eq!(found, expected);
}

#[test]
fn a_lost_slot_moves_the_upper_end_before_the_value() {
    let values: Vec<i64> = (1..=1_000).collect();
    let (q, value_ns) = (Quantile::P99, 990);
    // Of 1,000 slots, ranks 983 and 997 enclose p99; the bucket of 983 starts at 980.
    for (lost, high) in [(0, Bound::Ns(997)), (3, Bound::Ns(997)), (4, Bound::Beyond), (10, Bound::Beyond)] {
        let answered = &values[..1_000 - lost];
        let found = estimates(answered, lost as u64, &[q])[0];
        let low_ns = 980;
        let expected = Estimate::Value { q, value_ns, low_ns, high: rounded(high) };
        assert_eq!(found, expected, "{lost} lost");
    }
    assert_eq!(estimates(&values[..989], 11, &[q]), [Estimate::Beyond { q }]);
}

fn rounded(high: Bound) -> Bound {
    match high {
        Bound::Ns(ns) => Bound::Ns(round_outward(ns, ns).1),
        Bound::Beyond => Bound::Beyond,
    }
}

#[test]
fn a_lost_slot_is_in_no_moment() {
    let distribution = distribution(&[10, 30], 2);
    assert_eq!(distribution.scheduled(), 4);
    assert_eq!(distribution.answered(), 2);
    assert_eq!(distribution.beyond_count(), 2);
    assert_eq!(distribution.moments().count(), 2);
    assert_eq!(distribution.moments().mean(), Some(20.0));
    assert_eq!(distribution.histogram().count(), 2);
}

#[test]
fn a_second_pass_that_was_left_out_is_an_error() {
    let second = distribution(&[5; 100], 0).plan(&[Quantile::P50]);
    assert!(second.needs_values());
    assert!(second.finish().is_err());
}

proptest! {
    #[test]
    fn estimates_are_the_definitions(
        values in prop::collection::vec(-3_000i64..200_000, 0..1_200),
        beyond in prop_oneof![Just(0u64), 0u64..30],
    ) {
        let expected = QUANTILES.map(|q| by_sorting(&values, beyond, q));
        prop_assert_eq!(estimates(&values, beyond, &QUANTILES), expected);
    }

    #[test]
    fn trials_merge_to_the_whole(
        a in prop::collection::vec(0i64..200_000, 0..300),
        b in prop::collection::vec(0i64..200_000, 0..300),
        lost in 0u64..5,
    ) {
        let mut merged = distribution(&a, lost);
        merged.merge(&distribution(&b, 1));
        let all = [a, b].concat();
        let mut second = merged.plan(&QUANTILES);
        all.iter().for_each(|&v| second.offer(v));
        prop_assert_eq!(second.finish().unwrap(), estimates(&all, lost + 1, &QUANTILES));
    }
}
