//! Divides the excess of an incident among causes.
//!
//! The parts of the excess come from the samples alone. The courses of their messages give shares, from which the mean
//! that ordinary messages of the trial spend on the same cause and leg is subtracted. Whatever happened before the launch time of a
//! message did not delay it, so that these shares begin when the message could leave.

use crate::why::course::Piece;
use crate::why::gated::shares_of;
use crate::why::passage::course;
use crate::why::share::{Circumstances, Key, Share};
use crate::why::stamps::{Leg, Stamps};
use crate::why::timeline::Timeline;
use std::collections::BTreeMap;
use tailbound_document::{CauseWord, Evidence};
use tailbound_model::{Metric, Switches};
use tailbound_stats::Incident;

/// A share of less than this part of the excess is left out, and remains unexplained.
const LEAST_SHARE: f64 = 0.001;
/// Entries that exceed the excess by more than this part of it, and by more than [`TOLERANCE_NS`], contradict it.
const TOLERANCE: f64 = 0.05;
/// Entries may exceed the excess of an incident by this time, ns.
const TOLERANCE_NS: i64 = 20_000;

/// The recorded events of a trial: one timeline for each time span whose events were requested from all agents.
pub(crate) struct Timelines(Vec<((i64, i64), Timeline)>);

impl Timelines {
    pub fn of(seen: &[Switches]) -> Timelines {
        let mut of_ends = seen.iter().filter(|s| s.host.is_none());
        let Some(first) = of_ends.next() else { return Timelines(Vec::new()) };
        let others: Vec<&Switches> = of_ends.collect();
        let common = |span: &(i64, i64)| {
            others.iter().try_fold(*span, |(begin, end), s| {
                // The time spans of an agent with another clock are longer, because its clock is known within bounds only.
                let other = s.windows.iter().find(|(from, to)| *from < end && begin < *to)?;
                Some((begin.max(other.0), end.min(other.1)))
            })
        };
        let spans = first.windows.iter().filter_map(common);
        Timelines(spans.map(|span| (span, Timeline::of(seen, span))).collect())
    }

    /// The timelines that have a part of a time span.
    pub fn meeting(&self, (from_ns, to_ns): (i64, i64)) -> impl Iterator<Item = &Timeline> {
        let meets = move |((begin, end), _): &&((i64, i64), Timeline)| *begin <= to_ns && from_ns <= *end;
        self.0.iter().filter(meets).map(|(_, timeline)| timeline)
    }

    /// The timeline with events for the whole time between two times.
    pub fn covering(&self, from_ns: i64, to_ns: i64) -> Option<&Timeline> {
        let at = self.0.partition_point(|((begin, _), _)| *begin <= from_ns).checked_sub(1)?;
        Some(&self.0[at].1).filter(|timeline| timeline.covers(from_ns, to_ns))
    }
}

/// Means over ordinary messages of a trial, ns.
#[derive(Debug, Default)]
pub(crate) struct Usual {
    legs: BTreeMap<Metric, i64>,
    /// The same without the time before messages could leave.
    after_launch: BTreeMap<Metric, i64>,
    causes: BTreeMap<(Metric, CauseWord), i64>,
    /// The ordinary messages whose events were recorded.
    pub recorded: Recorded,
}

/// Sums over the ordinary messages of a trial whose events were recorded.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub messages: u64,
    /// Time from the due times to the receipts of the answers, ns.
    pub total_ns: i64,
    /// Times that are certain, by what they were spent on, on any CPU, ns.
    pub shares: BTreeMap<Key, i64>,
}

