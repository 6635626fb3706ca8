//! Keeps the record of a long run below its largest size (`tailbound run --for TIME --disk SIZE --rolling`): the oldest
//! trials are removed, but those with the worst incidents of the run are kept.

use super::RunError;
use std::cmp::Reverse;
use tailbound_model::{Flow, TrialStatus};
use tailbound_record::{
    MOST_INCIDENTS, Measured, Record, RecordError, RecordWriter, RemovedTrials, Rolling, TrialRecord,
};

/// Largest number of old trials that are kept because of their incidents.
const MOST_KEPT: usize = 10;

/// Rank of an incident, as in a report: excess in ns, and number of lost messages.
type Rank = (i64, u64);

/// The trials that are kept because of their incidents, and the times of all measurements.
#[derive(Debug, Default)]
pub(super) struct OldTrials {
    /// Rank of the worst incident, and id, of each old trial that is kept.
    kept: Vec<(Rank, usize)>,
    /// Begin and end of the first measurement and of the last one, wall-clock time in ns.
    first_and_last: Option<[(i64, i64); 2]>,
}

impl OldTrials {
    /// Adds a trial that has ended to the times of the measurements.
    pub fn add(&mut self, record: &mut RecordWriter, trial: usize) {
        let of = record.manifest.trial(trial);
        let Some((begin, used)) = of.began_unix_ns.zip(of.controller) else { return };
        let span = (begin, begin + used.span_ns);
        let before = self.first_and_last.map(|[_, last]| last);
        let first = self.first_and_last.map_or(span, |[first, _]| first);
        self.first_and_last = Some([first, span]);
        let Some(rolling) = rolling(record) else { return };
        let gap_ns = before.map_or(0, |last| Measured::of(&[last, span]).longest_gap_ns);
        rolling.measured = Measured {
            span_ns: span.1 - first.0,
            sum_ns: rolling.measured.sum_ns + used.span_ns,
            longest_gap_ns: rolling.measured.longest_gap_ns.max(gap_ns),
        };
    }

    /// Removes one trial, or marks one as kept. Returns false if no trial can be removed. The newest trial, and the last
    /// trial of a condition, are never removed. A trial whose samples cannot be read counts as not valid.
    ///
    /// # Errors
    /// Files cannot be removed.
    pub fn make_room(&mut self, record: &mut RecordWriter) -> Result<bool, RunError> {
        let window = self.window(record);
        let stored = Record::open(record.dir())?;
        let Some(oldest) = self.oldest(record, &window) else {
            // Nothing but old trials with incidents is left to be removed.
            return match self.least() {
                Some(least) => self.remove(record, &stored, least).map(|()| true),
                None => Ok(false),
            };
        };
        let rank = worst_incident(&stored, oldest, record.manifest.trial(oldest).status);
        let may_keep = self.kept.len() < MOST_KEPT && 2 * self.kept.len() < window.len();
        match (rank, self.kept.iter().min()) {
            (Some(rank), _) if may_keep => self.keep(record, rank, oldest),
            (Some(rank), Some((least, least_id))) if *least < rank => {
                let least_id = *least_id;
                self.keep(record, rank, oldest);
                self.remove(record, &stored, least_id)?;
            }
            _ => self.remove(record, &stored, oldest)?,
        }
        Ok(true)
    }

    /// The trials that have ended and whose figures are reported, the oldest first.
    fn window(&self, record: &RecordWriter) -> Vec<usize> {
        let ended = |t: &&TrialRecord| matches!(t.status, TrialStatus::Valid | TrialStatus::Invalid);
        let kept = |t: &&TrialRecord| self.kept.iter().any(|(_, id)| *id == t.id);
        record.manifest.trials.iter().filter(ended).filter(|t| !kept(t)).map(|t| t.id).collect()
    }

    /// The oldest trial of the window that is neither the newest one nor the last one of its condition.
    fn oldest(&self, record: &RecordWriter, window: &[usize]) -> Option<usize> {
        let condition =
            |id: usize| record.manifest.plan.trials.iter().find(|t| t.id == id).map(|planned| planned.condition);
        let (_, older) = window.split_last()?;
        let has_another = |id: &usize| window.iter().any(|other| other != id && condition(*other) == condition(*id));
        older.iter().copied().find(has_another)
    }

