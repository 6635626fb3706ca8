//! Formats figures of other benchmark programs compared with figures of drivers.

use tailbound_document::number::{three_digits, time};
use tailbound_document::{SameFigure, SideBySide};

/// Formats a pair of comparable figures with their ratio, for example `p50 46.6 us against 52.8 us (0.88 times)`.
pub(crate) fn figures(pair: &SideBySide) -> Vec<String> {
    let set = |figure: &SameFigure, value: f64| match figure.what.ends_with("_ns") {
        true => time(value),
        false if figure.what.contains("mbit") => format!("{} Mbit/s", three_digits(value)),
        false => three_digits(value),
    };
    let words = |f: &SameFigure| {
        let ratio = format!("{} times", three_digits(f.ratio));
        format!("{} {} against {} ({ratio})", f.statistic, set(f, f.a), set(f, f.b))
    };
    pair.same.iter().map(words).collect()
}
