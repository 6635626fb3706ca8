//! Finds messages that were held on their way and released together.
//!
//! Input: for each message of a periodic stream, in the order of sending, when it was sent and when it was received. Both clocks
//! may differ by any time: only differences between times of the same clock count, and their rates need to agree to within a
//! percent. Output: the bursts, that is, messages that were sent one period apart and received together, so that each took about
//! one period less than the one before.

use std::collections::VecDeque;

/// Smallest number of messages of a burst. Among 400,000 messages with independent delays (exponential with a mean of 0.1 to
/// 10 periods, or with a heavy tail), up to 42 groups of three look like bursts, and no group of four.
const LEAST: u64 = 4;
/// Messages are received together if the time from one receipt to the next is at most the period divided by this number. A
/// message is held if it takes longer than usual by more than this time.
const TOGETHER: i64 = 5;
/// The time between the send times of two messages may differ from the time between their due times by the period divided by
/// this number.
const IN_TIME: i64 = 4;
/// Number of messages before a burst whose median is the usual time on the way, and the smallest number of them.
const USUAL: (usize, usize) = (32, 8);
/// Largest number of bursts that are kept for one search: those with the longest holds.
const KEPT: usize = 1_000;

/// A message on its way from one end to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage {
    /// Number of its slot.
    pub slot: u64,
    /// Time at which the message of the slot was due, ns of any clock.
    pub due_ns: i64,
    /// Time at which it was sent, ns of the clock of the sender.
    pub sent_ns: i64,
    /// Time at which it was received, ns of the clock of the receiver.
    pub received_ns: i64,
}

impl Passage {
    fn way_ns(&self) -> i64 {
        self.received_ns.saturating_sub(self.sent_ns)
    }
}

/// Messages that were held and released together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBurst {
    /// The first message of the burst, which was held for the longest time.
    pub first: Passage,
    /// The last message of the burst.
    pub last: Passage,
    /// Number of messages of the burst. Messages between them that were not received are not counted.
    pub messages: u64,
    /// Usual time on the way: the median of up to 32 messages before the burst, as the difference of two clocks, ns. Of an
    /// earlier burst, only the last message is among them.
    pub usual_ns: i64,
}

impl HeldBurst {
    /// Time for which the first message was held: by how much it took longer than usual, ns.
    pub fn held_ns(&self) -> i64 {
        self.first.way_ns().saturating_sub(self.usual_ns)
    }

    /// Time from the first to the last receipt of the burst, ns.
    pub fn received_within_ns(&self) -> i64 {
        self.last.received_ns.saturating_sub(self.first.received_ns)
    }
}

/// All bursts of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBursts {
    /// Number of bursts.
    pub bursts: u64,
    /// Number of messages of all bursts.
    pub messages: u64,
    /// Number of messages of the burst with the most messages.
    pub most_messages: u64,
    /// The bursts with the longest holds, at most 1,000, in the order of their begin.
    pub longest: Vec<HeldBurst>,
}

impl HeldBursts {
    fn add(&mut self, burst: HeldBurst) {
        self.bursts += 1;
        self.messages += burst.messages;
        self.most_messages = self.most_messages.max(burst.messages);
        self.longest.push(burst);
        if self.longest.len() >= 2 * KEPT {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        self.longest.sort_by_key(|burst| std::cmp::Reverse(burst.held_ns()));
        self.longest.truncate(KEPT);
    }
}

/// Messages of which each was received together with the one before.
#[derive(Debug)]
struct Run {
    first: Passage,
    /// The last message that was sent in its time.
    last: Passage,
    /// Last receipt, also of a message that was not sent in its time, ns.
    received_ns: i64,
    /// Ways of the first messages, as long as the run is shorter than a burst, ns.
    ways_ns: Vec<i64>,
    /// Usual time on the way, once the run is long enough for a burst and enough messages came before.
    usual_ns: Option<i64>,
    last_held: Passage,
    held: u64,
}

impl Run {
    fn of(first: Passage) -> Run {
        let received_ns = first.received_ns;
        Run {
            first,
            last: first,
            received_ns,
            ways_ns: vec![first.way_ns()],
            usual_ns: None,
            last_held: first,
            held: 1,
        }
    }

