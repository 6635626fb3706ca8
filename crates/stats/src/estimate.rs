//! What can honestly be said about one quantile.

use std::fmt;

use crate::quantile::Quantile;

/// The upper end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Nanoseconds.
    Ns(i64),
    /// Among the slots that never got an answer: later than every value.
    Beyond,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Ns(ns) => write!(f, "{ns} ns"),
            Bound::Beyond => f.write_str("beyond"),
        }
    }
}

/// A quantile over all scheduled slots, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// The value, with its two-sided 95 % interval rounded outward to whole histogram buckets.
    Value {
        /// Which quantile.
        q: Quantile,
        /// The value of rank ceil(q n), exactly, in nanoseconds.
        value_ns: i64,
        /// The lower end in nanoseconds, at most the value.
        low_ns: i64,
        /// The upper end, at least the value.
        high: Bound,
    },
    /// Too few scheduled slots for an interval: no number is given.
    Needs {
        /// Which quantile.
        q: Quantile,
        /// How many slots it takes.
        needs: u64,
    },
    /// The quantile falls among the slots that never got an answer.
    Beyond {
        /// Which quantile.
        q: Quantile,
    },
}

impl Estimate {
    /// Which quantile this is about.
    pub fn q(&self) -> Quantile {
        match *self {
            Estimate::Value { q, .. } | Estimate::Needs { q, .. } | Estimate::Beyond { q } => q,
        }
    }

    /// The value in nanoseconds, where there is one.
    pub fn value_ns(&self) -> Option<i64> {
        match *self {
            Estimate::Value { value_ns, .. } => Some(value_ns),
            Estimate::Needs { .. } | Estimate::Beyond { .. } => None,
        }
    }
}
