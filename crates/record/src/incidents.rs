//! Finds the incidents of a trial in its samples: late and lost messages that overlap in time.
//!
//! Three passes over the same messages: a histogram, the exact quantiles, the incidents. The messages of a short trial
//! are kept in memory after the first pass; those of a longer one are read three times, so that the memory does not grow
//! with the number of slots.

use crate::{Columns, Record, RecordError, SlotBatch};
use tailbound_model::{Metric, MissWindow, NO_TIME};
use tailbound_stats::{Histogram, IncidentFinder, Incidents, LateRule, Misses, Quantile, RankPicker};

/// Number of ordinary messages of a trial that are chosen, so that a mean over them is known to about a sixth of its
/// standard deviation.
const ORDINARY: u64 = 40;

/// Largest number of messages of a trial that are kept in memory, which takes 24 MiB.
const MOST_KEPT: usize = 1 << 19;

/// Largest number of incidents of a trial whose events are kept. On a busy machine, 20 s of 500 messages/s have up to 460,
/// and the smallest of them can have a cause that matters.
pub const MOST_INCIDENTS: usize = 1_000;

/// Incidents of one trial, and what is needed to judge them.
#[derive(Debug, Clone)]
pub struct TrialIncidents {
    /// The rule by which messages of the trial are late.
    pub rule: LateRule,
    /// The incidents of the trial.
    pub found: Incidents,
    /// Runs and windows of late and lost messages.
    pub misses: Misses,
    /// Number of measured slots of the trial.
    pub slots: u64,
    /// Latencies of all messages that were answered, ns: from the due time to the receipt of the answer.
    pub latencies: Histogram,
    /// Messages that were on time, spread evenly over the trial.
    pub ordinary: Vec<Ordinary>,
}

/// A message that was answered on time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ordinary {
    /// Number of the message's row of samples in the trial.
    pub row: u64,
    /// Time at which the message was due, ns (stop-and-wait: at which its send call began).
    pub due_ns: i64,
    /// Time at which the answer was received, ns.
    pub received_ns: i64,
}

impl Record {
    /// Finds the incidents of a trial, and keeps the details of the `most` worst ones. `late_above_ns` is the study's
    /// limit for late messages. The incident of the message at which the run ended (`--until`) is always kept. Returns `None` if no measured slot was answered.
    ///
    /// # Errors
    /// A segment is damaged, or the samples change while they are read.
    pub fn incidents(
        &self,
        trial: usize,
        late_above_ns: Option<i64>,
        most: usize,
    ) -> Result<Option<TrialIncidents>, RecordError> {
        let mut latencies = Histogram::new();
        let mut round_trips = Histogram::new();
        let mut slots = 0;
        let mut kept = Some(Vec::new());
        self.messages(trial, &mut |row, message| {
            slots += 1;
            match &mut kept {
                Some(all) if all.len() < MOST_KEPT => all.push((row, message)),
                _ => kept = None,
            }
            message.latency_ns.iter().for_each(|ns| latencies.record(*ns));
            message.round_trip_ns.iter().for_each(|ns| round_trips.record(*ns));
        })?;
        let tenth = Quantile::from_f64(0.1).unwrap_or(Quantile::P50);
        // A quantile among the slots without an answer has no value; the latest answer is the nearest one.
        let rank = |q: Quantile| q.rank(slots).min(latencies.count());
        let picked = RankPicker::new(&latencies, &[rank(tenth), rank(Quantile::P50)]);
        let half = RankPicker::new(&round_trips, &[Quantile::P50.rank(round_trips.count())]);
        let (Ok(mut latency), Ok(mut round_trip)) = (picked, half) else { return Ok(None) };
        let again = |each: &mut dyn FnMut(u64, Message)| match &kept {
            Some(all) => {
                all.iter().for_each(|(row, message)| each(*row, *message));
                Ok(())
            }
            None => self.messages(trial, each),
        };
        again(&mut |_, message| {
            message.latency_ns.iter().for_each(|ns| latency.offer(*ns));
            message.round_trip_ns.iter().for_each(|ns| round_trip.offer(*ns));
        })?;
        let changed = |e| RecordError::damaged(self.dir(), format!("it changes while read: {e}"));
        let (latency, round_trip) = (latency.finish().map_err(changed)?, round_trip.finish().map_err(changed)?);
        let ([p10_ns, p50_ns], [round_trip_ns]) = (latency.as_slice(), round_trip.as_slice()) else { return Ok(None) };
        let rule = LateRule::new((*p10_ns, *p50_ns), *round_trip_ns, late_above_ns);
        let found = self.manifest.until.as_ref().and_then(|until| until.found.as_ref());
        let pinned = found.filter(|found| found.trial == trial).map(|found| found.row);
        let mut finder = IncidentFinder::new(rule, most).pinning(pinned);
        let MissWindow { m, k } = self.manifest.plan.report.miss_window();
        let mut misses = Misses::new(m, k);
        let mut ordinary: Vec<Ordinary> = Vec::new();
        let mut measured = 0;
        again(&mut |row, Message { due_ns, latency_ns, .. }| {
            let missed = match latency_ns {
                Some(latency_ns) => {
                    let late = finder.answered(row, due_ns, latency_ns);
                    if !late && is_next_ordinary(measured, slots, ordinary.len() as u64) {
                        ordinary.push(Ordinary { row, due_ns, received_ns: due_ns.saturating_add(latency_ns) });
                    }
                    late
                }
                None => {
                    finder.lost(row, due_ns);
                    true
                }
            };
            misses.offer(due_ns, missed);
            measured += 1;
        })?;
        Ok(Some(TrialIncidents { rule, found: finder.finish(), misses, slots, latencies, ordinary }))
    }