    /// The kept trial whose worst incident is the least bad one.
    fn least(&self) -> Option<usize> {
        self.kept.iter().min().map(|(_, id)| *id)
    }

    fn keep(&mut self, record: &mut RecordWriter, rank: Rank, trial: usize) {
        self.kept.push((rank, trial));
        self.kept.sort_unstable_by_key(|kept| Reverse(*kept));
        self.store(record);
    }

    fn store(&self, record: &mut RecordWriter) {
        if let Some(rolling) = rolling(record) {
            rolling.kept = self.kept.iter().map(|(_, id)| *id).collect();
        }
    }

    fn remove(&mut self, record: &mut RecordWriter, stored: &Record, trial: usize) -> Result<(), RunError> {
        let condition = stored.manifest.plan.trials.iter().find(|t| t.id == trial).map(|t| t.condition);
        let what = summary(stored, trial, record.manifest.trial(trial).status).unwrap_or(NOT_VALID);
        self.kept.retain(|(_, id)| *id != trial);
        self.store(record);
        if let Some((rolling, condition)) = rolling(record).zip(condition) {
            add(rolling.removed.entry(condition).or_default(), &what);
        }
        tracing::info!(trial, "removed, because the record has its largest size");
        Ok(record.remove_trial(trial)?)
    }
}

fn rolling(record: &mut RecordWriter) -> Option<&mut Rolling> {
    record.manifest.repeated.as_mut()?.rolling.as_mut()
}

/// How bad the worst incident of a trial is, to be compared with the incidents of other trials; `None` if the trial has none, is
/// not valid, or has no answers.
fn worst_incident(stored: &Record, trial: usize, status: TrialStatus) -> Option<Rank> {
    if status != TrialStatus::Valid || !has_answers(stored, trial) {
        return None;
    }
    let found = stored.incidents(trial, late_above_ns(stored), 1).ok()??;
    found.found.worst.iter().map(|incident| incident.rank()).max()
}

/// Whether the messages of a trial have answers, without which there are no incidents.
fn has_answers(stored: &Record, trial: usize) -> bool {
    let plan = &stored.manifest.plan;
    let planned = plan.trials.iter().find(|t| t.id == trial);
    let spec = planned.and_then(|t| plan.conditions.get(t.condition)).map(|condition| &condition.spec);
    spec.is_some_and(|spec| spec.measure.flow().is_none_or(Flow::has_answers)) && stored.has_slots(trial)
}

/// A removed trial of which nothing else is known.
const NOT_VALID: RemovedTrials = RemovedTrials {
    trials: 1,
    not_valid: 1,
    scheduled: 0,
    answered: 0,
    late: 0,
    incidents: 0,
    longest_latency_ns: None,
};

/// Study's limit for late messages, ns.
fn late_above_ns(stored: &Record) -> Option<i64> {
    stored.manifest.plan.report.late_above.map(|limit| limit.0)
}

/// What is known about a trial after its samples were removed.
fn summary(stored: &Record, trial: usize, status: TrialStatus) -> Result<RemovedTrials, RecordError> {
    if status != TrialStatus::Valid {
        return Ok(NOT_VALID);
    }
    let none = RemovedTrials { not_valid: 0, ..NOT_VALID };
    if !has_answers(stored, trial) {
        return Ok(none);
    }
    let Some(of) = stored.incidents(trial, late_above_ns(stored), MOST_INCIDENTS)? else {
        let misses = stored.misses(trial, i64::MAX, stored.manifest.plan.report.miss_window())?;
        return Ok(RemovedTrials { scheduled: misses.messages, ..none });
    };
    Ok(RemovedTrials {
        scheduled: of.slots,
        answered: of.latencies.count(),
        late: of.found.late,
        incidents: of.found.count,
        longest_latency_ns: of.found.worst.iter().filter_map(|incident| incident.worst.0).max(),
        ..none
    })
}

fn add(sum: &mut RemovedTrials, more: &RemovedTrials) {
    sum.trials += more.trials;
    sum.not_valid += more.not_valid;
    sum.scheduled += more.scheduled;
    sum.answered += more.answered;
    sum.late += more.late;
    sum.incidents += more.incidents;
    sum.longest_latency_ns = sum.longest_latency_ns.max(more.longest_latency_ns);
}