    /// Whether the message was received together with the last one.
    fn is_together(&self, next: &Passage, period_ns: i64) -> bool {
        (0..=period_ns / TOGETHER).contains(&next.received_ns.saturating_sub(self.received_ns))
    }
}

/// Whether `next` was sent as long after `last` as it was due after it.
fn is_in_time(last: &Passage, next: &Passage, period_ns: i64) -> bool {
    let slots = i64::try_from(next.slot.saturating_sub(last.slot)).unwrap_or(i64::MAX);
    let apart_ns = next.sent_ns.saturating_sub(last.sent_ns);
    apart_ns.saturating_sub(period_ns.saturating_mul(slots)).saturating_abs() <= period_ns / IN_TIME
}

/// Searches a periodic stream for messages that were held and released together. The memory does not grow with the number of
/// messages.
#[derive(Debug)]
pub struct HeldSearch {
    period_ns: i64,
    usual_ns: VecDeque<i64>,
    run: Option<Run>,
    found: HeldBursts,
}

impl HeldSearch {
    /// A search in a stream whose messages are due at this period, ns.
    pub fn new(period_ns: i64) -> HeldSearch {
        HeldSearch { period_ns, usual_ns: VecDeque::new(), run: None, found: HeldBursts::default() }
    }

    /// Adds the next message that was received, in the order of the slots.
    pub fn add(&mut self, message: Passage) {
        match self.run.as_mut().filter(|run| run.is_together(&message, self.period_ns)) {
            Some(run) if is_in_time(&run.last, &message, self.period_ns) => self.extend(message),
            // The sender sent it out of its time, which says nothing about the hold.
            Some(run) if run.first != run.last => run.received_ns = message.received_ns,
            _ => {
                self.end();
                self.run = Some(Run::of(message));
            }
        }
    }

    /// All bursts of the stream.
    pub fn finish(mut self) -> HeldBursts {
        self.end();
        self.found.shorten();
        self.found.longest.sort_by_key(|burst| burst.first.slot);
        self.found
    }

    fn extend(&mut self, message: Passage) {
        let Some(mut run) = self.run.take() else { return };
        (run.last, run.received_ns) = (message, message.received_ns);
        match run.usual_ns {
            Some(usual_ns) => self.hold(&mut run, usual_ns, message),
            None if (run.ways_ns.len() as u64) < LEAST => run.ways_ns.push(message.way_ns()),
            None => {}
        }
        if run.usual_ns.is_none() && run.ways_ns.len() as u64 == LEAST {
            run.usual_ns = self.usual();
            // The messages of a run take less and less time: if the last one was held, so were all before it.
            run.held = LEAST - 1;
            if let Some(usual_ns) = run.usual_ns {
                self.hold(&mut run, usual_ns, message);
            }
        }
        self.run = Some(run);
    }

    fn hold(&self, run: &mut Run, usual_ns: i64, message: Passage) {
        if message.way_ns().saturating_sub(usual_ns) > self.period_ns / TOGETHER {
            run.held += 1;
            run.last_held = message;
        }
    }

    fn end(&mut self) {
        let Some(run) = self.run.take() else { return };
        match run.usual_ns {
            Some(usual_ns) if run.held >= LEAST => {
                self.keep(run.last.way_ns());
                let Run { first, last_held, held, .. } = run;
                self.found.add(HeldBurst { first, last: last_held, messages: held, usual_ns });
            }
            _ => run.ways_ns.into_iter().for_each(|way_ns| self.keep(way_ns)),
        }
    }

    fn keep(&mut self, way_ns: i64) {
        self.usual_ns.push_back(way_ns);
        if self.usual_ns.len() > USUAL.0 {
            self.usual_ns.pop_front();
        }
    }

