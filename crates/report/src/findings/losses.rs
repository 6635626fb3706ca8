//! Words about the places at which lost messages of a condition were seen last.

use tailbound_document::number::count;
use tailbound_document::{ConditionReport, Evidence, LossPlace};

/// Sentence about the last places at which the lost messages of a condition were seen, with a space before it; empty if
/// no place is known. It says only what the pong recorded: a message without a record may have been lost on its way, or
/// inside the pong before it was recorded.
pub(super) fn words(condition: &ConditionReport) -> String {
    let of = |place| condition.losses.iter().filter(|l| l.place == place).map(|l| l.count).sum::<u64>();
    let places = [
        ("recorded no receipt of", of(LossPlace::OnTheWayOut)),
        ("received and did not answer", of(LossPlace::AtThePong)),
        ("answered", of(LossPlace::OnTheWayBack)),
    ];
    let parts: Vec<String> = places
        .into_iter()
        .filter(|(_, lost)| *lost > 0)
        .map(|(what, lost)| format!("{what} {}", count(lost)))
        .collect();
    let text = match parts.as_slice() {
        [] => String::new(),
        [one] => format!(" Of the lost messages, the pong {one}."),
        [first @ .., last] => format!(" Of the lost messages, the pong {} and {last}.", first.join(", ")),
    };
    // A counter belongs to a whole network namespace, so that a counted reason is none for these messages alone.
    let seen = condition.losses.iter().filter(|l| l.evidence == Evidence::Seen);
    let seen = seen.filter_map(|l| Some(format!(" For {} of them, {}.", count(l.count), l.reason.as_ref()?)));
    seen.fold(text, |text, sentence| text + &sentence)
}
