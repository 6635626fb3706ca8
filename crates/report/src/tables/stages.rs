//! The tables of the stages of messages.

use super::gates::aligned;
use tailbound_document::number::{count, time};
use tailbound_document::{ConditionReport, Report, StagePart, StageReport, StageWord};

/// Heads of the columns of a table of stages.
pub(crate) const HEADS: [&str; 6] = ["part", "messages", "mean", "p50", "p99", "max"];

/// The stages of a report, each with its condition.
pub(crate) fn all(report: &Report) -> impl Iterator<Item = (&ConditionReport, &StageReport)> {
    report.conditions.iter().flat_map(|condition| condition.stages.iter().map(move |stages| (condition, stages)))
}

/// Describes whose messages these are, and which stamps are missing, in sentences.
pub(crate) fn sentences(condition: &ConditionReport, of: &StageReport) -> String {
    described(&condition.name, of)
}

fn described(condition: &str, of: &StageReport) -> String {
    let messages = if of.end == "ping" { "messages" } else { "answers" };
    let mut text = format!("Stages of {} {messages} of the {} end ({}).", count(of.messages), of.end, condition);
    let width =
        |ns: Option<i64>, by: &str| ns.map(|ns| format!(" Stamps of {by} are wrong by at most {}.", time(ns as f64)));
    text.extend(width(of.width_ns, "the kernel"));
    text.extend(width(of.card_width_ns, "the network card"));
    text.extend(width(of.receiver_card_width_ns, "the receiver's network card"));
    text.extend(of.parts.iter().filter_map(wire_error));
    let missing = [
        (of.without_queued, "stamp at the queue of the interface"),
        (of.without_sent, "stamp of the interface's driver"),
        (of.without_card.unwrap_or(0), "stamp of the network card"),
        (of.without_card_rx.unwrap_or(0), "stamp of the receiver's network card"),
        (of.without_received.unwrap_or(0), "receive timestamp"),
        (of.without_taken.unwrap_or(0), "time of the take by the executor"),
    ];
    // If the kernel stamped nothing, the table is about the executor.
    let said = missing
        .into_iter()
        .filter(|(n, _)| (1..of.messages).contains(n) || (*n > 0 && of.width_ns.is_some()))
        .map(|(n, what)| format!(" {} have no {what}.", count(n)));
    text.extend(said);
    if of.unused > 0 {
        text.push_str(&format!(" {} stamps could not be used.", count(of.unused)));
    }
    if of.clocks_differ || of.without_received.is_none() {
        let gap = "The ends have different clocks, so that the time from the last stamp of the sender to the first stamp of the receiver is";
        text.push_str(&match &of.wire_range {
            Some(_) => format!(" {gap} a range: least and most that all messages permit."),
            None => format!(" {gap} no part."),
        });
    }
    if of.without_wire > 0 {
        text.push_str(&format!(
            " For {} messages, the clocks have no bounds, so that their wire is not known.",
            count(of.without_wire)
        ));
    }
    text
}

/// Says how exactly the time between two network cards is known.
fn wire_error(part: &StagePart) -> Option<String> {
    let error_ns = part.error_ns.filter(|_| part.stages == [StageWord::Wire])?;
    Some(format!(" Each time of wire is a range of ± {} around its value.", time(error_ns as f64)))
}

/// Name of a stage.
fn word(stage: StageWord) -> &'static str {
    match stage {
        StageWord::HostLateness => "host lateness",
        StageWord::LaunchWait => "launch wait",
        StageWord::GateWait => "gate wait",
        StageWord::OwnClassQueue => "own class queue",
        StageWord::ReleaseLateness => "release lateness",
        StageWord::Wire => "wire",
        StageWord::ReceivePath => "receive path",
        StageWord::Thread => "thread",
        StageWord::Executor => "executor",
    }
}

/// The rows of the table of stages, as cells.
pub(crate) fn rows(of: &StageReport) -> Vec<[String; 6]> {
    let range = of.wire_range.iter().flat_map(|range| [("wire, least", &range.low), ("wire, most", &range.high)]);
    let range = range.map(|(name, part)| cells(name.to_owned(), part));
    let parts = of.parts.iter().map(|part| {
        let words: Vec<&str> = part.stages.iter().map(|stage| word(*stage)).collect();
        cells(words.join(" + "), part)
    });
    let at_sender =
        of.parts.iter().take_while(|part| !part.stages.iter().any(|stage| *stage > StageWord::Wire)).count();
    let mut rows: Vec<_> = parts.collect();
    rows.splice(at_sender..at_sender, range);
    rows
}

/// The cells of a row of the table of stages.
fn cells(name: String, part: &StagePart) -> [String; 6] {
    let ns = |ns: i64| time(ns as f64);
    [name, count(part.messages), time(part.mean_ns), ns(part.p50_ns), ns(part.p99_ns), ns(part.max_ns)]
}

/// The table of stages as lines of text, with columns of equal width.
pub(crate) fn lines(of: &StageReport) -> Vec<String> {
    aligned(std::iter::once(HEADS.map(str::to_owned)).chain(rows(of)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_into_a_narrow_terminal() {
        let part = |stages: &[StageWord], max_ns| StagePart {
            stages: stages.to_vec(),
            messages: 1_234_567,
            mean_ns: max_ns as f64 / 3.0,
            p50_ns: max_ns / 4,
            p99_ns: max_ns / 2,
            max_ns,
            histogram: Vec::new(),
            error_ns: Some(1_310),
        };
        let of = StageReport {
            end: "pong".into(),
            messages: 1_234_567,
            parts: vec![
                part(&[StageWord::HostLateness], 15_612_345),
                part(&[StageWord::Wire, StageWord::ReceivePath], 481_234),
            ],
            without_queued: 0,
            without_sent: 3,
            without_card: None,
            without_card_rx: None,
            without_received: Some(1),
            without_taken: None,
            clocks_differ: false,
            wire_range: None,
            without_wire: 0,
            unused: 2,
            width_ns: Some(40),
            card_width_ns: None,
            receiver_card_width_ns: None,
        };
        let lines = lines(&of);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ").replace('\u{2009}', " ");
        assert_eq!(plain(&lines[2]), "wire + receive path 1,234,567 160 us 120 us 241 us 481 us");
    }

    #[test]
    fn the_wire_between_two_clocks_has_rows_of_its_own() {
        let part = |stage, p50_ns| StagePart {
            stages: vec![stage],
            messages: 98,
            mean_ns: p50_ns as f64,
            p50_ns,
            p99_ns: 2 * p50_ns,
            max_ns: 3 * p50_ns,
            histogram: Vec::new(),
            error_ns: Some(20),
        };
        let of = StageReport {
            end: "ping".into(),
            messages: 100,
            parts: vec![
                part(StageWord::HostLateness, 5_000),
                part(StageWord::ReleaseLateness, 1_000),
                part(StageWord::ReceivePath, 3_000),
                part(StageWord::Thread, 40_000),
            ],
            without_queued: 0,
            without_sent: 0,
            without_card: Some(0),
            without_card_rx: Some(2),
            without_received: Some(0),
            without_taken: None,
            clocks_differ: true,
            wire_range: Some([part(StageWord::Wire, 0), part(StageWord::Wire, 16_000)].into()),
            without_wire: 1,
            unused: 0,
            width_ns: Some(40),
            card_width_ns: Some(900),
            receiver_card_width_ns: Some(800),
        };
        let text = [vec![described("udp, 64 B", &of)], lines(&of)].concat().join("\n").replace('\u{2009}', " ");
        insta::assert_snapshot!(text);
    }
}
