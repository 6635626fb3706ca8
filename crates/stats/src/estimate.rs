//! The estimate of one quantile, or the reason why there is no estimate.

use std::fmt;

use crate::quantile::Quantile;

/// The upper end of the 95 % interval of a quantile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The upper end of the quantile's interval is a time in nanoseconds.
    Ns(i64),
    /// The upper end of the interval is a slot without an answer, which is later than every value.
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

/// The estimate of a quantile over all scheduled slots, or the reason why there is no estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// The value of the quantile with its two-sided 95 % interval, which is widened to whole histogram buckets.
    Value {
        /// The quantile that is estimated.
        q: Quantile,
        /// The exact value of the quantile, which is the value of rank ceil(q n), in nanoseconds.
        value_ns: i64,
        /// The lower end of the quantile's interval in nanoseconds, at most the value of the quantile.
        low_ns: i64,
        /// The upper end of the quantile's interval, at least the value of the quantile.
        high: Bound,
    },
    /// There are too few scheduled slots for an interval, so there is no value either.
    Needs {
        /// The quantile that is estimated.
        q: Quantile,
        /// Number of scheduled slots that an interval of this quantile needs.
        needs: u64,
    },
    /// There is no estimate: the quantile falls among the slots without an answer.
    Beyond {
        /// The quantile that is estimated.
        q: Quantile,
    },
}

impl Estimate {
    /// The quantile that is estimated.
    pub fn q(&self) -> Quantile {
        match *self {
            Estimate::Value { q, .. } | Estimate::Needs { q, .. } | Estimate::Beyond { q } => q,
        }
    }

    /// The value of the quantile in nanoseconds, if the estimate has a value.
    pub fn value_ns(&self) -> Option<i64> {
        match *self {
            Estimate::Value { value_ns, .. } => Some(value_ns),
            Estimate::Needs { .. } | Estimate::Beyond { .. } => None,
        }
    }
}
