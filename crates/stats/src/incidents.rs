//! Incidents of a trial: late and lost messages that overlap in time.
//!
//! Input: messages in the order of their due times, times in ns. The memory does not grow with the number of messages.

/// Smallest distance between the median and the limit above which a message is late, ns.
const LEAST_DISTANCE_NS: i64 = 50_000;

/// The rule by which a message of a trial is late. The latency is the time from the due time to the receipt of the
/// answer; with stop-and-wait it is the round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateRule {
    /// Median of the latency of the trial, ns: the usual latency, from which the excess is counted.
    pub median_ns: i64,
    /// A message whose latency is above this limit is late, ns.
    pub limit_ns: i64,
    /// Median of the round trip of the trial, ns: messages that are apart by less belong to the same incident.
    pub round_trip_ns: i64,
}

impl LateRule {
    /// The rule for a trial with these quantiles of the latency: a message is late above
    /// p50 + max(5 x (p50 - p10), p50, 50 us), or above `asked`, the limit of the study. All times in ns.
    pub fn new((p10_ns, p50_ns): (i64, i64), round_trip_ns: i64, asked: Option<i64>) -> LateRule {
        let distance = p50_ns.saturating_sub(p10_ns).saturating_mul(5).max(p50_ns).max(LEAST_DISTANCE_NS);
        LateRule { median_ns: p50_ns, limit_ns: asked.unwrap_or(p50_ns.saturating_add(distance)), round_trip_ns }
    }
}

/// A part of the excess of an incident: in this time span, this message is the oldest one that is outstanding and later
/// than usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExcessPart {
    /// Begin of the time span, ns.
    pub from_ns: i64,
    /// End of the time span: the receipt of the message's answer, ns.
    pub to_ns: i64,
    /// Row of the message, as given to [`IncidentFinder::answered`].
    pub row: u64,
}

impl ExcessPart {
    /// Length of the time span, ns.
    pub fn ns(&self) -> i64 {
        self.to_ns - self.from_ns
    }
}

/// Largest number of parts of the excess that an incident keeps: the longest ones.
const MOST_PARTS: usize = 64;

/// Late and lost messages of one trial that overlap in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// Due time of the first message of the incident, ns.
    pub begin_ns: i64,
    /// Time at which the last answer of the incident was received, or at which its last lost message was due, ns.
    pub end_ns: i64,
    /// Number of late messages of the incident.
    pub late: u64,
    /// Number of messages of the incident without an answer.
    pub lost: u64,
    /// Time of the incident during which at least one late message was outstanding for longer than the median, ns.
    pub excess_ns: i64,
    /// Rows of the first and of the last message of the incident.
    pub rows: (u64, u64),
    /// Latency in ns and row of the message with the longest latency; a lost message only if there is no late one.
    pub worst: (Option<i64>, u64),
    /// The parts of the excess, in the order of time; of more than 64 parts the longest ones.
    pub parts: Vec<ExcessPart>,
    /// True if the details of the incident are kept, however many worse incidents there are.
    pub pinned: bool,
    /// Time until which the excess has been counted, ns.
    counted_until_ns: i64,
}

impl Incident {
    fn keep(&mut self, part: ExcessPart) {
        if self.parts.len() == MOST_PARTS {
            let Some((at, least)) = self.parts.iter().enumerate().min_by_key(|(_, p)| p.ns()) else { return };
            if least.ns() >= part.ns() {
                return;
            }
            self.parts.remove(at);
        }
        self.parts.push(part);
    }

    /// Rank of the incident among the incidents of a trial or a condition: the one with the largest excess is the
    /// worst; of incidents without an excess, the one with most lost messages.
    pub fn rank(&self) -> (i64, u64) {
        (self.excess_ns, self.lost)
    }
}

/// All incidents of a trial: their number, sums over all, and the worst ones with their details.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Incidents {
    /// The worst incidents, in the order of time.
    pub worst: Vec<Incident>,
    /// Number of all incidents.
    pub count: u64,
    /// Number of late messages in all incidents.
    pub late: u64,
    /// Number of messages without an answer in all incidents.
    pub lost: u64,
    /// Sum of the excess of all incidents, ns.
    pub excess_ns: i64,
}

