//! Finds late and lost messages while their trial still runs, so that the events around them can be kept.
//!
//! What is usual is learned from the messages so far, in buckets of a histogram; [`Record::incidents`](crate::Record)
//! decides after the trial, by all messages. So both can differ in messages near the limit.

use crate::incidents::{Message, is_next_ordinary};
use std::collections::BTreeMap;
use tailbound_model::{NO_TIME, SenderRow};
use tailbound_stats::{Histogram, Incident, IncidentFinder, LateRule, Quantile};

/// Number of messages of which the first rule is made by which messages are late; it judges these messages too.
const FIRST_RULE: u64 = 100;
/// Number of messages after which the rule is made again.
const RENEWED_AFTER: u64 = 1_000;
/// Largest number of rows of the incident that has not ended that are kept.
const MOST_ROWS: usize = 128;

/// A time span around which the events of a running trial are worth keeping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notable {
    /// Time at which the first message was due, ns.
    pub begin_ns: i64,
    /// Time at which the last answer was received, ns; at least the time at which the last message was due.
    pub end_ns: i64,
    /// The larger, the more important: the excess of an incident in ns, or the highest value for an ordinary message, of
    /// which there are only 40.
    pub rank: i64,
}

impl Notable {
    const ORDINARY: i64 = i64::MAX;

    /// Whether this is the time span of an ordinary message.
    pub fn is_ordinary(&self) -> bool {
        self.rank == Notable::ORDINARY
    }
}

/// What is known of the late and lost messages of a trial that still runs: the incidents that have ended so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IncidentsSoFar {
    /// Number of incidents that have ended.
    pub incidents: u64,
    /// Number of late messages in these incidents.
    pub late: u64,
    /// Number of messages without an answer in these incidents.
    pub lost: u64,
    /// The incident with the largest excess; the earliest one of several.
    pub worst: Option<Notable>,
}

/// A row of the sender, with the end of the send call before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptRow {
    /// The row of the message.
    pub row: SenderRow,
    /// Time at which the send call of the previous slot returned, ns; [`NO_TIME`] if there was none.
    pub previous_sent_ns: i64,
}

/// The worst of some incidents of a trial that still runs, with what its ledger needs from the samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorstIncident {
    /// The incident.
    pub incident: Incident,
    /// The messages of its parts, by row number. A message is missing if it was judged together with others, when the first rule was
    /// made.
    pub rows: BTreeMap<u64, KeptRow>,
    /// Median by which the messages of the incident were judged, ns.
    pub median_ns: i64,
}

/// Late and lost messages of a trial that still runs.
#[derive(Debug, Clone)]
pub struct RunningIncidents {
    /// Number of slots that the trial measures, as planned.
    slots: u64,
    late_above_ns: Option<i64>,
    latencies: Histogram,
    round_trips: Histogram,
    /// Messages that cannot be judged yet, with the numbers of their rows.
    waiting: Vec<(u64, Message)>,
    /// Number of messages so far.
    count: u64,
    finder: Option<IncidentFinder>,
    /// Number of messages that were judged.
    judged: u64,
    /// Number of ordinary messages that were chosen.
    ordinary: u64,
    worst: Option<Notable>,
    /// End of the send call of the row that was added last, ns.
    previous_sent_ns: i64,
    /// Messages in the parts of the incident that has not ended, and of some that are no longer part of it.
    rows: BTreeMap<u64, KeptRow>,
    /// The worst of the incidents that have ended since it was taken.
    newest_worst: Option<WorstIncident>,
    /// The ordinary messages that were chosen.
    ordinary_rows: Vec<KeptRow>,
}

impl RunningIncidents {
    /// `slots` is the planned number of measured slots, `late_above_ns` the study's limit for late messages.
    pub fn new(slots: u64, late_above_ns: Option<i64>) -> RunningIncidents {
        RunningIncidents {
            slots,
            late_above_ns,
            latencies: Histogram::new(),
            round_trips: Histogram::new(),
            waiting: Vec::new(),
            count: 0,
            finder: None,
            judged: 0,
            ordinary: 0,
            worst: None,
            previous_sent_ns: NO_TIME,
            rows: BTreeMap::new(),
            newest_worst: None,
            ordinary_rows: Vec::new(),
        }
    }

    /// Takes the worst of the incidents that have ended since the previous call, if one of them has an excess.
    pub fn take_worst(&mut self) -> Option<WorstIncident> {
        self.newest_worst.take()
    }

    /// The ordinary messages that were chosen so far: at most 40.
    pub fn ordinary(&self) -> &[KeptRow] {
        &self.ordinary_rows
    }

    /// The incidents that have ended so far.
    pub fn so_far(&self) -> IncidentsSoFar {
        let (incidents, late, lost) = self.finder.as_ref().map(IncidentFinder::ended).unwrap_or_default();
        IncidentsSoFar { incidents, late, lost, worst: self.worst }
    }

