//! The distribution of the lateness of a writer's samples.

use tailbound_document::WatchedRange;
use tailbound_stats::Histogram;

/// A p99 needs this many values, as in reports.
const ENOUGH_FOR_P99: u64 = 368;
/// Number of values after which the zero of a clock of another host is fixed.
const FIRST: usize = 1000;

/// Times of samples, ns.
pub struct Lateness {
    /// Values before the zero is fixed.
    first: Vec<i64>,
    /// What is subtracted before a value is counted: buckets are narrow near zero.
    zero_ns: Option<i64>,
    values: Histogram,
    ends: Option<(i64, i64)>,
}

/// What is usual for samples, ns.
#[derive(Debug, Clone, Copy)]
pub struct Usual {
    /// Number of samples.
    pub count: u64,
    /// A tenth of the samples is not later than this.
    pub p10_ns: i64,
    /// Median.
    pub p50_ns: i64,
    /// What is subtracted from all times: the time of the fastest sample if the clock of the writer is another one, else 0.
    pub zero_ns: i64,
}

impl Lateness {
    /// `has_own_clock`: the times of the writer are of another clock, so that only differences of values have a meaning.
    pub fn new(has_own_clock: bool) -> Lateness {
        let zero_ns = if has_own_clock { None } else { Some(0) };
        Lateness { first: Vec::new(), zero_ns, values: Histogram::new(), ends: None }
    }

    /// Adds a value.
    pub fn record(&mut self, late_ns: i64) {
        let (least, most) = self.ends.unwrap_or((late_ns, late_ns));
        self.ends = Some((least.min(late_ns), most.max(late_ns)));
        match self.zero_ns {
            Some(zero_ns) => self.values.record(late_ns.saturating_sub(zero_ns)),
            None => self.first.push(late_ns),
        }
        if self.zero_ns.is_none() && self.first.len() >= FIRST {
            (self.values, self.zero_ns) = (self.counted(least), Some(least));
            self.first = Vec::new();
        }
    }

    fn counted(&self, zero_ns: i64) -> Histogram {
        let mut values = Histogram::new();
        self.first.iter().for_each(|late_ns| values.record(late_ns.saturating_sub(zero_ns)));
        values
    }

    /// The distribution; of times of another clock, above the smallest one. `None` without values.
    pub fn range(&self, has_own_clock: bool) -> Option<WatchedRange> {
        let (least, most) = self.ends?;
        let (counted, zero_ns);
        let values = match self.zero_ns {
            Some(fixed) => {
                zero_ns = fixed;
                &self.values
            }
            None => {
                (counted, zero_ns) = (self.counted(least), least);
                &counted
            }
        };
        let above = if has_own_clock { least } else { 0 };
        let range = range_within(values, (least.saturating_sub(zero_ns), most.saturating_sub(zero_ns)))?;
        let shift = |ns: i64| ns.saturating_add(zero_ns).saturating_sub(above);
        Some(WatchedRange {
            count: range.count,
            min_ns: shift(range.min_ns),
            p50_ns: shift(range.p50_ns),
            p99_ns: range.p99_ns.map(shift),
            max_ns: shift(range.max_ns),
        })
    }
}

impl Lateness {
    /// What is usual; `None` without samples.
    pub fn usual(&self, has_own_clock: bool) -> Option<Usual> {
        let (least, _) = self.ends?;
        let counted;
        let (values, subtracted_ns) = match self.zero_ns {
            Some(fixed_ns) => (&self.values, fixed_ns),
            None => {
                counted = self.counted(least);
                (&counted, least)
            }
        };
        let zero_ns = if has_own_clock { least } else { 0 };
        let count = values.count();
        let of = |tenths: u64| {
            let ns = values.bucket_of_rank((count * tenths).div_ceil(10).max(1))?.bucket.high;
            Some(ns.saturating_add(subtracted_ns).saturating_sub(zero_ns))
        };
        Some(Usual { count, p10_ns: of(1)?, p50_ns: of(5)?, zero_ns })
    }
}

/// The distribution of the values of a histogram; its ends are those of buckets.
pub fn range(values: &Histogram) -> Option<WatchedRange> {
    let (low, high) = (values.bucket_of_rank(1)?.bucket.low, values.bucket_of_rank(values.count())?.bucket.high);
    range_within(values, (low, high))
}

/// The distribution of the values of a histogram whose smallest and largest value are known.
fn range_within(values: &Histogram, (min_ns, max_ns): (i64, i64)) -> Option<WatchedRange> {
    let count = values.count();
    let of = |hundredths: u64| {
        let rank = (count * hundredths).div_ceil(100).max(1);
        Some(values.bucket_of_rank(rank)?.bucket.high.clamp(min_ns, max_ns))
    };
    let p99_ns = if count >= ENOUGH_FOR_P99 { of(99) } else { None };
    Some(WatchedRange { count, min_ns, p50_ns: of(50)?, p99_ns, max_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl Iterator<Item = i64>, has_own_clock: bool) -> WatchedRange {
        let mut lateness = Lateness::new(has_own_clock);
        values.for_each(|value| lateness.record(value));
        lateness.range(has_own_clock).unwrap()
    }

    #[test]
    fn quantiles_are_above_their_value_by_less_than_a_bucket() {
        let range = of((1..=10_000).map(|n| n * 1_000), false);
        assert_eq!((range.count, range.min_ns, range.max_ns), (10_000, 1_000, 10_000_000));
        for (found, value) in [(range.p50_ns, 5_000_000), (range.p99_ns.unwrap(), 9_900_000)] {
            assert!((value..=value + value / 120).contains(&found), "{found} for {value}");
        }
    }

    /// A clock of another host that is hours away: differences keep their precision.
    #[test]
    fn another_clock_does_not_widen_the_buckets() {
        let away = 7_200_000_000_000;
        for count in [400, 20_000] {
            let range = of((0..count).map(|n| away + 30_000 + (n * 7_919 % count) * 10), true);
            assert_eq!((range.min_ns, range.max_ns), (0, (count - 1) * 10));
            let median = (count / 2 - 1) * 10;
            assert!((range.p50_ns - median).abs() <= median / 100 + 10, "{} for {median}", range.p50_ns);
        }
    }

    #[test]
    fn few_values_have_no_p99() {
        assert_eq!(of(1..=367, false).p99_ns, None);
        assert_eq!(of(1..=368, false).p99_ns, Some(365));
    }
}
