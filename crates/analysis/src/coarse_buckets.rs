//! Histograms of the document, whose buckets are coarser than the buckets of the statistics.

use tailbound_stats::{Bucket, Histogram};

/// Logarithm to base 2 of the number of histogram buckets per octave in the document. The buckets are coarser than the
/// buckets from which quantiles are computed, and finer than a reader of a figure can see.
const BUCKETS_PER_OCTAVE_BITS: u32 = 4;

/// The coarse buckets of a histogram that are not empty: smallest and largest value, ns, and number of values.
pub(crate) fn coarse(histogram: &Histogram) -> Vec<(i64, i64, u64)> {
    let mut coarse: Vec<(i64, i64, u64)> = Vec::new();
    for Bucket { low, high, count } in histogram.buckets() {
        let (wide_low, wide_high) = coarse_bounds(low, high);
        match coarse.last_mut() {
            Some(last) if last.0 == wide_low => last.2 += count,
            _ => coarse.push((wide_low, wide_high, count)),
        }
    }
    coarse
}

/// Bounds of the coarse bucket that contains a fine bucket; a fine bucket lies on one side of zero.
fn coarse_bounds(low: i64, high: i64) -> (i64, i64) {
    if low < 0 {
        let (mirrored_low, mirrored_high) = coarse_bounds(!high, !low);
        return (!mirrored_high, !mirrored_low);
    }
    let shift = (low.max(1).ilog2()).saturating_sub(BUCKETS_PER_OCTAVE_BITS);
    let wide = (low >> shift) << shift;
    (wide, wide + ((1i64 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_buckets_hold_fine_ones_on_both_sides_of_zero() {
        for value in [0, 1, 15, 16, 31, 32, 255, 256, 1_000, 65_535, 1 << 40, -1, -2, -300, -70_000, i64::MIN + 1] {
            let bounds = (Histogram::bucket_low(value), Histogram::bucket_high(value));
            let (low, high) = coarse_bounds(bounds.0, bounds.1);
            assert!(low <= bounds.0 && bounds.1 <= high, "{value}: {bounds:?} in {low}..{high}");
        }
    }
}
