//! Numbers as people read them: three significant digits, thousands separated, a thin space before the unit.

use tailbound_stats::Quantile;

/// Narrow no-break space: between number and unit, so that they stay on one line.
pub(crate) const THIN: char = '\u{202f}';

/// A unit of time, chosen once for a table column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    Ns,
    Us,
    Ms,
    S,
}

impl Unit {
    /// The unit in which this many nanoseconds read best.
    pub fn of(ns: f64) -> Unit {
        match ns.abs() {
            v if v < 1e3 => Unit::Ns,
            v if v < 1e6 => Unit::Us,
            v if v < 1e9 => Unit::Ms,
            _ => Unit::S,
        }
    }

    /// One unit for a whole column: that of its median; a column without a time has none.
    pub fn of_all(values: impl IntoIterator<Item = i64>) -> Option<Unit> {
        let mut values: Vec<i64> = values.into_iter().map(i64::abs).collect();
        values.sort_unstable();
        values.get(values.len() / 2).map(|v| Unit::of(*v as f64))
    }

    pub fn name(self) -> &'static str {
        ["ns", "us", "ms", "s"][self as usize]
    }

    fn factor(self) -> f64 {
        [1.0, 1e3, 1e6, 1e9][self as usize]
    }

    /// The number alone, for a column with the unit in its head.
    pub fn number(self, ns: f64) -> String {
        let value = ns / self.factor();
        if self == Unit::Ns { three_digits(value.round()) } else { three_digits(value) }
    }

    /// `12.3 to 18.4`, rounded outwards: what lies between the values lies between the numbers.
    pub fn range(self, low_ns: i64, high_ns: i64) -> String {
        let step = |ns: i64| 10i64.pow(ns.unsigned_abs().max(1).ilog10().saturating_sub(2));
        let down = |ns: i64| ns.div_euclid(step(ns)).saturating_mul(step(ns));
        let up = |ns: i64| down(ns.saturating_neg()).saturating_neg();
        format!("{} to {}", self.number(down(low_ns) as f64), self.number(up(high_ns) as f64))
    }

    /// Number and unit.
    pub fn with(self, ns: f64) -> String {
        format!("{}{THIN}{}", self.number(ns), self.name())
    }
}

/// A time in the unit that fits it.
pub(crate) fn time(ns: f64) -> String {
    Unit::of(ns).with(ns)
}

/// A whole number with its thousands separated.
pub(crate) fn count(n: u64) -> String {
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

/// Three significant digits; above 1,000 the rest is zeros.
pub(crate) fn three_digits(value: f64) -> String {
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
        // A whole number of few digits (7 ns) gains nothing from zeros behind the point.
        return format!("{sign}{value}");
    }
    let decimals = (2 - exponent) as usize;
    format!("{sign}{:.decimals$}", scaled * 10f64.powi(exponent - 2))
}

/// How rare a message beyond quantile `q` is: `1 in 1,000`; the label where that is no whole number.
pub(crate) fn one_in(q: f64) -> String {
    // In whole parts: 1 - q has few digits left where q is close to 1.
    let n = Quantile::from_f64(q).map_or(f64::NAN, |q| 1e15 / (1e15 - q.parts() as f64));
    if (n - n.round()).abs() < 1e-4 * n { format!("1 in {}", count(n.round() as u64)) } else { label(q) }
}

/// `p99.9`.
pub(crate) fn label(q: f64) -> String {
    Quantile::from_f64(q).map_or_else(|_| format!("p{}", q * 100.0), Quantile::label)
}

/// `1 in 400`, of a count among others; one decimal where that tells more.
pub(crate) fn share(part: u64, whole: u64) -> String {
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
