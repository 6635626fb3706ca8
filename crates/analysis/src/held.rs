//! Finds the messages of a trial that were held on their way and released together.
//!
//! Input: the samples of a trial with a period, and the gates of its ends. Output: the bursts of each direction, also if the ends
//! have different clocks. With the same samples, it collects the medians that show slow movements.

use crate::clocks::has_one_clock;
use crate::gates;
use crate::movement::Spans;
use tailbound_document::{HeldBurstReport, HeldReport, MovementReport};
use tailbound_gates::Gate;
use tailbound_model::{Measure, Metric, NO_TIME, TrialSpec, counter_of};
use tailbound_record::{Columns, Record, RecordError, SlotBatch};
use tailbound_stats::{HeldBurst, HeldBursts, HeldSearch, Passage};

/// Largest number of bursts of a condition that the report lists for a direction.
const LISTED: usize = 20;

/// The bursts of a trial on the way out and on the way back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held {
    pub out: HeldBursts,
    pub back: HeldBursts,
    /// What moved the times on the ways slowly, if that is clear.
    pub movement: Option<MovementReport>,
    /// Whether the ends have different clocks.
    other_clock: bool,
}

impl Held {
    /// If a message of this leg was due within a burst: the time until which it was held (monotonic ns), and the usual time on the
    /// way, ns. A message that leaves at the first time arrives when the first message of the burst did, after the usual time.
    /// `None` also if the ends have different clocks.
    pub fn until_ns(&self, leg: Metric, due_ns: i64) -> Option<(i64, i64)> {
        let bursts = match leg {
            _ if self.other_clock => return None,
            Metric::Out => &self.out,
            Metric::Back => &self.back,
            _ => return None,
        };
        let burst = bursts.longest.iter().find(|b| (b.first.due_ns..=b.last.due_ns).contains(&due_ns))?;
        Some((burst.first.sent_ns.saturating_add(burst.held_ns()), burst.usual_ns))
    }
}

/// The bursts of a trial with this number of slots; none if its messages have no period. Messages of the warm-up are left out.
pub(crate) fn of(record: &Record, trial: usize, spec: &TrialSpec, slots: u64) -> Result<Held, RecordError> {
    let period = spec.rate.period().filter(|_| matches!(spec.measure, Measure::PingPong(_)));
    let Some(period) = period else { return Ok(Held::default()) };
    let gates = gates::of_trial(record, trial, spec);
    let launch_ns = record.manifest.launch_wait_ns(trial);
    let gate = |end: &str| gates.iter().find(|(name, _)| name == end).map(|(_, gate)| gate);
    let mut ways =
        [(true, gate("ping")), (false, gate("pong"))].map(|(out, gate)| (out, gate, HeldSearch::new(period.0)));
    let columns = Columns::of(&[Metric::SendLateness, Metric::Out, Metric::Back]).with_echo_begin().with_seq();
    let mut spans = Spans::new(slots);
    record.scan(trial, &columns, &mut |batch| {
        spans.add(batch);
        ways.iter_mut().for_each(|(out, gate, search)| add(search, batch, (*out, launch_ns), *gate));
    })?;
    let [out, back] = ways.map(|(_, _, search)| search.finish());
    let one_clock = has_one_clock(record, trial);
    Ok(Held { out, back, movement: spans.finish(trial, one_clock), other_clock: !one_clock })
}

/// Adds the messages of one direction. A message that its launch time or its gate keeps counts as sent when it may leave. `launch_ns`:
/// time by which a message of the ping is due before its launch time lets it leave.
fn add(search: &mut HeldSearch, batch: &SlotBatch, (out, launch_ns): (bool, i64), gate: Option<&Gate>) {
    let measured = batch.ways(out).filter(|(i, ..)| !batch.warm_up[*i] && batch.intended_ns[*i] != NO_TIME);
    for (i, sent_ns, received_ns) in measured {
        let sent_ns = if out { batch.ready_ns(i, sent_ns, launch_ns) } else { sent_ns };
        let sent_ns = gate.map_or(sent_ns, |gate| gate.permitted_ns(sent_ns));
        search.add(Passage { slot: counter_of(batch.seq[i]), due_ns: batch.intended_ns[i], sent_ns, received_ns });
    }
}

/// The bursts of one direction.
type OfLeg = fn(&Held) -> &HeldBursts;

/// The bursts of the trials of a condition, by direction. Each trial has its id and the time at which slot 0 was due.
/// `perhaps_sent_again`: whether messages of a leg may have been lost and sent again.
pub(crate) fn report(trials: &[(usize, i64, &Held)], perhaps_sent_again: impl Fn(Metric) -> bool) -> Vec<HeldReport> {
    let legs: [(&str, Metric, OfLeg); 2] =
        [("out", Metric::Out, |held| &held.out), ("back", Metric::Back, |held| &held.back)];
    let of_leg = |(leg, metric, bursts): (&str, Metric, OfLeg)| {
        let all = || trials.iter().map(|(trial, t0_ns, held)| (*trial, *t0_ns, bursts(held)));
        let mut longest: Vec<HeldBurstReport> =
            all().flat_map(|(trial, t0_ns, of)| of.longest.iter().map(move |one| burst(trial, t0_ns, one))).collect();
        longest.sort_by_key(|burst| std::cmp::Reverse(burst.held_ns));
        let longest_ns = longest.first()?.held_ns;
        longest.truncate(LISTED);
        longest.sort_by_key(|burst| (burst.trial, burst.first_slot));
        Some(HeldReport {
            leg: leg.to_owned(),
            bursts: all().map(|(.., of)| of.bursts).sum(),
            messages: all().map(|(.., of)| of.messages).sum(),
            most_messages: all().map(|(.., of)| of.most_messages).max().unwrap_or(0),
            longest_ns,
            perhaps_sent_again: perhaps_sent_again(metric),
            longest,
        })
    };
    legs.into_iter().filter_map(of_leg).collect()
}

fn burst(trial: usize, t0_ns: i64, burst: &HeldBurst) -> HeldBurstReport {
    HeldBurstReport {
        trial,
        first_slot: burst.first.slot,
        last_slot: burst.last.slot,
        from_ns: burst.first.due_ns - t0_ns,
        to_ns: burst.last.due_ns - t0_ns,
        messages: burst.messages,
        held_ns: burst.held_ns(),
        received_within_ns: burst.received_within_ns(),
    }
}