    /// Adds row `number` of the sender, whose answer can no longer arrive, and appends to `found` what is notable since.
    /// Rows must be added in their order.
    pub fn add(&mut self, number: u64, row: &SenderRow, found: &mut Vec<Notable>) {
        let previous_sent_ns = std::mem::replace(&mut self.previous_sent_ns, row.send_end_ns);
        let times = Message::at(row.intended_ns, row.send_begin_ns, row.receive_ns);
        let Some(message) = times.filter(|_| !row.warm_up) else { return };
        message.latency_ns.iter().for_each(|ns| self.latencies.record(*ns));
        message.round_trip_ns.iter().for_each(|ns| self.round_trips.record(*ns));
        self.waiting.push((number, message));
        self.count += 1;
        if self.count == FIRST_RULE || self.count.is_multiple_of(RENEWED_AFTER) {
            self.renew_rule();
        }
        if let Some(mut finder) = self.finder.take() {
            // The last message that waits is the one of this row.
            let mut is_ordinary = false;
            for (number, message) in std::mem::take(&mut self.waiting) {
                is_ordinary = self.judge(&mut finder, number, message, found);
            }
            let kept = KeptRow { row: *row, previous_sent_ns };
            self.ordinary_rows.extend(is_ordinary.then_some(kept));
            for ended in finder.take_ended(message.due_ns) {
                self.keep_worst(&ended, finder.rule().median_ns);
                let incident = Notable { begin_ns: ended.begin_ns, end_ns: ended.end_ns, rank: ended.rank().0 };
                if self.worst.is_none_or(|worst| worst.rank < incident.rank) {
                    self.worst = Some(incident);
                }
                found.push(incident);
            }
            self.keep_part(finder.open(), number, kept);
            self.finder = Some(finder);
        }
    }

    /// Keeps the row of this number if its message is the latest part of the incident that has not ended.
    fn keep_part(&mut self, open: Option<&Incident>, number: u64, kept: KeptRow) {
        let Some(parts) = open.map(|open| &open.parts) else { return self.rows.clear() };
        if parts.last().is_some_and(|part| part.row == number) {
            self.rows.insert(number, kept);
        }
        // An incident has at most 64 parts: the rows of those that it gave up are removed now and then.
        if self.rows.len() > MOST_ROWS {
            self.rows.retain(|row, _| parts.iter().any(|part| part.row == *row));
        }
    }

    /// Keeps an incident that has ended if it is the worst since the last one was taken.
    fn keep_worst(&mut self, ended: &Incident, median_ns: i64) {
        let least_ns = self.newest_worst.as_ref().map_or(0, |worst| worst.incident.excess_ns);
        if ended.excess_ns > least_ns {
            let row = |number: u64| Some((number, *self.rows.get(&number)?));
            let rows = ended.parts.iter().filter_map(|part| row(part.row)).collect();
            self.newest_worst = Some(WorstIncident { incident: ended.clone(), rows, median_ns });
        }
    }

    /// Judges a message. Returns whether it was chosen as an ordinary message.
    fn judge(&mut self, finder: &mut IncidentFinder, number: u64, message: Message, found: &mut Vec<Notable>) -> bool {
        let Message { due_ns, latency_ns, .. } = message;
        let before = self.ordinary;
        match latency_ns {
            None => finder.lost(number, due_ns),
            Some(latency_ns) => {
                let late = finder.answered(number, due_ns, latency_ns);
                if !late && is_next_ordinary(self.judged, self.slots, self.ordinary) {
                    self.ordinary += 1;
                    let end_ns = due_ns.saturating_add(latency_ns);
                    found.push(Notable { begin_ns: due_ns, end_ns, rank: Notable::ORDINARY });
                }
            }
        }
        self.judged += 1;
        before < self.ordinary
    }

