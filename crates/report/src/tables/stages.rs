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
    let messages = if of.end == "ping" { "messages" } else { "answers" };
    let mut text = format!("Stages of {} {messages} of the {} end ({}).", count(of.messages), of.end, condition.name);
    let width =
        |ns: Option<i64>, by: &str| ns.map(|ns| format!(" Stamps of {by} are wrong by at most {}.", time(ns as f64)));
    text.extend(width(of.width_ns, "the kernel"));
    text.extend(width(of.card_width_ns, "the network card"));
    let missing = [
        (of.without_queued, "stamp at the queue of the interface"),
        (of.without_sent, "stamp of the interface's driver"),
        (of.without_card.unwrap_or(0), "stamp of the network card"),
        (of.without_received.unwrap_or(0), "receive timestamp"),
    ];
    let said = missing.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(" {} have no {what}.", count(n)));
    text.extend(said);
    if of.unused > 0 {
        text.push_str(&format!(" {} stamps could not be used.", count(of.unused)));
    }
    if of.without_received.is_none() {
        text.push_str(" The ends have different clocks, so that the parts end where a message leaves.");
    }
    text
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
    }
}

/// The cells of a row of the table of stages.
pub(crate) fn cells(part: &StagePart) -> [String; 6] {
    let ns = |ns: i64| time(ns as f64);
    let words: Vec<&str> = part.stages.iter().map(|stage| word(*stage)).collect();
    let messages = count(part.messages);
    [words.join(" + "), messages, time(part.mean_ns), ns(part.p50_ns), ns(part.p99_ns), ns(part.max_ns)]
}

/// The table of stages as lines of text, with columns of equal width.
pub(crate) fn lines(of: &StageReport) -> Vec<String> {
    aligned(std::iter::once(HEADS.map(str::to_owned)).chain(of.parts.iter().map(cells)).collect())
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
            without_received: Some(1),
            unused: 2,
            width_ns: Some(40),
            card_width_ns: None,
        };
        let lines = lines(&of);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
        let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ").replace('\u{2009}', " ");
        assert_eq!(plain(&lines[2]), "wire + receive path 1,234,567 160 us 120 us 241 us 481 us");
    }
}
