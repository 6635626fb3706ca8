//! Captures side by side, as text for a terminal.

use crate::date::utc;
use crate::tables::grid::{Column, Grid};
use crate::text::{Paint, wrap};
use tailbound_document::number::{count, three_digits, time};
use tailbound_document::{ComparedCapture, ComparedLateness, ComparedTopic, VerdictWord, WatchComparison};

const NONE: &str = "-";
/// What a ratio of one capture to another one means.
const WITHIN: &str = "ratio: the lateness of B divided by the lateness of A. Its 95 % interval is by the variation within each capture \
    alone: two captures of one unchanged system differ by more, so that it is no verdict. Several captures of each side (directories with \
    at least five of them) have one.";
/// What a ratio of several captures to several others means.
const BETWEEN: &str = "ratio: the lateness of B divided by the lateness of A, geometric means of the captures. Intervals (95 %, all of them \
    together) and verdicts are by the variation between captures. \"more each\": captures that are missing for a verdict.";

/// Writes the comparison of captures as lines of at most `width` characters.
pub fn render_watch_comparison(comparison: &WatchComparison, width: usize, colour: bool) -> String {
    let capture = |word: &str, of: &ComparedCapture, captures: u64| {
        let all = if captures > 1 { format!("{} captures, the first one ", count(captures)) } else { String::new() };
        format!("{word}: {all}{} from {}, at {}", time(of.duration_ns as f64), utc(of.begin_ns), of.place)
    };
    let (captures_a, captures_b) = comparison.captures;
    let are_several = captures_a.max(captures_b) > 1;
    let mut lines = wrap(&capture("A", &comparison.a, captures_a), width, 2);
    lines.extend(wrap(&capture("B", &comparison.b, captures_b), width, 2));
    if !comparison.topics.is_empty() {
        let (first, others) = columns(&comparison.topics, are_several);
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
    if !comparison.not_in_all.is_empty() {
        let names = comparison.not_in_all.join(", ");
        lines.extend(wrap(&format!("not in every capture, and not compared: {names}"), width, 2));
    }
    lines.extend(wrap(if are_several { BETWEEN } else { WITHIN }, width, 2));
    lines.join("\n") + "\n"
}

fn columns(topics: &[ComparedTopic], are_several: bool) -> (Column, Vec<Column>) {
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
        let within =
            late.and_then(|late| late.between.or(late.within)).map(|(low, high)| format!("{low:.2}-{high:.2}"));
        (text, within.unwrap_or_default())
    };
    let pair =
        |(a, b): (u64, u64)| alone(if a + b == 0 { NONE.to_owned() } else { format!("{}, {}", count(a), count(b)) });
    let verdict = |topic: &ComparedTopic, statistic: &str| {
        let late = of(topic, statistic);
        alone(late.and_then(|late| Some(verdict(late.verdict?, late.more_captures))).unwrap_or_else(|| NONE.to_owned()))
    };
    let mut all = vec![
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
    if are_several {
        all.insert(5, column("p50", false, &|topic| verdict(topic, "p50")));
        all.insert(9, column("p99", false, &|topic| verdict(topic, "p99")));
    }
    (names, all)
}

fn verdict(word: VerdictWord, more_captures: Option<u64>) -> String {
    match (word, more_captures) {
        (VerdictWord::Faster, _) => "faster".to_owned(),
        (VerdictWord::Slower, _) => "slower".to_owned(),
        (VerdictWord::Equal, _) => "equal within the margin".to_owned(),
        (VerdictWord::NoDifferenceFound, _) => "no difference found".to_owned(),
        (VerdictWord::NotEnoughData, Some(more)) => format!("{} more each", count(more)),
        (VerdictWord::NotEnoughData, None) => "not enough data".to_owned(),
    }
}
