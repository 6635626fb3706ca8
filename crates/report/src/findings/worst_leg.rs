//! Finding about the part of the way of a message in which the worst messages spent most of their time.

use tailbound_document::{ConditionReport, Message, WORST_DESCRIBED};

/// A worst message belongs to the tail if its latency is at least this many times the latency of the median message.
const FAR: i64 = 2;

/// Type of a function that returns the duration of one part of a message, in ns.
type Part = fn(&Message) -> Option<i64>;

/// The parts of a message from its due time to its answer, in order, with their names in sentences.
const PARTS: [(&str, Part); 4] = [
    ("before sending: the sender itself was late", |m| m.send_lateness_ns),
    ("on the way out", |m| m.out_ns),
    ("at the pong", |m| m.turnaround_ns),
    ("on the way back", |m| m.back_ns),
];

/// Parts of the time of a message whose legs are not known separately: the part before the send call, and the part
/// between the send call and the answer.
const WHOLE: [(&str, Part); 2] =
    [PARTS[0], ("between the send call of the message and its answer", |m| m.round_trip_ns)];

/// Makes a sentence such as "In 9 of the 10 worst messages most of the time went by on the way back.", if the same part
/// took most of the time in most of the worst messages.
pub(crate) fn leg_words(condition: &ConditionReport) -> Option<String> {
    let median = condition.median_message.as_ref()?;
    let total = |m: &Message| m.from_intended_ns.or(m.round_trip_ns);
    let limit = total(median)?.saturating_mul(FAR);
    let far: Vec<&Message> =
        condition.worst.iter().take(WORST_DESCRIBED).filter(|m| total(m).is_some_and(|t| t > limit)).collect();
    if far.len() < 5 {
        return None;
    }
    let parts: &[(&str, Part)] = if far.iter().all(|m| m.out_ns.is_some()) { &PARTS } else { &WHOLE };
    let mut blamed = [0; PARTS.len()];
    for message in &far {
        let excess = |part: Part| Some(part(message)?.saturating_sub(part(median).unwrap_or(0)));
        let most = (0..parts.len()).filter_map(|p| Some((excess(parts[p].1)?, p))).max()?;
        blamed[most.1] += 1;
    }
    let (most, part) = blamed.iter().zip(parts).map(|(n, (words, _))| (*n, words)).max_by_key(|(n, _)| *n)?;
    let all = far.len();
    let which = if most == all { format!("all of the {all}") } else { format!("{most} of the {all}") };
    (most * 10 >= all * 7).then(|| format!("In {which} worst messages most of the time went by {part}."))
}
