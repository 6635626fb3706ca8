//! What a report says about messages that were held on their way and released together.

use tailbound_document::number::{count, time};
use tailbound_document::{ConditionReport, HeldBurstReport, HeldReport, Report};

/// Heads of the table of bursts.
pub(crate) const HEADS: [&str; 6] = ["trial", "from", "to", "messages", "held", "received within"];

/// The directions of a report on which messages were held, each with its condition.
pub(crate) fn all(report: &Report) -> impl Iterator<Item = (&ConditionReport, &HeldReport)> {
    report.conditions.iter().flat_map(|condition| condition.hold_and_release.iter().map(move |held| (condition, held)))
}

/// Describes the bursts of a direction in sentences.
pub(crate) fn sentences(condition: &ConditionReport, held: &HeldReport) -> String {
    let way = if held.leg == "out" { "on the way out" } else { "on the way back" };
    let bursts = if held.bursts == 1 { "1 burst".to_owned() } else { format!("{} bursts", count(held.bursts)) };
    let longest = held.longest.iter().max_by_key(|burst| burst.held_ns);
    let longest = longest.map_or(String::new(), |burst| {
        let [trial, from, to, messages, held, within] = cells(burst);
        format!(
            " The longest hold, of {held}, was in trial {trial}, from {from} to {to} after slot 0: {messages} messages were received \
             within {within}."
        )
    });
    let what = match held.perhaps_sent_again {
        true => "Held and released together, or lost and sent again together",
        false => "Held and released together",
    };
    format!(
        "{what} ({}, {way}): {} messages in {bursts} were sent in their time and received together, so that each \
         took about one period less than the one before.{longest}",
        condition.name,
        count(held.messages),
    )
}

/// The row of a burst in the table, in the order of [`HEADS`].
pub(crate) fn cells(burst: &HeldBurstReport) -> [String; 6] {
    let ns = |ns: i64| time(ns as f64);
    [
        burst.trial.to_string(),
        ns(burst.from_ns),
        ns(burst.to_ns),
        count(burst.messages),
        ns(burst.held_ns),
        ns(burst.received_within_ns),
    ]
}
