//! Quantiles as exact decimal fractions, so that ranks are computed without rounding.

use std::fmt;
use std::str::FromStr;

/// Number of equal parts into which the range from 0 to 1 is divided: 10^15, because an `f64` below 1 has 15 exact
/// decimals.
pub(crate) const WHOLE: u64 = 1_000_000_000_000_000;

/// A quantile strictly between 0 and 1, stored as a whole number of parts per 10^15.
///
/// A quantile is written and read as a decimal fraction (`0.999`) or as a label (`p99.9`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantile {
    parts: u64,
}

impl Quantile {
    /// The median, which is the 0.5 quantile.
    pub const P50: Quantile = Quantile { parts: 500_000_000_000_000 };
    /// The 0.9 quantile.
    pub const P90: Quantile = Quantile { parts: 900_000_000_000_000 };
    /// The 0.99 quantile.
    pub const P99: Quantile = Quantile { parts: 990_000_000_000_000 };
    /// The 0.999 quantile.
    pub const P99_9: Quantile = Quantile { parts: 999_000_000_000_000 };
    /// The 0.9999 quantile.
    pub const P99_99: Quantile = Quantile { parts: 999_900_000_000_000 };
    /// The 0.99999 quantile.
    pub const P99_999: Quantile = Quantile { parts: 999_990_000_000_000 };

    /// The quantile of a number of parts per 10^15: 990,000,000,000,000 is 0.99.
    ///
    /// # Errors
    /// [`QuantileError::OutOfRange`] for 0 and for 10^15 or more: the minimum and the maximum are not quantiles.
    pub fn from_parts(parts: u64) -> Result<Self, QuantileError> {
        if parts == 0 || parts >= WHOLE {
            return Err(QuantileError::OutOfRange);
        }
        Ok(Quantile { parts })
    }

    /// The quantile of a number between 0 and 1, rounded to the nearest part per 10^15. So a number that a parser read
    /// from `0.99` becomes exactly 0.99.
    ///
    /// # Errors
    /// [`QuantileError::OutOfRange`] if the rounded number is not strictly between 0 and 1.
    pub fn from_f64(q: f64) -> Result<Self, QuantileError> {
        let parts = (q * WHOLE as f64).round();
        if !(parts >= 1.0 && parts < WHOLE as f64) {
            return Err(QuantileError::OutOfRange);
        }
        Ok(Quantile { parts: parts as u64 })
    }

    /// The quantile as a number of parts per 10^15.
    pub fn parts(self) -> u64 {
        self.parts
    }

    /// The quantile as the nearest `f64`.
    pub fn as_f64(self) -> f64 {
        self.parts as f64 / WHOLE as f64
    }

    /// The rank of this quantile among `n` scheduled slots, counted from 1: ceil(q n), computed in whole numbers. The
    /// rank is 0 only for `n = 0`.
    ///
    /// This is the inverse of the empirical distribution function: definition 1 of Hyndman & Fan, Sample Quantiles in
    /// Statistical Packages, The American Statistician 50 (1996).
    pub fn rank(self, n: u64) -> u64 {
        (u128::from(self.parts) * u128::from(n)).div_ceil(u128::from(WHOLE)) as u64
    }

    /// The short label of the quantile, for example `p50` or `p99.9`.
    pub fn label(self) -> String {
        format!("p{}", decimal(self.parts, 13))
    }
}

impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(self.parts, 15))
    }
}

impl FromStr for Quantile {
    type Err = QuantileError;

    /// Parses a quantile such as `0.99` or `p99` without the use of floating-point numbers.
    fn from_str(text: &str) -> Result<Self, QuantileError> {
        let parts = match text.strip_prefix('p') {
            Some(percent) => scaled(percent, 13)?,
            None => scaled(text, 15)?,
        };
        Quantile::from_parts(parts)
    }
}

/// Reason why a text or number is not a [`Quantile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantileError {
    /// Reason: the text is neither a decimal fraction such as `0.99` nor a label such as `p99`.
    NotADecimal,
    /// Reason: the number is not strictly between 0 and 1.
    OutOfRange,
    /// Reason: the number has more than fifteen decimal places.
    TooFine,
}

impl fmt::Display for QuantileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotADecimal => "a quantile is written as a decimal, 0.99, or as a label, p99",
            Self::OutOfRange => "a quantile lies between 0 and 1, both excluded",
            Self::TooFine => "a quantile has at most fifteen decimal places",
        })
    }
}

impl std::error::Error for QuantileError {}

/// Writes `parts` with a decimal point before the last `places` digits, without trailing zeros.
fn decimal(parts: u64, places: usize) -> String {
    let unit = 10u64.pow(places as u32);
    let fraction = format!("{:0places$}", parts % unit);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}", parts / unit)
}

/// Parses a decimal text and returns the number times 10^`places`, computed exactly.
fn scaled(text: &str, places: usize) -> Result<u64, QuantileError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) {
        return Err(QuantileError::NotADecimal);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places {
        return Err(QuantileError::TooFine);
    }
    format!("{whole}{fraction:0<places$}").parse().map_err(|_| QuantileError::OutOfRange)
}
