//! Words about the places at which lost messages of a condition were seen last.

use tailbound_document::number::count;
use tailbound_document::{ConditionReport, Evidence, LossPlace, LossReport};

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
    let sentence = |l: &LossReport| {
        let (many, reason) = (count(l.count), l.reason.as_ref()?);
        match l.evidence {
            Evidence::Seen => Some(format!(" For {many} of them, {reason}.")),
            // A counter also counts packets of others.
            _ => Some(format!(" For at most {many} of them, as the kernel counted, {reason}.")),
        }
    };
    condition.losses.iter().filter_map(sentence).fold(text, |text, sentence| text + &sentence)
}
