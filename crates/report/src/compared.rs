//! Words for one compared statistic: its values, its ratio with the interval, and its verdict.

use tailbound_document::number::{three_digits, time};
use tailbound_document::{Compared, VerdictWord};

/// Formats the verdict of a comparison for one cell of a table.
pub(crate) fn verdict(c: &Compared, margin: Option<f64>) -> String {
    let within = match margin {
        Some(margin) => format!("within {}", per_cent(margin)),
        None => String::new(),
    };
    match c.verdict {
        VerdictWord::Faster if c.within_margin => format!("faster, {within}"),
        VerdictWord::Slower if c.within_margin => format!("slower, {within}"),
        VerdictWord::Faster => "faster".into(),
        VerdictWord::Slower => "slower".into(),
        VerdictWord::Equal => format!("equal {within}"),
        VerdictWord::NoDifferenceFound => "no difference found".into(),
        VerdictWord::NotEnoughData => "not enough data".into(),
    }
}

/// Formats a share, for example `5 %`.
pub(crate) fn per_cent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// Formats the verdict about one statistic with its ratio, for example `slower (ratio 1.92, 95 %: 1.91 to 1.93)`.
pub fn verdict_with_ratio(c: &Compared) -> String {
    let only = if c.within_runs { ", these runs only" } else { "" };
    format!("{} ({}{only})", verdict(c, None), ratio(c))
}

/// Formats a ratio with its interval, for example `1.10 (1.05 to 1.15)`.
pub(crate) fn ratio(c: &Compared) -> String {
    let of = |r: f64| three_digits(r);
    match (c.ratio, c.interval) {
        (Some(ratio), Some([low, high])) => format!("ratio {}, 95 %: {} to {}", of(ratio), of(low), of(high)),
        (Some(ratio), None) => format!("ratio {}", of(ratio)),
        _ => "no ratio".into(),
    }
}

/// Formats a compared value of a statistic with its unit.
pub(crate) fn shown(value: Option<f64>, unit: &str) -> String {
    match value {
        None => String::new(),
        Some(ns) if unit == "ns" => time(ns),
        Some(value) => format!("{} {unit}", three_digits(value)),
    }
}
