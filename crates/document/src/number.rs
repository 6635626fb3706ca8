//! Formats numbers for people: three significant digits, thousands separated, a thin space before the unit.

use tailbound_stats::Quantile;

/// Narrow no-break space, which is written between number and unit so that both stay on one line.
pub const THIN: char = '\u{202f}';

/// A unit of time, which is chosen once for a table column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Unit of time: nanoseconds.
    Ns,
    /// Unit of time: microseconds.
    Us,
    /// Unit of time: milliseconds.
    Ms,
    /// Unit of time: seconds.
    S,
}

impl Unit {
    /// Chooses the unit in which this number of nanoseconds is easiest to read.
    pub fn of(ns: f64) -> Unit {
        match ns.abs() {
            v if v < 1e3 => Unit::Ns,
            v if v < 1e6 => Unit::Us,
            v if v < 1e9 => Unit::Ms,
            _ => Unit::S,
        }
    }

    /// Chooses one unit for a whole table column: the unit that fits the median of the values; `None` if there are no
    /// values.
    pub fn of_all(values: impl IntoIterator<Item = i64>) -> Option<Unit> {
        let mut values: Vec<i64> = values.into_iter().map(i64::abs).collect();
        values.sort_unstable();
        values.get(values.len() / 2).map(|v| Unit::of(*v as f64))
    }

    /// Symbol of the unit of time, e.g. `us`.
    pub fn name(self) -> &'static str {
        ["ns", "us", "ms", "s"][self as usize]
    }

    fn factor(self) -> f64 {
        [1.0, 1e3, 1e6, 1e9][self as usize]
    }

    /// Writes a time in this unit without the unit's symbol, for a table column that names the unit in its header.
    pub fn number(self, ns: f64) -> String {
        let value = ns / self.factor();
        if self == Unit::Ns { three_digits(value.round()) } else { three_digits(value) }
    }

    /// Writes a range of two times without unit, e.g. `12.3 to 18.4`; the lower number is rounded down and the upper
    /// number is rounded up.
    pub fn range(self, low_ns: i64, high_ns: i64) -> String {
        let step = |ns: i64| 10i64.pow(ns.unsigned_abs().max(1).ilog10().saturating_sub(2));
        let down = |ns: i64| ns.div_euclid(step(ns)).saturating_mul(step(ns));
        let up = |ns: i64| down(ns.saturating_neg()).saturating_neg();
        format!("{} to {}", self.number(down(low_ns) as f64), self.number(up(high_ns) as f64))
    }

    /// Formats a time, given in ns, as a number with this unit.
    pub fn with(self, ns: f64) -> String {
        format!("{}{THIN}{}", self.number(ns), self.name())
    }
}

/// Writes a time as number and unit, in the unit that is easiest to read.
pub fn time(ns: f64) -> String {
    Unit::of(ns).with(ns)
}

/// Formats a whole number with separated thousands, e.g. `1,000`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a number with three significant digits; in numbers above 1,000, all further digits are zeros.
pub fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { value.to_string() };
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let value = value.abs();
    let mut exponent = value.log10().floor() as i32;
    let mut scaled = (value / 10f64.powi(exponent - 2)).round();
    if scaled >= 1000.0 {
        scaled /= 10.0;
        exponent += 1;
    }
    if exponent >= 2 {
        let whole = (scaled * 10f64.powi(exponent - 2)).round();
        return format!("{sign}{}", count(whole as u64));
    }
    if value.fract() == 0.0 && value < 100.0 && scaled == value * 10f64.powi(2 - exponent) {
        // A whole number with few digits (7 ns) is written without decimals.
        return format!("{sign}{value}");
    }
    let decimals = (2 - exponent) as usize;
    format!("{sign}{:.decimals$}", scaled * 10f64.powi(exponent - 2))
}

/// Writes how rare messages above the quantile `q` are, e.g. `1 in 1,000`; if this is not a whole number, writes the
/// label of the quantile.
pub fn one_in(q: f64) -> String {
    // The quotient is computed from whole parts, because 1 - q has few significant digits if q is close to 1.
    let n = Quantile::from_f64(q).map_or(f64::NAN, |q| 1e15 / (1e15 - q.parts() as f64));
    if (n - n.round()).abs() < 1e-4 * n { format!("1 in {}", count(n.round() as u64)) } else { label(q) }
}

/// Label of the quantile for the fraction `q`, e.g. `p99.9`.
pub fn label(q: f64) -> String {
    Quantile::from_f64(q).map_or_else(|_| format!("p{}", q * 100.0), Quantile::label)
}

/// Writes the share of `part` in `whole` as `1 in N`, e.g. `1 in 400`; N has one decimal if it is below 10.
pub fn share(part: u64, whole: u64) -> String {
    let n = whole as f64 / part.max(1) as f64;
    if n < 10.0 { format!("1 in {:.1}", n) } else { format!("1 in {}", three_digits(n.round())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.0123456, "0.0123"),
            (0.9996, "1.00"),
            (9.996, "10.0"),
            (62.14, "62.1"),
            (99.96, "100"),
            (123.4, "123"),
            (999.6, "1,000"),
            (3412.0, "3,410"),
            (1_234_567.0, "1,230,000"),
            (-3.4, "-3.40"),
            (7.0, "7"),
            (42.0, "42"),
            (3.4, "3.40"),
        ] {
            assert_eq!(three_digits(value), text, "{value}");
        }
    }

    #[test]
    fn ranges_are_rounded_outwards() {
        for (low, high, text) in [
            (12_349, 18_401, "12.3 to 18.5"),
            (12_300, 18_400, "12.3 to 18.4"),
            (0, 999_901, "0 to 1,000"),
            (-1_235, 7, "-1.24 to 0.00700"),
            (-2_000, -1_239, "-2 to -1.23"),
        ] {
            assert_eq!(Unit::Us.range(low, high), text);
        }
        assert!(Unit::S.range(i64::MIN, i64::MAX).contains(" to "));
    }

    #[test]
    fn words_for_quantiles() {
        assert_eq!(one_in(0.999), "1 in 1,000");
        assert_eq!(one_in(0.9999), "1 in 10,000");
        assert_eq!(one_in(0.95), "1 in 20");
        assert_eq!(one_in(0.9999999999), "1 in 10,000,000,000");
        assert_eq!(one_in(0.97), "p97");
        assert_eq!(label(0.9999999999), "p99.99999999");
        assert_eq!(label(0.999), "p99.9");
        assert_eq!(label(0.5), "p50");
    }

    #[test]
    fn shares() {
        assert_eq!(share(150, 60_000), "1 in 400");
        assert_eq!(share(651, 4_000), "1 in 6.1");
    }
}
