//! The bucket scheme: 128 equal buckets in each octave (between a power of two and the next), mirrored for negative
//! values.
//!
//! Each magnitude below 256 has its own bucket. Above that, the eight leading bits choose the bucket, so a bucket is
//! never wider than 1/128 of its smallest magnitude. A negative value `v` gets the bucket of the magnitude of its
//! complement `!v = -v - 1`: this divides `i64` into two equal sides, without a special case for zero or `i64::MIN`,
//! and no value is clamped.
//!
//! The idea of linear buckets inside each octave is HdrHistogram's (<https://hdrhistogram.org>).

/// Base-2 logarithm of the number of histogram buckets in an octave: between a power of two and the next.
const SUB_BITS: u32 = 7;
/// Number of histogram buckets in an octave: between a power of two and the next.
const SUB: usize = 1 << SUB_BITS;
/// Number of histogram buckets for the values from zero upwards, and also for the values below zero: the highest
/// magnitude, 2^63 - 1, has 62 - 7 = 55 bits below its eight leading bits.
const SIDE: usize = 55 * SUB + 2 * SUB;

/// Number that identifies a histogram bucket among all buckets: a bucket with a higher number contains higher values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketIndex(usize);

impl BucketIndex {
    /// Number of buckets that together cover all values of `i64`.
    pub const COUNT: usize = 2 * SIDE;

    /// Returns the index of the histogram bucket that contains `value`.
    #[inline]
    pub fn of(value: i64) -> Self {
        let slot = slot_of(magnitude(value));
        BucketIndex(if value < 0 { SIDE - 1 - slot } else { SIDE + slot })
    }

    /// The lowest value that falls into the histogram bucket.
    pub fn low(self) -> i64 {
        match self.0.checked_sub(SIDE) {
            Some(slot) => magnitude_bounds(slot).0,
            None => !magnitude_bounds(SIDE - 1 - self.0).1,
        }
    }

    /// The highest value that falls into the histogram bucket.
    pub fn high(self) -> i64 {
        match self.0.checked_sub(SIDE) {
            Some(slot) => magnitude_bounds(slot).1,
            None => !magnitude_bounds(SIDE - 1 - self.0).0,
        }
    }

    /// The index of the bucket as a number in `0..BucketIndex::COUNT`.
    pub fn as_usize(self) -> usize {
        self.0
    }

    /// The histogram bucket with this index: the reverse of [`BucketIndex::as_usize`].
    pub(crate) fn at(index: usize) -> Self {
        BucketIndex(index)
    }

    /// The bucket with the index `slot` among the buckets of non-negative values, counted outwards from zero.
    pub(crate) fn from_non_negative_slot(slot: usize) -> Self {
        BucketIndex(SIDE + slot)
    }

    /// The bucket with the index `slot` among the buckets of negative values, counted outwards from zero.
    pub(crate) fn from_negative_slot(slot: usize) -> Self {
        BucketIndex(SIDE - 1 - slot)
    }
}

/// A bucket with its bounds, which are included, and the number of values in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The lowest value that falls into the histogram bucket, in nanoseconds.
    pub low: i64,
    /// The highest value that falls into the histogram bucket, in nanoseconds.
    pub high: i64,
    /// Number of recorded values in the histogram bucket.
    pub count: u64,
}

/// Widens an interval to whole histogram buckets: `low` is reduced to the low end of its bucket, `high` is raised to
/// the high end of its bucket. Input and output are nanoseconds.
pub fn round_outward(low: i64, high: i64) -> (i64, i64) {
    (BucketIndex::of(low).low(), BucketIndex::of(high).high())
}

/// The magnitude that determines the bucket of `value`: `value`, or `!value` if `value` is negative.
#[inline]
pub(crate) fn magnitude(value: i64) -> u64 {
    (value ^ (value >> 63)) as u64
}

/// Index of the bucket of a magnitude among the buckets on the same side of zero, counted outwards from zero.
#[inline]
pub(crate) fn slot_of(magnitude: u64) -> usize {
    let shift = (magnitude | (SUB as u64)).ilog2() - SUB_BITS;
    shift as usize * SUB + (magnitude >> shift) as usize
}

/// The lowest and highest magnitude in the bucket with the index `slot` on one side of zero.
fn magnitude_bounds(slot: usize) -> (i64, i64) {
    let shift = (slot / SUB).saturating_sub(1);
    let low = ((slot - shift * SUB) as i64) << shift;
    (low, low + ((1i64 << shift) - 1))
}
