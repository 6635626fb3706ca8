//! Chooses the messages that the timeline of a gate shows: those that waited longest until they left, and the worst messages of the
//! condition.

use tailbound_document::{GateMessage, Message, WORST_DESCRIBED};
use tailbound_gates::Gate;
use tailbound_record::Departure;

/// Number of messages that are shown because they waited longest.
const MOST: usize = 10;
/// A message is shown if its time in the cycle is known to within the cycle divided by this number.
const KNOWN_TO: i64 = 4;

/// The messages of a gate that are shown.
#[derive(Default)]
pub(super) struct Longest {
    /// At most [`MOST`]; the one that waited longest first.
    longest: Vec<GateMessage>,
    worst: Vec<GateMessage>,
    not_placed: u64,
}

/// One message: its trial and slot, its times by the clock of its sender, ns, and its place among the worst messages.
pub(super) struct Passed {
    pub id: (usize, u64),
    /// Due time, or begin of the send call.
    pub due_ns: i64,
    pub sent_ns: i64,
    /// `None` = the receiver has another clock.
    pub received_ns: Option<i64>,
    pub departure: Departure,
    pub worst: Option<usize>,
}

/// The worst messages of a condition that belong to this trial: slot, and place among the worst messages from 1 on.
pub(super) fn worst_of(worst: &[Message], trial: usize) -> Vec<(u64, usize)> {
    let described = worst.iter().take(WORST_DESCRIBED).zip(1..);
    described.filter(|(message, _)| message.trial == trial).map(|(message, place)| (message.slot, place)).collect()
}

impl Longest {
    pub fn add(&mut self, passed: &Passed, gate: &Gate) {
        if gate.error_ns(passed.departure.left_ns) > gate.cycle_ns() / KNOWN_TO {
            self.not_placed += 1;
            return;
        }
        let waited_ns = passed.departure.left_ns - passed.due_ns;
        let is_full = self.longest.len() == MOST;
        let is_long = !is_full || self.longest.last().is_some_and(|least| waited_ns > least.waited_ns());
        if !is_long && passed.worst.is_none() {
            return;
        }
        let message = message(passed, gate);
        if passed.worst.is_some() {
            self.worst.push(message.clone());
        }
        if is_long {
            let at = self.longest.partition_point(|other| other.waited_ns() >= waited_ns);
            self.longest.insert(at, message);
            self.longest.truncate(MOST);
        }
    }

    /// The messages, the one that waited longest first, and the number of messages that cannot be shown.
    pub fn finish(self) -> (Vec<GateMessage>, u64) {
        let mut all = self.longest;
        all.extend(self.worst);
        all.sort_by_key(|message| (std::cmp::Reverse(message.waited_ns()), message.trial, message.slot));
        all.dedup_by_key(|message| (message.trial, message.slot));
        (all, self.not_placed)
    }
}

fn message(passed: &Passed, gate: &Gate) -> GateMessage {
    let after = |ns: i64| ns - passed.due_ns;
    let ready_ns = passed.departure.ready_ns;
    GateMessage {
        trial: passed.id.0,
        slot: passed.id.1,
        worst: passed.worst,
        due_phase_ns: gate.phase_ns(passed.due_ns),
        within_ns: gate.error_ns(passed.departure.left_ns),
        sent_after_ns: after(passed.sent_ns),
        ready_after_ns: after(ready_ns),
        permitted_after_ns: gate.wait_ns(ready_ns).map(|wait_ns| after(ready_ns + wait_ns)),
        left_after_ns: passed.departure.stamped_ns.map(|(_, latest_ns)| after(latest_ns)),
        received_after_ns: passed.received_ns.map(after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_gates::{Entry, Frame, Rule, Schedule};

    /// A gate that is open for 5 of 20 us. The begin of its schedule is wrong by at most `within_ns`.
    fn gate(within_ns: i64) -> Gate {
        let entry = |gates, us: u64| Entry { gates, interval_ns: us * 1_000 };
        let windows = Schedule { entries: vec![entry(1, 5), entry(2, 15)], cycle_ns: 0 }.windows(0, Rule::Kernel);
        let frame = Frame { bytes: 106, speed: "10Gbps".parse().unwrap() };
        Gate::new(0, (windows, frame), 0, within_ns)
    }

    /// A message that is due 6 us after the begin of a cycle, and leaves after this time.
    fn passed(slot: u64, left_after_ns: i64, worst: Option<usize>) -> Passed {
        let due_ns = 20_000 * slot as i64 + 6_000;
        let left_ns = due_ns + left_after_ns;
        let departure = Departure { ready_ns: due_ns + 700, left_ns, stamped_ns: Some((left_ns, left_ns)) };
        Passed { id: (3, slot), due_ns, sent_ns: due_ns + 200, received_ns: Some(left_ns + 400), departure, worst }
    }

    #[test]
    fn the_longest_waits_and_the_worst_messages_are_shown_once() {
        let (gate, mut all) = (gate(0), Longest::default());
        for slot in 0..1_000_u64 {
            // Each wait occurs once. The wait of slot 857 is the longest one.
            let waited_ns = 14_000 + (slot as i64 * 7) % 1_000;
            all.add(
                &passed(slot, waited_ns, [(17, 4), (857, 1)].iter().find(|(s, _)| *s == slot).map(|(_, n)| *n)),
                &gate,
            );
        }
        let (found, not_placed) = all.finish();
        let waits: Vec<i64> = found.iter().map(GateMessage::waited_ns).collect();
        let longest: Vec<i64> = (0..10).map(|k| 14_999 - k).chain([14_119]).collect();
        assert_eq!((waits, not_placed), (longest, 0));
        let worst: Vec<_> = found.iter().filter_map(|m| Some((m.slot, m.worst?))).collect();
        assert_eq!(worst, [(857, 1), (17, 4)]);
        let expected = GateMessage {
            trial: 3,
            slot: 857,
            worst: Some(1),
            due_phase_ns: 6_000,
            within_ns: 0,
            sent_after_ns: 200,
            ready_after_ns: 700,
            permitted_after_ns: Some(14_000),
            left_after_ns: Some(14_999),
            received_after_ns: Some(15_399),
        };
        assert_eq!(found[0], expected);
    }

    #[test]
    fn a_message_is_not_shown_if_its_time_in_the_cycle_is_unknown() {
        for (within_ns, shown, not_placed) in [(5_000, 1, 0), (5_001, 0, 1)] {
            let mut all = Longest::default();
            all.add(&passed(1, 14_000, Some(1)), &gate(within_ns));
            let (found, unknown) = all.finish();
            assert_eq!((found.len(), unknown), (shown, not_placed));
        }
    }
}
