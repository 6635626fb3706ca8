//! Quantities with units, as they are written in studies and shown to users.
//!
//! Units are case-sensitive. A space between number and unit is optional in the input and always written in the output.

use crate::Problem;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Returns a [`Problem`] which says that `text` is not a quantity of the wanted kind; `wanted` names the kind, e.g.
/// "a duration such as `10 ms`".
pub(crate) fn not_a_quantity(text: &str, wanted: impl fmt::Display) -> Problem {
    Problem::new("not_a_quantity", format!("`{text}` is not {wanted}"), "")
}

/// Splits a quantity such as `1.5 kHz` into the number and the unit; the unit may be empty.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

fn parse_with(text: &str, units: &[(&str, f64)], what: &str) -> Result<f64, Problem> {
    let list = units.iter().map(|u| u.0).collect::<Vec<_>>().join(" ");
    let error = |remedy: &str| not_a_quantity(text, format!("{what} (units: {list})")).with_remedy(remedy);
    if let Some((first, second)) = text.split_once(',') {
        let is_quantity = |part: &str| parse_with(part, units, what).is_ok();
        if is_quantity(first) && second.split(',').all(is_quantity) {
            let all: Vec<&str> = text.split(',').map(str::trim).collect();
            return Err(error(&format!("several levels are a list: write `[{}]`", all.join(", "))));
        }
    }
    let (number, unit) = split(text).ok_or_else(|| error(""))?;
    match units.iter().find(|u| u.0 == unit) {
        Some((_, factor)) => Ok(number * factor),
        None if unit.is_empty() && number > 0.0 => {
            let has_times = units.iter().any(|unit| unit.0 == "ms");
            let examples = if has_times { vec!["ms", "s"] } else { units.iter().take(1).map(|unit| unit.0).collect() };
            let examples: Vec<String> = examples.iter().map(|unit| format!("`{} {unit}`", text.trim())).collect();
            Err(error(&format!("the number has no unit: write for example {}", examples.join(" or "))))
        }
        None if unit.is_empty() => Err(error("the number has no unit")),
        None => match units.iter().find(|u| u.0.eq_ignore_ascii_case(unit)) {
            Some((near, _)) => Err(error(&format!("did you mean `{near}`? Units are case-sensitive"))),
            None => Err(error("")),
        },
    }
}

/// Text of a number with at most three decimals and without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A span of time or an instant of the monotonic clock, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    const UNITS: [(&'static str, f64); 6] =
        [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
    /// Makes a duration from a number of seconds.
    pub const fn from_secs(s: i64) -> Self {
        Nanos(s * 1_000_000_000)
    }
    /// Makes a duration from a number of milliseconds.
    pub const fn from_millis(ms: i64) -> Self {
        Nanos(ms * 1_000_000)
    }
    /// Reads a duration from its text. If the text is not a duration, the returned problem says that the text is not
    /// `wanted`.
    ///
    /// # Errors
    /// Returns a problem if the text is not a number with a unit of time.
    pub fn parse_as(text: &str, wanted: &str) -> Result<Nanos, Problem> {
        parse_with(text, &Self::UNITS, wanted).map(|v| Nanos(v.round() as i64))
    }
    /// The duration as a number of seconds.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Converts the duration to the type of the standard library; a negative duration becomes zero.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0.max(0) as u64)
    }
}

impl FromStr for Nanos {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Self, Problem> {
        Nanos::parse_as(text, "a duration such as `10 ms`")
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0 as f64;
        let (unit, factor) = match self.0.unsigned_abs() {
            0..1_000 => ("ns", 1.0),
            1_000..1_000_000 => ("us", 1e3),
            1_000_000..1_000_000_000 => ("ms", 1e6),
            _ => ("s", 1e9),
        };
        write!(f, "{} {unit}", number(v / factor))
    }
}

/// A size or length as a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

impl ByteSize {
    const UNITS: [(&'static str, f64); 7] = [
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ];
}

impl FromStr for ByteSize {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Self, Problem> {
        parse_with(text, &Self::UNITS, "a size such as `60 kB`").map(|v| ByteSize(v.round() as u64))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        for (unit, factor) in [
            ("GiB", 1u64 << 30),
            ("GB", 1_000_000_000),
            ("MiB", 1 << 20),
            ("MB", 1_000_000),
            ("KiB", 1 << 10),
            ("kB", 1000),
        ] {
            if n >= factor && n.is_multiple_of(factor) {
                return write!(f, "{} {unit}", n / factor);
            }
        }
        write!(f, "{n} B")
    }
}

/// How often slots are due: a period, or as soon as the answer has arrived (stop-and-wait).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Rate at which one slot is due per period; the value is the period.
    Period(Nanos),
    /// Stop-and-wait: the next message is sent when the answer has arrived.
    Max,
}

impl Rate {
    /// Time from one slot to the next at this rate, or `None` for stop-and-wait.
    pub fn period(self) -> Option<Nanos> {
        match self {
            Rate::Period(p) => Some(p),
            Rate::Max => None,
        }
    }
}

impl FromStr for Rate {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Self, Problem> {
        if text.trim() == "max" {
            return Ok(Rate::Max);
        }
        let what = "`max`, a rate such as `1 kHz`, or its period such as `1006 us`";
        let period = text.trim().trim_start_matches("every ");
        if let Ok(Nanos(ns)) = period.parse::<Nanos>() {
            return match ns {
                1.. => Ok(Rate::Period(Nanos(ns))),
                _ => Err(not_a_quantity(text, format!("{what}, above 0"))),
            };
        }
        let hertz = parse_with(text, &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6)], what)?;
        if hertz > 0.0 && hertz <= 1e9 {
            Ok(Rate::Period(Nanos((1e9 / hertz).round() as i64)))
        } else {
            Err(not_a_quantity(text, format!("{what}, above 0 Hz and at most 1000 MHz")))
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Max => f.write_str("max"),
            // A rate that is not a whole number of hertz is written as its period.
            Rate::Period(p) if p.0 % 1_000 == 0 && 1_000_000_000_000 % p.0 != 0 => write!(f, "every {p}"),
            Rate::Period(p) => {
                let hertz = 1e9 / p.0 as f64;
                match hertz {
                    h if h >= 1e6 => write!(f, "{} MHz", number(h / 1e6)),
                    h if h >= 1e3 => write!(f, "{} kHz", number(h / 1e3)),
                    h => write!(f, "{} Hz", number(h)),
                }
            }
        }
    }
}