impl Incidents {
    fn add(&mut self, incident: Incident, most: usize) {
        self.count += 1;
        self.late += incident.late;
        self.lost += incident.lost;
        self.excess_ns += incident.excess_ns;
        self.worst.push(incident);
        if self.worst.len() > most {
            let others = self.worst.iter().enumerate().filter(|(_, one)| !one.pinned);
            let least = others.min_by_key(|(_, one)| one.rank()).map(|(at, _)| at);
            least.map(|at| self.worst.remove(at));
        }
    }
}

/// Finds the incidents of one trial while its messages are read.
#[derive(Debug, Clone)]
pub struct IncidentFinder {
    rule: LateRule,
    most: usize,
    pinned: Option<u64>,
    open: Option<Incident>,
    found: Incidents,
}

impl IncidentFinder {
    /// Makes a finder for a trial with this rule, which keeps the details of at most `most` incidents.
    pub fn new(rule: LateRule, most: usize) -> IncidentFinder {
        IncidentFinder { rule, most, pinned: None, open: None, found: Incidents::default() }
    }

    /// Also keeps the details of the incident that contains the message of this row, if that message is late or lost.
    pub fn pinning(self, row: Option<u64>) -> IncidentFinder {
        IncidentFinder { pinned: row, ..self }
    }

    /// Adds a message that was answered. Returns whether it is late.
    pub fn answered(&mut self, row: u64, due_ns: i64, latency_ns: i64) -> bool {
        if latency_ns <= self.rule.limit_ns {
            return false;
        }
        let (received, usual) = (due_ns + latency_ns, due_ns + self.rule.median_ns);
        let incident = self.incident_at(due_ns, row);
        incident.late += 1;
        let from_ns = usual.max(incident.counted_until_ns);
        if from_ns < received {
            incident.excess_ns += received - from_ns;
            incident.counted_until_ns = received;
            incident.keep(ExcessPart { from_ns, to_ns: received, row });
        }
        incident.end_ns = incident.end_ns.max(received);
        if incident.worst.0 < Some(latency_ns) {
            incident.worst = (Some(latency_ns), row);
        }
        true
    }

    /// Adds a message that was not answered. It adds no time, because its timeout is the choice of the study.
    pub fn lost(&mut self, row: u64, due_ns: i64) {
        self.incident_at(due_ns, row).lost += 1;
    }

    /// The rule by which messages are judged now.
    pub fn rule(&self) -> LateRule {
        self.rule
    }

    /// The incident that has not ended, if there is one.
    pub fn open(&self) -> Option<&Incident> {
        self.open.as_ref()
    }

    /// Judges the messages to come by this rule.
    pub fn judge_by(&mut self, rule: LateRule) {
        self.rule = rule;
    }

    /// Takes the details of the incidents to which no message belongs that is due at `due_ns` or later.
    pub fn take_ended(&mut self, due_ns: i64) -> Vec<Incident> {
        if self.open.as_ref().is_some_and(|open| !self.is_near(open, due_ns)) {
            self.close();
        }
        std::mem::take(&mut self.found.worst)
    }

    /// Number of incidents that have ended so far, and of their late and lost messages.
    pub fn ended(&self) -> (u64, u64, u64) {
        (self.found.count, self.found.late, self.found.lost)
    }

    /// Ends the trial and returns its incidents.
    pub fn finish(mut self) -> Incidents {
        self.close();
        self.found
    }

    fn close(&mut self) {
        if let Some(incident) = self.open.take() {
            self.found.add(incident, self.most);
        }
    }

    /// Whether a message with this due time belongs to the open incident.
    fn is_near(&self, open: &Incident, due_ns: i64) -> bool {
        due_ns < open.end_ns.saturating_add(self.rule.round_trip_ns)
    }