impl Usual {
    /// The means over these messages: of their legs, and of the causes of those messages whose events were recorded.
    pub fn of<'a>(messages: impl Iterator<Item = &'a Stamps>, timelines: &Timelines, known: &Circumstances) -> Usual {
        let mut usual = Usual::default();
        let (mut of_legs, mut of_causes) = (0, 0);
        for stamps in messages {
            of_legs += 1;
            for leg in stamps.legs() {
                *usual.legs.entry(leg.metric).or_default() += leg.to_ns - leg.from_ns;
                *usual.after_launch.entry(leg.metric).or_default() += after_launch_ns(stamps, &leg);
            }
            let Some(timeline) = timelines.covering(stamps.due_ns, stamps.received_ns) else { continue };
            of_causes += 1;
            usual.recorded.messages += 1;
            usual.recorded.total_ns += stamps.received_ns - stamps.due_ns;
            let pieces = course(stamps, timeline, known.threads).into_iter();
            let pieces = pieces.filter_map(|piece| within(piece, (stamps.leaves_ns, i64::MAX)));
            for share in pieces.flat_map(|piece| shares_of(&piece, stamps, timeline, known)) {
                *usual.causes.entry((share.key.leg, share.key.cause)).or_default() += share.low_ns;
                let key = Key { cpu: None, ..share.key };
                *usual.recorded.shares.entry(key).or_default() += share.low_ns;
            }
        }
        let mean = |sum: &mut i64, n: i64| *sum /= n.max(1);
        usual.legs.values_mut().chain(usual.after_launch.values_mut()).for_each(|sum| mean(sum, of_legs));
        usual.causes.values_mut().for_each(|sum| mean(sum, of_causes));
        usual
    }

    /// Mean duration of a leg, ns.
    pub fn leg(&self, leg: Metric) -> Option<i64> {
        self.legs.get(&leg).copied()
    }

    /// The leg of a message that exceeds its mean most. Time before the message could leave does not count.
    pub fn worst_leg(&self, stamps: &Stamps) -> Option<Metric> {
        let beyond =
            |leg: &Leg| after_launch_ns(stamps, leg) - self.after_launch.get(&leg.metric).copied().unwrap_or(0);
        stamps.legs().iter().max_by_key(|leg| beyond(leg)).map(|leg| leg.metric)
    }
}

/// Part of a leg in which its message could have left already, ns.
fn after_launch_ns(stamps: &Stamps, leg: &Leg) -> i64 {
    (leg.to_ns - leg.from_ns.max(stamps.leaves_ns)).max(0)
}

/// The part of a piece between two times; `None` if the piece has no part there.
fn within(piece: Piece, (from_ns, to_ns): (i64, i64)) -> Option<Piece> {
    let (from_ns, to_ns) = (piece.from_ns.max(from_ns), piece.to_ns.min(to_ns));
    (from_ns < to_ns).then_some(Piece { from_ns, to_ns, ..piece })
}

/// All time spans of an incident with the same cause.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key: Key,
    pub low_ns: i64,
    pub high_ns: i64,
    pub evidence: Evidence,
    /// The time spans whose time is in `low_ns`, before the usual was subtracted, monotonic ns of the sender.
    pub spans: Vec<(i64, i64)>,
}

/// The excess of one incident, divided among causes.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Entries beyond what is usual, the largest first.
    pub entries: Vec<Entry>,
    /// Part of the excess for which no events were recorded, ns.
    pub not_seen_ns: i64,
    pub unexplained_ns: i64,
    pub inconsistent: bool,
    /// Time by which the entries can exceed the excess because a message spends less than the mean on its usual causes, ns.
    usual_ns: i64,
}

impl Ledger {
    /// Divides the excess of an incident; [`Ledger::finished`] completes the ledger. `messages` has the times of the messages in its parts, by row number; a
    /// message later than `median_ns` is later than usual.
    pub fn of(
        incident: &Incident,
        messages: &BTreeMap<u64, Stamps>,
        timelines: &Timelines,
        known: &Circumstances,
        (usual, median_ns): (&Usual, i64),
    ) -> Ledger {
        let mut ledger = Ledger::default();
        let mut sums: BTreeMap<Key, Entry> = BTreeMap::new();
        let mut from_due = 0;
        for part in &incident.parts {
            let Some(stamps) = messages.get(&part.row) else {
                ledger.not_seen_ns += part.ns();
                continue;
            };
            // The first part of a stall begins where its message is later than usual; the reason may lie before that, but not before
            // the message could leave.
            let whole = part.from_ns == stamps.due_ns + median_ns;
            let from_ns = if whole { stamps.leaves_ns.min(part.from_ns) } else { part.from_ns };
            let Some(timeline) = timelines.covering(from_ns, part.to_ns) else {
                ledger.not_seen_ns += part.ns();
                continue;
            };
            if whole {
                from_due += 1;
                ledger.usual_ns += part.from_ns - from_ns;
            }
            let pieces = course(stamps, timeline, known.threads).into_iter();
            for piece in pieces.filter_map(|piece| within(piece, (from_ns, part.to_ns))) {
                let found = shares_of(&piece, stamps, timeline, known);
                if piece.is_hidden(timeline) {
                    ledger.not_seen_ns += piece.to_ns - piece.from_ns - found.iter().map(|s| s.low_ns).sum::<i64>();
                }
                found.into_iter().for_each(|share| add(&mut sums, share));
            }
        }
        ledger.entries = sums.into_values().collect();
        ledger.subtract(usual, from_due);
        ledger
    }

