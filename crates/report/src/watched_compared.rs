//! Two captures side by side, as text for a terminal.

use crate::date::utc;
use crate::tables::grid::{Column, Grid};
use crate::text::{Paint, wrap};
use tailbound_document::number::{count, three_digits, time};
use tailbound_document::{ComparedCapture, ComparedLateness, ComparedTopic, WatchComparison};

const NONE: &str = "-";

/// Writes the comparison of two captures as lines of at most `width` characters.
pub fn render_watch_comparison(comparison: &WatchComparison, width: usize, colour: bool) -> String {
    let capture = |word: &str, of: &ComparedCapture| {
        format!("{word}: {} from {}, at {}", time(of.duration_ns as f64), utc(of.begin_ns), of.place)
    };
    let mut lines = wrap(&capture("A", &comparison.a), width, 2);
    lines.extend(wrap(&capture("B", &comparison.b), width, 2));
    if !comparison.topics.is_empty() {
        let (first, others) = columns(&comparison.topics);
        for grid in Grid::of_columns(&first, others, width) {
            lines.push(String::new());
            lines.extend(grid.lines(&Paint::new(colour), |_| String::new(), |_| Vec::new()));
        }
        lines.push(String::new());
    }
    for (word, topics) in [("A", &comparison.only_a), ("B", &comparison.only_b)] {
        if !topics.is_empty() {
            lines.extend(wrap(&format!("in {word} alone: {}", topics.join(", ")), width, 2));
        }
    }
    let (in_a, in_b) = comparison.unknown;
    if in_a + in_b > 0 {
        lines.extend(wrap(
            &format!(
                "writers whose topic is not known, and which are not compared: {} in A, {} in B; capture with --ask",
                count(in_a),
                count(in_b)
            ),
            width,
            2,
        ));
    }
    let is_above =
        |topic: &ComparedTopic| topic.lateness.iter().any(|late| late.is_above_fastest.0 || late.is_above_fastest.1);
    if comparison.topics.iter().any(is_above) {
        lines.extend(wrap(
            "+: above the fastest sample seen, because a writer has another clock; no ratio to one without +.",
            width,
            2,
        ));
    }
    lines.extend(wrap(
        "ratio: the lateness of B divided by the lateness of A. Its 95 % interval is by the variation within each capture alone: two captures of one \
         unchanged system differ by more, so that it is no verdict. Several captures of each side show how much.",
        width,
        2,
    ));
    lines.join("\n") + "\n"
}

fn columns(topics: &[ComparedTopic]) -> (Column, Vec<Column>) {
    let column = |head: &str, right: bool, cell: &dyn Fn(&ComparedTopic) -> (String, String)| Column {
        head: head.to_owned(),
        cells: topics.iter().map(cell).collect(),
        right,
    };
    let alone = |text: String| (text, String::new());
    let names = column("topic", false, &|topic| alone(topic.topic.clone()));
    let rate = |of: Option<f64>| of.map_or_else(|| NONE.to_owned(), three_digits);
    let of = |topic: &ComparedTopic, statistic: &str| -> Option<ComparedLateness> {
        topic.lateness.iter().find(|late| late.statistic == statistic).cloned()
    };
    let late = |topic: &ComparedTopic, statistic: &str, is_a: bool| {
        let (value, above) = match of(topic, statistic) {
            None => return NONE.to_owned(),
            Some(late) if is_a => (late.value_ns.0, late.is_above_fastest.0),
            Some(late) => (late.value_ns.1, late.is_above_fastest.1),
        };
        format!("{}{}", if above { "+" } else { "" }, time(value as f64))
    };
    let ratio = |topic: &ComparedTopic, statistic: &str| {
        let late = of(topic, statistic);
        let text = late.as_ref().and_then(|late| late.ratio).map_or_else(|| NONE.to_owned(), |r| format!("{r:.2}"));
        let within = late.and_then(|late| late.within).map(|(low, high)| format!("{low:.2}-{high:.2}"));
        (text, within.unwrap_or_default())
    };
    let pair =
        |(a, b): (u64, u64)| alone(if a + b == 0 { NONE.to_owned() } else { format!("{}, {}", count(a), count(b)) });
    let all = vec![
        column("per second A", true, &|topic| alone(rate(topic.rate_hz.0))),
        column("B", true, &|topic| alone(rate(topic.rate_hz.1))),
        column("late p50 A", true, &|topic| alone(late(topic, "p50", true))),
        column("B", true, &|topic| alone(late(topic, "p50", false))),
        column("ratio", true, &|topic| ratio(topic, "p50")),
        column("late p99 A", true, &|topic| alone(late(topic, "p99", true))),
        column("B", true, &|topic| alone(late(topic, "p99", false))),
        column("ratio", true, &|topic| ratio(topic, "p99")),
        column("again A, B", true, &|topic| pair(topic.again)),
        column("lost A, B", true, &|topic| pair(topic.lost)),
    ];
    (names, all)
}