    /// Finds the messages of a trial that were lost, not sent, or answered later than `limit_ns` after they were due
    /// (stop-and-wait: after the begin of their send call). Returns the longest sequence of consecutive such messages, the
    /// number of windows with too many of them, and the longest time until messages were on time again.
    ///
    /// # Errors
    /// A segment is damaged.
    pub fn misses(&self, trial: usize, limit_ns: i64, window: MissWindow) -> Result<Misses, RecordError> {
        let mut misses = Misses::new(window.m, window.k);
        self.messages(trial, &mut |_, message| {
            misses.offer(message.due_ns, message.latency_ns.is_none_or(|latency_ns| latency_ns > limit_ns));
        })?;
        Ok(misses)
    }

    /// Passes the row number and the times of each measured slot of a trial to `each`, in the order of the slots. With
    /// stop-and-wait, a slot without a send call is left out, because it has no due time.
    fn messages(&self, trial: usize, each: &mut dyn FnMut(u64, Message)) -> Result<(), RecordError> {
        let columns = Columns::of(&[Metric::FromIntended, Metric::RoundTrip]);
        let mut first = 0;
        self.scan(trial, &columns, &mut |batch| {
            for i in (0..batch.len()).filter(|i| !batch.warm_up[*i]) {
                if let Some(message) = Message::of(batch, i) {
                    each(first + i as u64, message);
                }
            }
            first += batch.len() as u64;
        })
    }
}

/// Whether measured slot `number` of `slots`, whose message is on time, is the next ordinary message if `chosen` ones were
/// chosen before: the middle of each of the equal parts into which the ordinary messages divide the trial.
pub(crate) fn is_next_ordinary(number: u64, slots: u64, chosen: u64) -> bool {
    number * ORDINARY >= slots * chosen + slots / 2
}

/// Times of one message, ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub due_ns: i64,
    /// Time from the due time to the receipt of the answer; `None` if there was no answer.
    pub latency_ns: Option<i64>,
    pub round_trip_ns: Option<i64>,
}

impl Message {
    #[inline]
    fn of(batch: &SlotBatch, i: usize) -> Option<Message> {
        Message::at(batch.intended_ns[i], batch.send_begin_ns[i], batch.receive_ns[i])
    }

    /// The times of a slot; `None` if it has no due time.
    #[inline]
    pub fn at(intended: i64, begun: i64, received: i64) -> Option<Message> {
        let due_ns = if intended == NO_TIME { begun } else { intended };
        let answered = received != NO_TIME && begun != NO_TIME;
        (due_ns != NO_TIME).then(|| Message {
            due_ns,
            latency_ns: answered.then(|| received.saturating_sub(due_ns)),
            round_trip_ns: answered.then(|| received.saturating_sub(begun)),
        })
    }
}