    /// The incident to which a message with this due time belongs: the open one if it is near enough, else a new one.
    fn incident_at(&mut self, due_ns: i64, row: u64) -> &mut Incident {
        if !self.open.as_ref().is_some_and(|open| self.is_near(open, due_ns)) {
            self.close();
        }
        let incident = self.open.get_or_insert_with(|| Incident {
            begin_ns: due_ns,
            end_ns: due_ns,
            late: 0,
            lost: 0,
            rows: (row, row),
            excess_ns: 0,
            worst: (None, row),
            parts: Vec::new(),
            pinned: false,
            counted_until_ns: i64::MIN,
        });
        incident.pinned |= self.pinned == Some(row);
        incident.end_ns = incident.end_ns.max(due_ns);
        incident.rows.1 = row;
        incident
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Median 0.1 ms, p10 0.09 ms: late above 0.2 ms.
    fn finder() -> IncidentFinder {
        IncidentFinder::new(LateRule::new((90_000, 100_000), 100_000, None), 100)
    }

    #[test]
    fn the_limit_is_the_largest_of_three_distances_or_the_one_of_the_study() {
        let limit = |p10, p50, asked| LateRule::new((p10, p50), 0, asked).limit_ns;
        assert_eq!(limit(90_000, 100_000, None), 200_000);
        assert_eq!(limit(60_000, 100_000, None), 300_000);
        assert_eq!(limit(9_000, 10_000, None), 60_000);
        assert_eq!(limit(9_000, 10_000, Some(15_000)), 15_000);
    }

    #[test]
    fn a_stall_is_one_incident_whose_time_counts_once() {
        let mut finder = finder();
        // A stall from 10 to 30 ms: messages due every 1 ms are answered at 30 ms.
        for slot in 0..40 {
            let due = slot * MS;
            let received = if (10..30).contains(&slot) { 30 * MS } else { due + 100_000 };
            finder.answered(slot as u64, due, received - due);
        }
        let found = finder.finish().worst;
        assert_eq!(found.len(), 1, "{found:?}");
        let one = &found[0];
        assert_eq!((one.begin_ns, one.end_ns, one.late, one.lost), (10 * MS, 30 * MS, 20, 0));
        assert_eq!(one.rows, (10, 29));
        assert_eq!(one.excess_ns, 20 * MS - 100_000, "from the moment at which the first message was later than usual");
        assert_eq!(one.worst, (Some(20 * MS), 10));
    }

    #[test]
    fn messages_apart_by_a_round_trip_are_two_incidents() {
        let mut finder = finder();
        finder.answered(0, 0, MS);
        finder.answered(1, MS + 99_999, MS);
        finder.answered(2, 2 * MS + 199_999 + 100_000, MS);
        let found = finder.finish().worst;
        assert_eq!(found.iter().map(|f| f.late).collect::<Vec<_>>(), [2, 1], "{found:?}");
    }

    #[test]
    fn lost_messages_belong_to_the_incident_of_their_due_time_and_add_no_time() {
        let mut finder = finder();
        finder.answered(0, 0, 5 * MS);
        finder.lost(1, MS);
        finder.lost(2, 9 * MS);
        let found = finder.finish().worst;
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].late, found[0].lost, found[0].excess_ns), (1, 1, 5 * MS - 100_000));
        assert_eq!((found[1].late, found[1].lost, found[1].excess_ns, found[1].worst), (0, 1, 0, (None, 2)));
    }

    #[test]
    fn the_excess_follows_the_oldest_outstanding_message() {
        let mut finder = finder();
        // The first message is answered at 5 ms; the second, due at 1 ms, only at 9 ms.
        finder.answered(0, 0, 5 * MS);
        finder.answered(1, MS, 8 * MS);
        let incident = finder.finish().worst.remove(0);
        let part = |from_ns, to_ns, row| ExcessPart { from_ns, to_ns, row };
        assert_eq!(incident.parts, [part(100_000, 5 * MS, 0), part(5 * MS, 9 * MS, 1)]);
        assert_eq!(incident.excess_ns, incident.parts.iter().map(ExcessPart::ns).sum::<i64>());
    }

    #[test]
    fn all_incidents_are_counted_and_the_worst_are_kept() {
        let mut finder = IncidentFinder::new(LateRule::new((90_000, 100_000), 100_000, None), 3);
        for slot in 0..10i64 {
            finder.answered(slot as u64, slot * 100 * MS, (1 + slot % 5) * MS);
        }
        let found = finder.finish();
        assert_eq!((found.count, found.late, found.worst.len()), (10, 10, 3));
        assert_eq!(found.worst.iter().map(|i| i.worst.1).collect::<Vec<_>>(), [4, 8, 9]);
        assert_eq!(found.excess_ns, 30 * MS - 10 * 100_000);
        // A pinned incident displaces the least of the others.
        let mut finder = IncidentFinder::new(LateRule::new((90_000, 100_000), 100_000, None), 3).pinning(Some(1));
        for slot in 0..10i64 {
            finder.answered(slot as u64, slot * 100 * MS, (1 + slot % 5) * MS);
        }
        assert_eq!(finder.finish().worst.iter().map(|i| i.worst.1).collect::<Vec<_>>(), [1, 4, 9]);
    }
}