    /// Makes the rule again from all messages so far. The lower ends of the buckets make the limit rather too low than
    /// too high.
    fn renew_rule(&mut self) {
        let tenth = Quantile::from_f64(0.1).unwrap_or(Quantile::P50);
        let low_ns = |of: &Histogram, q: Quantile, of_all: u64| {
            let bucket = of.bucket_of_rank(q.rank(of_all).min(of.count()));
            bucket.map(|ranked| ranked.bucket.low)
        };
        let latency = |q| low_ns(&self.latencies, q, self.count);
        let round_trip_ns = low_ns(&self.round_trips, Quantile::P50, self.round_trips.count());
        let rule = match (latency(tenth), latency(Quantile::P50), round_trip_ns) {
            (Some(p10_ns), Some(p50_ns), Some(round_trip_ns)) => {
                LateRule::new((p10_ns, p50_ns), round_trip_ns, self.late_above_ns)
            }
            // Without an answer, nothing is usual, and all messages are lost.
            _ => LateRule { median_ns: i64::MAX, limit_ns: i64::MAX, round_trip_ns: 0 },
        };
        self.finder.get_or_insert_with(|| IncidentFinder::new(rule, usize::MAX)).judge_by(rule);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{NO_TIME, Outcome};

    const MS: i64 = 1_000_000;

    /// A message every 1 ms; its answer takes 0.1 ms if `latency_ns` gives nothing else.
    fn row(number: u64, latency_ns: Option<i64>) -> SenderRow {
        let due_ns = number as i64 * MS;
        SenderRow {
            seq: number,
            intended_ns: due_ns,
            wake_ns: due_ns,
            send_begin_ns: due_ns,
            send_end_ns: due_ns + 5_000,
            receive_ns: latency_ns.map_or(NO_TIME, |ns| due_ns + ns),
            kernel_rx_ns: NO_TIME,
            receive_thread: None,
            outcome: if latency_ns.is_some() { Outcome::Answered } else { Outcome::Lost },
            duplicates: 0,
            out_of_order: false,
            warm_up: number < 10,
        }
    }

    #[test]
    fn late_and_lost_messages_and_ordinary_ones_are_found_while_the_trial_runs() {
        let mut running = RunningIncidents::new(4_000, None);
        let mut found = Vec::new();
        for number in 0..2_510 {
            let latency = match number {
                5 | 200 => Some(30 * MS),
                1_500..1_520 => Some((1_520 - number as i64) * MS),
                2_000 => None,
                _ => Some(100_000 + (number as i64 % 7) * 1_000),
            };
            running.add(number, &row(number, latency), &mut found);
            // Nothing is known before there is a rule.
            assert!(number >= 109 || found.is_empty());
        }
        let (ordinary, incidents): (Vec<_>, Vec<_>) = found.into_iter().partition(Notable::is_ordinary);
        // Every hundredth of the 4,000 slots, from the fiftieth on.
        let due: Vec<i64> = ordinary.iter().map(|o| o.begin_ns / MS - 10).collect();
        assert_eq!(due[..3], [50, 150, 250]);
        assert_eq!((ordinary.len(), due[24]), (25, 2_450));
        let spans: Vec<(i64, i64)> = incidents.iter().map(|i| (i.begin_ns / MS, i.end_ns / MS)).collect();
        assert_eq!(spans, [(200, 230), (1_500, 1_520), (2_000, 2_000)]);
        // Limit: the excess is the time beyond 0.1 ms, in a bucket that is at most 1/128 wide.
        assert!((29_890_000..=29_910_000).contains(&incidents[0].rank), "{incidents:?}");
        let so_far = running.so_far();
        assert_eq!((so_far.incidents, so_far.late, so_far.lost, so_far.worst), (3, 21, 1, Some(incidents[0])));
        // The first 25 ordinary messages, without the one that was judged when the first rule was made.
        let due: Vec<i64> = running.ordinary().iter().map(|kept| kept.row.intended_ns / MS - 10).collect();
        assert_eq!((&due[..2], due.len()), (&[150, 250][..], 24));
    }

    #[test]
    fn the_worst_incident_since_the_last_one_was_taken_has_the_rows_of_its_parts() {
        let mut running = RunningIncidents::new(4_000, None);
        let mut found = Vec::new();
        let mut add =
            |running: &mut RunningIncidents, numbers: std::ops::Range<u64>, late: &dyn Fn(u64) -> Option<i64>| {
                numbers.for_each(|n| running.add(n, &row(n, late(n).or(Some(100_000))), &mut found));
            };
        // Stalls of 30 ms and of 20 ms, each answered at once.
        add(&mut running, 0..1_000, &|n| (500..530).contains(&n).then(|| (530 - n as i64) * MS));
        add(&mut running, 1_000..2_000, &|n| (1_500..1_520).contains(&n).then(|| (1_520 - n as i64) * MS));
        let worst = running.take_worst().expect("there were two");
        assert_eq!((worst.incident.rows, worst.incident.parts.len()), ((500, 529), 1));
        let first = worst.rows.get(&500).expect("the message of the only part");
        assert_eq!((first.row.receive_ns, first.previous_sent_ns), (530 * MS, 499 * MS + 5_000));
        assert!((99_000..=100_000).contains(&worst.median_ns), "{}", worst.median_ns);
        assert_eq!(running.take_worst(), None);
        // 300 late messages, each a part of its own: the 64 longest are kept, with their rows.
        add(&mut running, 2_000..2_400, &|n| (2_050..2_350).contains(&n).then(|| 2 * MS + n as i64 * 100));
        let worst = running.take_worst().expect("another incident");
        let parts: Vec<u64> = worst.incident.parts.iter().map(|part| part.row).collect();
        assert_eq!((parts.len(), worst.rows.len()), (64, 64));
        assert!(parts.iter().all(|row| worst.rows.contains_key(row)) && running.rows.len() <= MOST_ROWS);
    }

    #[test]
    fn messages_without_any_answer_are_found_and_take_no_memory() {
        let mut running = RunningIncidents::new(4_000, None);
        let mut found = Vec::new();
        (0..3_000).for_each(|number| running.add(number, &row(number, None), &mut found));
        // Each is an incident of its own, because no round trip is known that would join them.
        assert!(running.waiting.is_empty() && found.len() == 2_990, "{}", found.len());
        let so_far = running.so_far();
        assert_eq!((so_far.incidents, so_far.late, so_far.lost, so_far.worst), (2_990, 0, 2_990, Some(found[0])));
    }
}