    /// The complete ledger. Its entries hold what each of `others` says: ledgers of the same incident that were computed
    /// with other possible differences between the clocks of the ends.
    pub fn finished(mut self, others: &[&Ledger], excess_ns: i64) -> Ledger {
        for other in others {
            for entry in &mut self.entries {
                let same = other.entries.iter().find(|e| e.key == entry.key);
                entry.low_ns = entry.low_ns.min(same.map_or(0, |e| e.low_ns));
                entry.high_ns = entry.high_ns.max(same.map_or(0, |e| e.high_ns));
                entry.evidence = entry.evidence.max(same.map_or(entry.evidence, |e| e.evidence));
            }
            let is_new = |e: &&Entry| !self.entries.iter().any(|known| known.key == e.key);
            let new: Vec<Entry> = other.entries.iter().filter(is_new).cloned().collect();
            self.entries.extend(new.into_iter().map(|e| Entry { low_ns: 0, spans: Vec::new(), ..e }));
            self.not_seen_ns = self.not_seen_ns.max(other.not_seen_ns);
            self.usual_ns = self.usual_ns.max(other.usual_ns);
        }
        self.finish(excess_ns);
        self
    }

    /// Subtracts what `messages` ordinary messages spend on the same causes and legs.
    fn subtract(&mut self, usual: &Usual, messages: i64) {
        for ((leg, cause), mean) in &usual.causes {
            let mut left = mean * messages;
            for entry in self.entries.iter_mut().filter(|e| (e.key.leg, e.key.cause) == (*leg, *cause)) {
                let taken = left.min(entry.high_ns);
                entry.low_ns = (entry.low_ns - taken).max(0);
                entry.high_ns -= taken;
                left -= taken;
            }
        }
    }

    /// Leaves out small shares and computes what remains. A message that spends less than the mean on its usual causes
    /// leaves shares that exceed the excess, by `usual_ns` at most; this is taken from what says only where time passed,
    /// then from the smallest shares.
    fn finish(&mut self, excess_ns: i64) {
        let least = (excess_ns as f64 * LEAST_SHARE) as i64;
        let order = |e: &Entry| (e.key.cause.explains(), e.low_ns);
        self.entries.sort_by_key(order);
        let sum: i64 = self.entries.iter().map(|e| e.low_ns).sum();
        let mut beyond = (sum - excess_ns).clamp(0, self.usual_ns);
        for entry in &mut self.entries {
            let taken = beyond.min(entry.low_ns);
            entry.low_ns -= taken;
            beyond -= taken;
        }
        // No cause has more than the whole excess.
        self.entries.iter_mut().for_each(|e| e.high_ns = e.high_ns.min(excess_ns).max(e.low_ns));
        self.entries.retain(|e| e.high_ns > least);
        self.entries.sort_by_key(|e| std::cmp::Reverse((e.low_ns, e.high_ns)));
        self.unexplained_ns = excess_ns - self.entries.iter().map(|e| e.low_ns).sum::<i64>();
        self.inconsistent = self.unexplained_ns < -TOLERANCE_NS.max((excess_ns as f64 * TOLERANCE) as i64);
    }
}

fn add(sums: &mut BTreeMap<Key, Entry>, share: Share) {
    let Share { key, from_ns, to_ns, low_ns, high_ns, evidence } = share;
    let entry = sums.entry(key).or_insert_with_key(|key| Entry {
        key: key.clone(),
        low_ns: 0,
        high_ns: 0,
        evidence,
        spans: Vec::new(),
    });
    entry.low_ns += low_ns;
    entry.high_ns += high_ns;
    // The weakest evidence counts; `Evidence` has the strongest first.
    entry.evidence = entry.evidence.max(evidence);
    if low_ns > 0 {
        entry.spans.push((from_ns, to_ns));
    }
}
