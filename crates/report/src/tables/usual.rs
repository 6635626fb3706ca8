//! What the ordinary messages of each condition spend their time on, in sentences and as a table.

use crate::cause_words::cause_words;
use tailbound_document::number::{count, time};
use tailbound_document::{ConditionReport, Report, UsualPart, UsualReport};

/// Heads of the columns of the table.
pub(crate) const HEADS: [&str; 5] = ["time", "of the whole", "leg", "spent", "thread"];
/// Parts shorter than this part of the whole are summed up in one row.
const LEAST: f64 = 0.02;
/// Largest number of parts in a sentence, and smallest part of the whole.
const SAID: (usize, f64) = (4, 0.08);

/// The conditions of a report of whose ordinary messages events were recorded.
pub(crate) fn all(report: &Report) -> impl Iterator<Item = (&ConditionReport, &UsualReport)> {
    report.conditions.iter().filter_map(|condition| Some((condition, condition.usual.as_ref()?)))
}

fn share(ns: i64, of: &UsualReport) -> f64 {
    ns as f64 / of.mean_ns.max(1) as f64
}

fn words(part: &UsualPart) -> String {
    cause_words(part.cause, part.end.as_deref(), part.by.as_ref())
}

/// The longest parts of the time of one condition, in a sentence.
pub(crate) fn sentence(condition: &str, of: &UsualReport) -> String {
    let large = of.parts.iter().filter(|part| share(part.mean_ns, of) >= SAID.1).take(SAID.0);
    let of_part = |part: &UsualPart| {
        let thread = part.thread.as_ref().map_or(String::new(), |name| format!(", thread `{name}`"));
        format!("{} {}{thread}", time(part.mean_ns as f64), words(part))
    };
    let parts: Vec<String> = large.map(of_part).collect();
    let (n, mean) = (count(of.messages), time(of.mean_ns as f64));
    format!("Ordinary messages of {condition} take {mean} (mean of {n}): {}.", parts.join("; "))
}

/// The rows of the table of one condition, as cells.
pub(crate) fn rows(of: &UsualReport) -> Vec<[String; 5]> {
    let cells = |ns: i64, leg: &str, what: String, thread: &str| {
        [time(ns as f64), format!("{:.0} %", share(ns, of) * 100.0), leg.to_owned(), what, thread.to_owned()]
    };
    let (large, small): (Vec<&UsualPart>, Vec<&UsualPart>) =
        of.parts.iter().partition(|part| share(part.mean_ns, of) >= LEAST);
    let mut rows: Vec<_> = large
        .into_iter()
        .map(|part| cells(part.mean_ns, &part.leg.replace('_', " "), words(part), part.thread.as_deref().unwrap_or("")))
        .collect();
    let rest = [
        (small.iter().map(|part| part.mean_ns).sum(), format!("{} smaller parts", small.len())),
        (of.unexplained_ns, "not known".to_owned()),
    ];
    rows.extend(rest.into_iter().filter(|(ns, _)| *ns > 0).map(|(ns, what)| cells(ns, "", what, "")));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_document::CauseWord;

    #[test]
    fn the_longest_parts_are_named_and_the_rest_is_summed_up() {
        let part = |cause, leg: &str, end: &str, thread: Option<&str>, mean_ns| UsualPart {
            cause,
            leg: leg.into(),
            end: Some(end.into()),
            thread: thread.map(str::to_owned),
            by: None,
            mean_ns,
        };
        let of = UsualReport {
            messages: 120,
            mean_ns: 61_200,
            parts: vec![
                part(CauseWord::IdleExit, "turnaround", "pong", Some("tb-process"), 30_400),
                part(CauseWord::OwnWork, "out", "ping", Some("tb-ping"), 20_000),
                part(CauseWord::Network, "back", "ping", None, 4_000),
                part(CauseWord::Softirq, "back", "ping", None, 900),
                part(CauseWord::Irq, "back", "ping", None, 300),
            ],
            unexplained_ns: 5_600,
        };
        let rows: Vec<String> = rows(&of).iter().map(|row| row.join(" | ")).collect();
        let text = [vec![sentence("udp", &of)], rows].concat().join("\n").replace('\u{2009}', " ");
        insta::assert_snapshot!(text);
    }
}