    fn usual(&self) -> Option<i64> {
        let mut ways_ns: Vec<i64> = self.usual_ns.iter().copied().collect();
        ways_ns.sort_unstable();
        ways_ns.get(ways_ns.len() / 2).copied().filter(|_| ways_ns.len() >= USUAL.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    const US: i64 = 1_000;
    const PERIOD: i64 = 1_006 * US;
    /// Difference between the clocks of the two ends, and by how much faster the receiver's runs, parts per million.
    const CLOCKS: (i64, i64) = (-77_000_000_000_000, 100);

    /// Messages on their ways: their send lateness and their delay on the way come from `of`, ns. The clock of the receiver is
    /// another one.
    fn stream(slots: u64, mut of: impl FnMut(u64) -> Option<(i64, i64)>) -> Vec<Passage> {
        let passage = |slot: u64| {
            let (late_ns, way_ns) = of(slot)?;
            let due_ns = slot as i64 * PERIOD;
            let sent_ns = due_ns + late_ns;
            let received_ns = sent_ns + way_ns;
            let received_ns = received_ns + received_ns * CLOCKS.1 / 1_000_000 + CLOCKS.0;
            Some(Passage { slot, due_ns, sent_ns, received_ns })
        };
        (0..slots).filter_map(passage).collect()
    }

    fn found(stream: Vec<Passage>) -> HeldBursts {
        let mut search = HeldSearch::new(PERIOD);
        stream.into_iter().for_each(|message| search.add(message));
        search.finish()
    }

    /// A number in [0, 1).
    fn unit(random: &mut SplitMix64) -> f64 {
        (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A delay of 80 to 120 us, and a send lateness of up to 60 us.
    fn ordinary(random: &mut SplitMix64) -> (i64, i64) {
        ((unit(random) * 60e3) as i64, 80 * US + (unit(random) * 40e3) as i64)
    }

    /// Test: at random times, everything is held for 2 to 200 ms, and then received within 10 us per message. If at least four
    /// messages are held for more than a fifth of the period, the burst is found with exactly these messages.
    #[test]
    fn planted_bursts_are_counted_exactly() {
        for seed in 0..20 {
            let mut random = SplitMix64(seed);
            let mut holds: Vec<(i64, i64)> = Vec::new();
            let mut at_ns = 50 * PERIOD;
            while at_ns < 19_000 * PERIOD {
                let until_ns = at_ns + 2_000 * US + (unit(&mut random) * 198e6) as i64;
                holds.push((at_ns, until_ns));
                at_ns = until_ns + 100 * PERIOD + (unit(&mut random) * 300.0 * PERIOD as f64) as i64;
            }
            let mut planted: Vec<(u64, u64)> = Vec::new();
            let (mut hold, mut nth, mut borderline) = (0, 0, 0);
            let messages = stream(20_000, |slot| {
                let (late_ns, way_ns) = ordinary(&mut random);
                let sent_ns = slot as i64 * PERIOD + late_ns;
                while hold < holds.len() && sent_ns > holds[hold].1 {
                    (hold, nth) = (hold + 1, 0);
                }
                let held = holds.get(hold).filter(|(from_ns, _)| sent_ns + way_ns > *from_ns);
                let Some((_, until_ns)) = held else { return Some((late_ns, way_ns)) };
                let received_ns = until_ns + 100 * US + nth * 10 * US;
                if received_ns - sent_ns <= way_ns {
                    return Some((late_ns, way_ns));
                }
                let beyond_ns = received_ns - sent_ns - 100 * US;
                // The usual time is known to within the jitter of the way.
                borderline += u64::from((beyond_ns - PERIOD / TOGETHER).abs() < 25 * US);
                if beyond_ns > PERIOD / TOGETHER {
                    match planted.last_mut().filter(|_| nth > 0) {
                        Some((_, messages)) => *messages += 1,
                        None => planted.push((slot, 1)),
                    }
                }
                nth += 1;
                Some((late_ns, received_ns - sent_ns))
            });
            planted.retain(|(_, messages)| *messages >= LEAST);
            let found = found(messages);
            let counted: u64 = planted.iter().map(|(_, messages)| messages).sum();
            assert!(planted.len() > 30 && borderline < 10, "{seed}: {} {borderline}", planted.len());
            assert!(found.messages.abs_diff(counted) <= borderline, "{seed}: {} of {counted}", found.messages);
            let firsts: Vec<u64> = found.longest.iter().map(|burst| burst.first.slot).collect();
            assert_eq!(firsts, planted.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), "seed {seed}");
            for (burst, (slot, messages)) in found.longest.iter().zip(&planted) {
                assert!(burst.messages.abs_diff(*messages) <= 1, "{seed} {slot}");
                let (_, until_ns) = holds[holds.partition_point(|(_, until_ns)| *until_ns < burst.first.sent_ns)];
                let held_ns = until_ns - burst.first.sent_ns;
                assert!((burst.held_ns() - held_ns).abs() < 70 * US, "{seed} {slot}: {} {held_ns}", burst.held_ns());
            }
        }
    }

    /// Test: the published burst. Six messages, sent every 1,006 us, are received at once; the first one is held for 6 ms.
    #[test]
    fn the_published_burst_is_found_with_a_lost_message_inside() {
        let release_ns = 100 * PERIOD + 6_000 * US;
        let way = |slot: u64| match slot {
            100..106 => release_ns - slot as i64 * PERIOD + 90 * US + slot as i64,
            _ => 90 * US,
        };
        let all = found(stream(300, |slot| Some((0, way(slot)))));
        assert_eq!((all.bursts, all.messages, all.most_messages), (1, 6, 6));
        let [burst] = &all.longest[..] else { panic!("{all:?}") };
        assert_eq!((burst.first.slot, burst.last.slot), (100, 105));
        // The clock of the receiver is 100 ppm faster: 0.6 us of 6 ms, and 3 us since the usual messages.
        assert!((burst.held_ns() - 6_000 * US).abs() < 4 * US, "{}", burst.held_ns());
        assert!(burst.received_within_ns() < US, "{}", burst.received_within_ns());
        let with_loss = found(stream(300, |slot| (slot != 102).then(|| (0, way(slot)))));
        assert_eq!((with_loss.bursts, with_loss.messages), (1, 5));
        // A message that is sent late within the hold does not count, and does not end it; nor does one at its begin.
        for late in [100, 103] {
            let late_ns = |slot| if slot == late { 400 * US } else { 0 };
            let with_late =
                found(stream(300, |slot| Some((late_ns(slot), way(slot) - late_ns(slot).min(way(slot) - 90 * US)))));
            assert_eq!((with_late.bursts, with_late.messages), (1, 5), "{late}");
        }
    }

    /// Test: late messages that nothing held together.
    #[test]
    fn ordinary_late_messages_are_no_burst() {
        let none = |name: &str, stream: Vec<Passage>| assert_eq!(found(stream), HeldBursts::default(), "{name}");
        for seed in 0..5 {
            let random = &mut SplitMix64(seed);
            let exponential = |random: &mut SplitMix64, mean: f64| (-(1.0 - unit(random)).ln() * mean) as i64;
            for mean in [0.1, 0.3, 1.0, 3.0, 10.0] {
                let mean_ns = mean * PERIOD as f64;
                none("random delay", stream(20_000, |_| Some((ordinary(random).0, exponential(random, mean_ns)))));
            }
            // Each message takes the receiver half a period or more, after a stall of 20 ms now and then: it catches up slowly.
            for service in [0.3, 0.5, 0.99] {
                let mut free_ns = 0;
                let slow = |slot: u64| {
                    let sent_ns = slot as i64 * PERIOD;
                    let stall_ns = if slot % 500 == 499 { 20_000 * US } else { 0 };
                    free_ns = free_ns.max(sent_ns + 80 * US) + stall_ns + (service * PERIOD as f64) as i64;
                    Some((0, free_ns - sent_ns))
                };
                none("slow receiver", stream(20_000, slow));
            }
            // Every 200 slots, the sender is stopped for 20 periods, and then sends everything at once.
            let caught_up = |slot: u64| {
                let late_ns = (20 - (slot % 200) as i64).max(0) * PERIOD;
                Some((late_ns + (slot % 200) as i64 * 3 * US, ordinary(random).1))
            };
            none("sender that catches up", stream(20_000, caught_up));
        }
        // Single messages, pairs and groups of three are late.
        let random = &mut SplitMix64(7);
        let few = |slot: u64| {
            let nth = (slot % 100) as i64;
            let held_ns = if nth < 3 { (3 - nth) * PERIOD } else { 0 };
            Some((0, ordinary(random).1 + held_ns))
        };
        none("three messages", stream(20_000, few));
        // The order is turned around: the later message arrives first.
        let turned = |slot: u64| Some((0, 90 * US + (slot % 10) as i64 * 2 * PERIOD));
        none("other order", stream(20_000, turned));
    }

    #[test]
    fn only_the_longest_bursts_are_kept_and_all_are_counted() {
        // Every 20 slots, five messages are held.
        let way = |slot: u64| {
            let nth = (slot % 20) as i64;
            let longer_ns = (slot / 20) as i64;
            90 * US + if (5..10).contains(&nth) { (10 - nth) * PERIOD - 300 * US + longer_ns } else { 0 }
        };
        let all = found(stream(100_010, |slot| Some((0, way(slot)))));
        // The first messages are too few to say what is usual.
        assert_eq!((all.bursts, all.messages), (5_000, 25_000));
        assert_eq!(all.longest.len(), KEPT);
        assert_eq!(all.longest[0].first.slot, 4_001 * 20 + 5);
    }
}
