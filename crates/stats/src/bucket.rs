//! The bucket scheme: 128 equal buckets to each octave, mirrored for negative values.
//!
//! A magnitude below 256 has a bucket of its own; above, its eight leading bits choose the bucket,
//! so that a bucket is never wider than 1/128 of the smallest magnitude in it. A negative value `v`
//! is bucketed by the magnitude of its complement `!v = -v - 1`: that halves `i64` into two equal
//! sides without a special case for zero or `i64::MIN`, and nothing is ever clamped.
//!
//! The idea of linear buckets inside each octave is HdrHistogram's (<https://hdrhistogram.org>).

/// log2 of the buckets to an octave.
const SUB_BITS: u32 = 7;
/// Buckets to an octave.
const SUB: usize = 1 << SUB_BITS;
/// Buckets of one side: the highest magnitude, 2^63 - 1, has 62 - 7 = 55 bits below its leading eight.
const SIDE: usize = 55 * SUB + 2 * SUB;

/// The place of a bucket among all buckets: a higher index holds higher values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketIndex(usize);

impl BucketIndex {
    /// How many buckets cover `i64`.
    pub const COUNT: usize = 2 * SIDE;

    /// The bucket that holds `value`.
    pub fn of(value: i64) -> Self {
        let slot = slot_of(magnitude(value));
        BucketIndex(if value < 0 { SIDE - 1 - slot } else { SIDE + slot })
    }

    /// The lowest value of the bucket.
    pub fn low(self) -> i64 {
        match self.0.checked_sub(SIDE) {
            Some(slot) => magnitude_bounds(slot).0,
            None => !magnitude_bounds(SIDE - 1 - self.0).1,
        }
    }

    /// The highest value of the bucket.
    pub fn high(self) -> i64 {
        match self.0.checked_sub(SIDE) {
            Some(slot) => magnitude_bounds(slot).1,
            None => !magnitude_bounds(SIDE - 1 - self.0).0,
        }
    }

    /// The index as a number in `0..BucketIndex::COUNT`.
    pub fn as_usize(self) -> usize {
        self.0
    }

    /// The bucket at an index: the reverse of [`BucketIndex::as_usize`].
    pub(crate) fn at(index: usize) -> Self {
        BucketIndex(index)
    }

    /// The bucket of a slot on the side of the values from zero up.
    pub(crate) fn from_non_negative_slot(slot: usize) -> Self {
        BucketIndex(SIDE + slot)
    }

    /// The bucket of a slot on the side of the negative values.
    pub(crate) fn from_negative_slot(slot: usize) -> Self {
        BucketIndex(SIDE - 1 - slot)
    }
}

/// A bucket with its inclusive bounds and how many values it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The lowest value, in nanoseconds, that falls into the bucket.
    pub low: i64,
    /// The highest value, in nanoseconds, that falls into the bucket.
    pub high: i64,
    /// How many recorded values fell into it.
    pub count: u64,
}

/// An interval widened to whole buckets: `low` down to the low end of its bucket, `high` up to the
/// high end of its own. Nanoseconds in and out.
pub fn round_outward(low: i64, high: i64) -> (i64, i64) {
    (BucketIndex::of(low).low(), BucketIndex::of(high).high())
}

/// The magnitude that `value` is bucketed by, on its own side.
#[inline]
pub(crate) fn magnitude(value: i64) -> u64 {
    (value ^ (value >> 63)) as u64
}

/// The slot of a magnitude on its side, counted from zero outwards.
#[inline]
pub(crate) fn slot_of(magnitude: u64) -> usize {
    let shift = (magnitude | (SUB as u64)).ilog2() - SUB_BITS;
    shift as usize * SUB + (magnitude >> shift) as usize
}

/// The lowest and highest magnitude of a slot.
fn magnitude_bounds(slot: usize) -> (i64, i64) {
    let shift = (slot / SUB).saturating_sub(1);
    let low = ((slot - shift * SUB) as i64) << shift;
    (low, low + ((1i64 << shift) - 1))
}
