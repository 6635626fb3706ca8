//! The tables of predicted and measured waits for gates.

use tailbound_document::number::{Unit, count, time};
use tailbound_document::{ConditionReport, GateReport, GateWaits, Report};

/// Heads of the columns of a table of waits.
pub(crate) const HEADS: [&str; 7] = ["predicted wait", "messages", "mean", "way", "+p50", "+p99", "+max"];

/// Explains the columns of a table of waits.
pub(crate) const COLUMNS: &str = "mean: of the predicted waits; way: mean time from the begin of the send call to the receipt; \
                                  +: by how much the way was longer than the predicted wait";

/// The gates of a report, each with its condition.
pub(crate) fn all(report: &Report) -> impl Iterator<Item = (&ConditionReport, &GateReport)> {
    report.conditions.iter().flat_map(|condition| condition.gates.iter().map(move |gate| (condition, gate)))
}

/// Describes a gate and what the schedule predicts, in sentences.
pub(crate) fn sentences(condition: &ConditionReport, gate: &GateReport) -> String {
    let mut text = format!(
        "Gate of class `{}` at the {} end ({}): frames of {} bytes, cycle {}.",
        gate.class,
        gate.end,
        condition.name,
        count(gate.frame_bytes),
        time(gate.cycle_ns as f64)
    );
    match (gate.mean_wait_ns, gate.worst_wait_ns, gate.share_without_wait) {
        (Some(mean_ns), Some(worst_ns), Some(share)) => text.push_str(&format!(
            " By the schedule, a frame that is ready at any time waits for {} on average and for {} at most, and does not wait at \
             {} of the times.",
            time(mean_ns),
            time(worst_ns as f64),
            format_args!("{:.1} %", 100.0 * share)
        )),
        _ => text.push_str(" By the schedule, no window is long enough for a frame."),
    }
    text + &measured(gate)
}

/// Describes when the messages left or arrived, in sentences.
fn measured(gate: &GateReport) -> String {
    let messages = if gate.end == "ping" { "messages" } else { "answers" };
    let mut text = String::new();
    if gate.phases.is_empty() && gate.left.is_some() {
        text.push_str(
            " The ends have different clocks, so that only the stamps of the sender are compared with the schedule.",
        );
    } else {
        let [first, second, later] = gate.cycles_later;
        text.push_str(&format!(
            " {} {messages} arrived less than one cycle after their gate permitted them, {} one cycle later, and {} after that.",
            count(first),
            count(second),
            count(later)
        ));
    }
    if gate.outside > 0 {
        text.push_str(&format!(
            " {} {messages} left or arrived before their gate permitted them: the schedule is not effective.",
            count(gate.outside)
        ));
    }
    if let Some(left) = &gate.left {
        text.push_str(&format!(" By the stamps of {} {messages}, {} left", count(left.messages), count(left.late)));
        text.push_str(" when their gate had closed for them");
        if left.late > 0 {
            text.push_str(&format!(", at most {} before", time(left.late_max_ns as f64)));
        }
        text.push('.');
    }
    text
}

/// Says how many messages have no place in the cycle, and why; empty if each has one.
pub(crate) fn not_placed(gate: &GateReport) -> String {
    if gate.not_placed == 0 {
        return String::new();
    }
    format!(
        " {} messages are not shown: when they left, the clock of the schedule was not known to within a quarter of the cycle.",
        count(gate.not_placed)
    )
}

/// The cells of a row of the table of waits.
pub(crate) fn cells(waits: &GateWaits) -> [String; 7] {
    let ns = |ns: i64| time(ns as f64);
    let range = match (waits.above_ns, waits.up_to_ns) {
        (_, 0) => "none".to_owned(),
        (above, to) => {
            let unit = Unit::of(to as f64);
            format!("{} {}", unit.range(above, to), unit.name())
        }
    };
    [
        range,
        count(waits.messages),
        time(waits.predicted_ns),
        time(waits.way_ns),
        ns(waits.beyond_p50_ns),
        ns(waits.beyond_p99_ns),
        ns(waits.beyond_max_ns),
    ]
}

/// The table of waits of a gate as lines of text, with columns of equal width; none if no message has a wait.
pub(crate) fn lines(gate: &GateReport) -> Vec<String> {
    if gate.waits.is_empty() {
        return Vec::new();
    }
    let heads = HEADS.map(str::to_owned);
    let rows = std::iter::once(heads).chain(gate.waits.iter().map(cells)).collect();
    aligned(rows).into_iter().chain([COLUMNS.to_owned()]).collect()
}

/// Rows of a table as lines of text, with columns of equal width: the first one to the left, the others to the right.
pub(crate) fn aligned<const N: usize>(rows: Vec<[String; N]>) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(n, (cell, width))| match n {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_document::GateLeft;

    /// A gate that is open for 5 of 20 ms.
    fn gate() -> GateReport {
        GateReport {
            end: "ping".into(),
            class: "stream".into(),
            frame_bytes: 106,
            cycle_ns: 20_000_000,
            mean_wait_ns: Some(5_625_424.6),
            worst_wait_ns: Some(15_000_103),
            share_without_wait: Some(0.249_995),
            permitted: Vec::new(),
            phases: Vec::new(),
            waits: Vec::new(),
            cycles_later: [0; 3],
            outside: 3,
            left: None,
            ..GateReport::default()
        }
    }

    #[test]
    fn between_two_clocks_the_stamps_of_the_sender_are_compared_with_the_schedule() {
        let gate = GateReport { left: Some(GateLeft { messages: 500, late: 2, late_max_ns: 31_000 }), ..gate() };
        assert!(lines(&gate).is_empty());
        insta::assert_snapshot!(measured(&gate));
    }

    #[test]
    fn the_table_fits_into_a_narrow_terminal() {
        let wait = |above_ns, up_to_ns, messages| GateWaits {
            above_ns,
            up_to_ns,
            messages,
            predicted_ns: up_to_ns as f64 / 1.1,
            way_ns: up_to_ns as f64 + 481_234.0,
            beyond_p50_ns: 481_234,
            beyond_p99_ns: 1_071_234,
            beyond_max_ns: 15_612_345,
        };
        let gate = GateReport {
            waits: vec![wait(0, 0, 144), wait(11_250_077, 15_000_103, 1_234_567)],
            cycles_later: [580, 2, 0],
            ..gate()
        };
        let lines = lines(&gate);
        assert!(lines[..3].iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        let words = |line: &str| {
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ").replace('\u{2009}', " ")
        };
        assert_eq!(words(&lines[1]), "none 144 0 ns 481 us 481 us 1.07 ms 15.6 ms");
        assert_eq!(words(&lines[2]), "11.2 to 15.1 ms 1,234,567 13.6 ms 15.5 ms 481 us 1.07 ms 15.6 ms");
    }
}
