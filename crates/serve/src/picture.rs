//! Small pictures for the list of records: the distribution of the round trips of a record, and a figure of the records of
//! the same study over time.

use crate::short::{Short, time};
use std::fmt::Write;
use tailbound_report::escape_html as escape;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 24.0;

/// Number of bars of a distribution.
const BARS: usize = 40;

/// Draws the distribution of the round trips of a record, from `low_ns` to `high_ns`. Both scales are logarithmic.
pub(crate) fn distribution(short: &Short, low_ns: i64, high_ns: i64) -> String {
    let (low, high) = (low_ns.max(1) as f64, high_ns.max(low_ns + 1).max(2) as f64);
    let mut counts = [0_u64; BARS];
    for (from, to, n) in &short.histogram {
        let middle = ((*from + *to) as f64 / 2.0).max(1.0);
        let at = (middle / low).ln() / (high / low).ln() * BARS as f64;
        counts[(at.max(0.0) as usize).min(BARS - 1)] += n;
    }
    let top = (counts.iter().copied().max().unwrap_or(0) + 1) as f64;
    let width = WIDTH / BARS as f64;
    let mut d = String::new();
    for (i, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
        let height = (2.0 + (HEIGHT - 2.0) * (*n as f64).ln_1p() / top.ln_1p()).min(HEIGHT);
        // Writing to a text does not fail.
        let _ = write!(d, "M{:.1},{HEIGHT}v-{height:.1}h{width:.1}V{HEIGHT}z", i as f64 * width);
    }
    let words = format!("Distribution of {}, from {} to {}", short.condition, time(low_ns), time(high_ns));
    picture(&words, &format!("<path class=\"count s0\" d=\"{d}\"/>"))
}

/// Draws p99 of the records of a study over time; `at` is the number of the record of this row. Empty if fewer than two
/// records have a p99.
pub(crate) fn trend(p99s_ns: &[i64], at: usize) -> String {
    if p99s_ns.len() < 2 {
        return String::new();
    }
    let ends = p99s_ns.iter().fold((i64::MAX, 1), |(low, high), ns| (low.min(*ns), high.max(*ns)));
    let (low, high) = (ends.0.max(1) as f64, (ends.1 as f64).max(ends.0 as f64 * 1.2));
    let place = |(i, ns): (usize, &i64)| {
        let x = 5.0 + (WIDTH - 10.0) * i as f64 / (p99s_ns.len() - 1) as f64;
        let share = ((*ns).max(1) as f64 / low).ln() / (high / low).ln();
        (x, HEIGHT - 5.0 - (HEIGHT - 10.0) * share)
    };
    let places: Vec<(f64, f64)> = p99s_ns.iter().enumerate().map(place).collect();
    let line: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let dot = places
        .get(at)
        .map_or(String::new(), |(x, y)| format!("<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"));
    let words = format!("p99 of {} records of this study, from {} to {}", p99s_ns.len(), time(ends.0), time(ends.1));
    picture(&words, &format!("<g class=\"s0\"><polyline class=\"line thin\" points=\"{}\"/>{dot}</g>", line.join(" ")))
}

fn picture(words: &str, shapes: &str) -> String {
    let words = escape(words);
    format!(
        "<svg class=\"small\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" \
         aria-label=\"{words}\"><title>{words}</title>{shapes}</svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_marks_the_record_of_the_row() {
        assert_eq!(trend(&[1_000], 0), "", "one record is no trend");
        let drawn = trend(&[100_000, 1_000_000], 1);
        assert!(drawn.contains("points=\"5.0,19.0 115.0,5.0\""), "{drawn}");
        assert!(drawn.contains("cx=\"115.0\" cy=\"5.0\""), "{drawn}");
    }

    #[test]
    fn a_distribution_has_a_bar_where_messages_are() {
        let short = Short {
            condition: "udp".into(),
            p50_ns: None,
            p99_ns: None,
            lost: (0, 3),
            histogram: vec![(1_000, 1_100, 2), (1_000_000, 1_000_000, 1)],
        };
        let drawn = distribution(&short, 1_000, 1_000_000);
        assert_eq!(drawn.matches('M').count(), 2, "{drawn}");
        assert!(drawn.contains("M117.0,24"), "the last bar: {drawn}");
    }
}
