//! Finds why messages were late: the incidents of each condition, and for each incident a ledger that divides its excess
//! among causes.
//!
//! Input: samples, thread tables, and the context switches, wake-ups and interrupts of the record. Output: incidents
//! with ledgers, the sums by cause, the tail that would remain without each cause, the places at which messages were
//! lost, and runs of late messages. The levels that the study requested are never used.

mod away;
mod carriers;
mod conduct;
mod course;
mod delays;
mod drops;
mod executor;
mod gated;
mod guest;
mod handled;
mod hops;
mod interruptions;
mod kernels;
mod ledger;
mod memory;
mod of_trial;
mod other_clock;
mod pace;
mod passage;
mod recordings;
mod remaining;
mod share;
mod shares;
mod slow;
mod stamps;
mod steal;
mod sums;
mod threads;
mod timeline;
mod timers;
mod usual;
mod waits;
mod wake;
mod walk;
mod waterfall;
mod way;
mod while_running;
mod words;

pub use of_trial::{TrialCauses, causes_of_trial};
pub use other_clock::Machine;
pub use while_running::{Elsewhere, Running, RunningCause, RunningCauses};

use crate::clocks::Clocks;
use crate::held;
use crate::parallel;
use crate::pass_error::PassError;
use crate::why::conduct::Conduct;
use crate::why::drops::Drops;
use crate::why::guest::Guest;
use crate::why::handled::Handled;
use crate::why::kernels::Kernel;
use crate::why::ledger::{Entry, Ledger, Timelines, Usual};
use crate::why::other_clock::{Lines, Pong, View, host_clock, is_of_ping, kernel_cpu};
use crate::why::share::Circumstances;
use crate::why::stamps::{Read, Stamps, Wanted};
use crate::why::threads::Threads;
use crate::why::usual::UsualSums;
use std::collections::BTreeMap;
use std::ops::Range;
use tailbound_document::{
    DelayedThread, HeldReport, INCIDENTS_DESCRIBED, IncidentReport, LedgerEntry, Report, ThreadReport, WaterfallReport,
};
use tailbound_model::{Attribution, ReceiveMode, SwitchScope, Switches, TrialSpec};
use tailbound_record::{MOST_INCIDENTS, Manifest, Record, TrialIncidents};
use tailbound_stats::{ClockBounds, Incident, Misses};

/// Each condition has at least this number of its worst incidents in the report, if there are as many.
const LEAST_LISTED: usize = 100;

/// Largest number of incidents of a trial that are explained, and of a condition that the report contains. The conditions
/// share the number, because the page contains all incidents.
fn most_listed(conditions: usize) -> usize {
    (MOST_INCIDENTS / conditions.max(1)).max(LEAST_LISTED)
}

/// Incidents of one trial, with everything that the samples and the recorded events say about them.
pub(crate) struct TrialFacts {
    trial: usize,
    found: Option<TrialIncidents>,
    /// Runs of late and lost messages; without any answer, all messages are lost or not sent.
    misses: Misses,
    /// How the times of the pong relate to those of the ping. In `read` and `seen` they are in the clock of the pong.
    pong: Pong,
    /// Bounds of the clock of the host of the guests in which the ends run, if its events are in `seen`.
    host_clock: Option<ClockBounds>,
    read: Read,
    /// Rows of the messages in `read.times`.
    rows: Vec<Range<u64>>,
    /// Recorded events, or the reason why there are none.
    seen: Result<Vec<Switches>, String>,
    /// The guests in which ends run, if their host was recorded.
    guests: Vec<Guest>,
    /// How the ends send and receive.
    conduct: Conduct,
    /// Kernels of the ping end, of the pong end, and of the host of the guests in which they run.
    kernels: [Kernel; 3],
}

/// An incident with the entries of its ledger.
struct Explained {
    report: IncidentReport,
    /// Rows of the first and of the last message of the incident.
    rows: (u64, u64),
    entries: Vec<Entry>,
    /// For each entry: the thread that was delayed.
    delayed: Vec<DelayedThread>,
}

/// The incidents of a trial, and what its ordinary messages spend their time on.
struct ExplainedTrial {
    incidents: Vec<Explained>,
    usual: UsualSums,
}

/// Finds the incidents of trials with answers, and reads everything that describes them.
pub(crate) fn facts(record: &Record, trials: &[usize], clocks: &Clocks) -> Result<Vec<TrialFacts>, PassError> {
    let plan = &record.manifest.plan;
    let spec_of = |id: usize| plan.trials.iter().find(|t| t.id == id).map(|t| &plan.conditions[t.condition].spec);
    let kernels = kernels::kernels(record);
    parallel::all(trials, |&trial| {
        facts_of(record, trial, (spec_of(trial), &kernels), clocks)
            .map_err(|error| PassError { trial: Some(trial), error })
    })
}

/// Adds the incidents and their causes to each condition.
pub(crate) fn explain(record: &Record, report: &mut Report, facts: &[TrialFacts]) {
    let plan = &record.manifest.plan;
    let most = most_listed(plan.conditions.len());
    let mut conditions = std::mem::take(&mut report.conditions);
    for condition in &mut conditions {
        let trials: Vec<&TrialFacts> = facts.iter().filter(|f| condition.used_trial_ids.contains(&f.trial)).collect();
        let (mut explained, mut usual) = (Vec::new(), UsualSums::default());
        for mut of in trials.iter().filter_map(|t| explained_trial(record, &report.threads, t)) {
            explained.append(&mut of.incidents);
            usual.add(of.usual);
        }
        condition.usual = usual.report();
        sums::add(condition, &trials, &explained, plan.report.miss_window());
        condition.without_cause = remaining::without(condition, &trials, &explained);
        let seen = trials.iter().filter_map(|t| t.seen.as_ref().ok()).flatten();
        condition.recordings = match condition.flow {
            Some(_) if trials.is_empty() => recordings::of_trials(record, &condition.trial_ids),
            _ => recordings::recordings(seen),
        };
        condition.hold_and_release = hold_and_release(record, &trials);
        condition.movements = trials.iter().filter_map(|t| t.conduct.held.movement.clone()).collect();
        // Sums are over the trials of the figures; the worst incidents are also those of older trials.
        let older = facts
            .iter()
            .filter(|f| condition.trial_ids.contains(&f.trial) && record.manifest.is_kept_for_incidents(f.trial));
        let older = older.filter_map(|t| explained_trial(record, &report.threads, t)).flat_map(|of| of.incidents);
        let mut incidents: Vec<IncidentReport> = explained.into_iter().chain(older).map(|e| e.report).collect();
        incidents.sort_by_key(|i| std::cmp::Reverse((i.sustained, i.excess_ns, i.lost)));
        // The incident of the message at which the run ended is described, however many worse ones there are.
        if let Some(at) = incidents.iter().position(|i| ended_run(&record.manifest, i)).filter(|at| *at >= most) {
            incidents.swap(most - 1, at);
        }
        incidents.truncate(most);
        incidents.iter_mut().skip(INCIDENTS_DESCRIBED).for_each(|incident| incident.waterfall = None);
        condition.incidents = incidents;
    }
    report.conditions = conditions;
}

/// The messages of these trials that were held on their way and released together.
fn hold_and_release(record: &Record, trials: &[&TrialFacts]) -> Vec<HeldReport> {
    let slot_0_ns = |id| record.manifest.trials.iter().find(|t| t.id == id).and_then(|t| t.t0_ns).unwrap_or(0);
    let held: Vec<_> = trials.iter().map(|t| (t.trial, slot_0_ns(t.trial), &t.conduct.held)).collect();
    held::report(&held, |leg| trials.iter().any(|trial| trial.conduct.are_sent_again(leg)))
}

/// True if an incident contains the message at which the run ended (`--until`).
fn ended_run(manifest: &Manifest, incident: &IncidentReport) -> bool {
    let message = manifest.until.as_ref().and_then(|until| until.found.as_ref());
    message.is_some_and(|m| m.trial == incident.trial && (incident.begin_ns..=incident.end_ns).contains(&m.due_ns))
}

/// Reads everything about one trial of the condition `spec`.
fn facts_of(
    record: &Record,
    trial: usize,
    (spec, kernels): (Option<&TrialSpec>, &BTreeMap<&str, Kernel>),
    clocks: &Clocks,
) -> Result<TrialFacts, tailbound_record::RecordError> {
    let late_above_ns = record.manifest.plan.report.late_above.map(|limit| limit.0);
    let found = record.incidents(trial, late_above_ns, most_listed(record.manifest.plan.conditions.len()))?;
    let misses = match &found {
        Some(found) => found.misses.clone(),
        None => record.misses(trial, i64::MAX, record.manifest.plan.report.miss_window())?,
    };
    let mut conduct = Conduct::of(&record.manifest, trial, spec);
    let mut wanted = Wanted { launch_ns: conduct.launch_ns, ..Wanted::default() };
    // Without any answer there are no incidents, and all messages are lost or not sent.
    let mut any_lost = true;
    if let Some(found) = &found {
        wanted.messages.extend(found.found.worst.iter().flat_map(rows));
        any_lost = found.found.lost > 0;
    }
    let (seen, pong, host_clock) = seen(record, trial, clocks);
    if let Some(found) = found.as_ref().filter(|_| seen.is_ok() || !wanted.messages.is_empty()) {
        wanted.messages.extend(found.ordinary.iter().map(|o| o.row));
    }
    if let (Some(found), Ok(_)) = (&found, &seen) {
        let period = spec.and_then(|spec| spec.rate.period());
        wanted.times = remaining::rows(found, period.map(|p| p.0));
    }
    // Times of a pong with another clock would have to be converted.
    let executor = spec.filter(|spec| spec.measure.receive() == ReceiveMode::Executor);
    wanted.calls = matches!(pong, Pong::SameClock) && executor.is_some();
    let mut read = match wanted.messages.is_empty() && !any_lost {
        true => Read::default(),
        false => {
            let messages = BTreeMap::new();
            let view =
                View::of(&Lines::middle(&pong, host_clock.as_ref()), seen.as_deref().unwrap_or_default(), &messages);
            let done = record.manifest.trials.iter().find(|done| done.id == trial);
            let drops = Drops::of(&view.seen);
            let drops = if let Some(done) = done { drops.with_trial(done, spec) } else { drops };
            stamps::read(record, trial, &wanted, pong.is_followed(), &drops)?
        }
    };
    let recorded = seen.as_deref().unwrap_or_default();
    let guests = Guest::of(&record.manifest, trial, &pong, recorded);
    let slots = found.as_ref().map_or(0, |found| found.slots);
    conduct.held = spec.map(|spec| held::of(record, trial, spec, slots)).transpose()?.unwrap_or_default();
    conduct.handled = executor.filter(|_| wanted.calls).map(|spec| {
        let is_one_thread = spec.arrangement.is_some_and(|a| a.executors == 1);
        Handled::of(is_one_thread, std::mem::take(&mut read.calls))
    });
    let outer = recorded.iter().find_map(|s| s.host.as_ref()).map(|host| host.name.as_str());
    let is_watched = pong.is_followed() && guest::are_watched(&guests, outer.is_some());
    let kernels = kernels::of_trial(&record.manifest, trial, kernels, (outer, is_watched));
    let is_emulated = |guest: &Guest| kernels[usize::from(!guest.is_of("ping"))].is_emulated;
    let guests = guests
        .into_iter()
        .map(|guest| {
            let is = is_emulated(&guest);
            guest.emulated(is)
        })
        .collect();
    Ok(TrialFacts { trial, found, misses, pong, host_clock, read, rows: wanted.times, seen, guests, conduct, kernels })
}

/// Rows of the messages of an incident that its description needs.
fn rows(incident: &Incident) -> impl Iterator<Item = u64> {
    incident.parts.iter().map(|p| p.row).chain([incident.worst.1])
}

/// Reads the recorded events of a trial; the error is the reason why there are none.
fn seen(record: &Record, trial: usize, clocks: &Clocks) -> (Result<Vec<Switches>, String>, Pong, Option<ClockBounds>) {
    let mut seen: Result<Vec<Switches>, _> = record.switches(trial).into_iter().collect();
    let is_paused = |end| guest::was_paused(&record.manifest, trial, end);
    // Readings before and after the trial say nothing of a clock that stood still in between.
    let host = seen.as_deref().ok().filter(|_| !is_paused("ping")).and_then(host_clock);
    // Without bounds of its clock, events of the host cannot be used.
    seen.iter_mut().filter(|_| host.is_none()).for_each(|seen| seen.retain(|s| s.host.is_none()));
    let stopped = ["ping", "pong"].into_iter().find(|end| is_paused(end));
    let pong = Pong::of(clocks, trial, seen.as_deref().unwrap_or_default()).unless_stopped(stopped);
    let usable = seen.map_err(|e| e.to_string()).and_then(|seen| usable(record, trial, seen, &pong));
    (usable, pong, host)
}

/// The events that can be used; the error is the reason why there are none.
fn usable(record: &Record, trial: usize, mut seen: Vec<Switches>, pong: &Pong) -> Result<Vec<Switches>, String> {
    if !pong.is_followed() {
        seen.retain(|s| is_of_ping(s) || s.host.is_some());
    }
    let refused = seen.iter().find_map(|s| match &s.scope {
        SwitchScope::Nothing(why) => Some(format!("events could not be recorded: {why}")),
        _ => None,
    });
    match refused {
        Some(why) => Err(why),
        None if seen.iter().all(|s| s.scope == SwitchScope::Off) => {
            let trial = record.manifest.plan.trials.iter().find(|t| t.id == trial);
            let spec = trial.and_then(|t| record.manifest.plan.conditions.get(t.condition)).map(|c| &c.spec);
            let off = spec.is_some_and(|spec| spec.attribution == Attribution::Off);
            Err(if off { "the study has `attribution: off`" } else { "no events were recorded in this trial" }
                .to_owned())
        }
        None => Ok(seen),
    }
}

impl TrialFacts {
    /// All events and times in the clock of the ping, if the others are converted with these lines.
    fn view(&self, lines: &Lines) -> View<'_> {
        View::of(lines, self.seen.as_deref().unwrap_or_default(), &self.read.messages)
    }

    /// The threads of the trial, with those that run the guests of the ends.
    fn threads<'a>(&'a self, tables: &'a [ThreadReport], view: &'a View) -> Threads<'a> {
        let names = self.guests.iter().flat_map(|guest| &guest.names).map(|(tid, name)| (*tid, name.clone()));
        let threads = Threads::of(tables, self.trial, &view.seen, &self.pong).with_names(names.collect());
        threads.of_conduct(self.conduct.clone()).of_kernels(self.kernels)
    }

    /// The guests in which ends run, with their pauses as these lines convert them.
    fn guests(&self, lines: &Lines) -> Vec<Guest> {
        self.guests.iter().map(|guest| guest.with_pauses(lines.host.as_ref())).collect()
    }
}

/// The recorded events of a trial as one possible conversion of the pong's times shows them.
struct Sight<'a> {
    found: &'a TrialIncidents,
    messages: &'a BTreeMap<u64, Stamps>,
    known: Circumstances<'a>,
    timelines: Timelines,
    usual: Usual,
}

impl<'a> Sight<'a> {
    fn of(found: &'a TrialIncidents, view: &'a View, known: Circumstances<'a>) -> Sight<'a> {
        let timelines = Timelines::of(&view.seen);
        let ordinary = found.ordinary.iter().filter_map(|o| view.messages.get(&o.row));
        let usual = Usual::of(ordinary, &timelines, &known);
        Sight { found, messages: &view.messages, known, timelines, usual }
    }

    fn ledger(&self, incident: &Incident) -> Ledger {
        let usual = (&self.usual, self.found.rule.median_ns);
        Ledger::of(incident, self.messages, &self.timelines, &self.known, usual)
    }

    fn course(&self, incident: &Incident, pong: &Pong) -> Option<WaterfallReport> {
        let stamps = self.messages.get(&incident.worst.1)?;
        let timeline = self.timelines.covering(stamps.due_ns, stamps.received_ns);
        let waterfall = waterfall::waterfall(stamps, timeline, &self.known, &self.usual);
        let pong_shift_ns = pong.shift_ns((stamps.due_ns, stamps.received_ns));
        Some(WaterfallReport { pong_shift_ns, ..waterfall })
    }
}

/// The ledgers of the incidents of a trial with an excess, in their order; none if no events were recorded. If the pong
/// or the host of guests has another clock, each ledger holds what every possible difference between the clocks gives.
fn ledgers(threads: &[ThreadReport], facts: &TrialFacts, sight: &Sight, spans: &[(i64, i64)]) -> Vec<Option<Ledger>> {
    let worst = || sight.found.found.worst.iter();
    if facts.seen.is_err() {
        return worst().map(|_| None).collect();
    }
    let of = |sight: &Sight| -> Vec<Ledger> { worst().map(|incident| sight.ledger(incident)).collect() };
    let times_ns: Vec<i64> = spans.iter().flat_map(|(begin, end)| [*begin, *end]).collect();
    let lines = Lines::extremes(&facts.pong, facts.host_clock.as_ref(), &times_ns);
    let other = |lines: &Lines| {
        let view = facts.view(lines);
        let threads = facts.threads(threads, &view);
        let guests = facts.guests(lines);
        let known = Circumstances { threads: &threads, seen: &view.seen, incidents: spans, guests: &guests };
        of(&Sight::of(sight.found, &view, known))
    };
    let others: Vec<Vec<Ledger>> = lines.iter().map(other).collect();
    let finished = |(n, (incident, ledger)): (usize, (&Incident, Ledger))| {
        let others: Vec<&Ledger> = others.iter().map(|of_line| &of_line[n]).collect();
        (incident.excess_ns > 0).then(|| ledger.finished(&others, incident.excess_ns))
    };
    worst().zip(of(sight)).enumerate().map(finished).collect()
}

/// The incidents of a trial with their ledgers, and what is usual. `None` if the trial has no answers.
fn explained_trial(record: &Record, tables: &[ThreadReport], facts: &TrialFacts) -> Option<ExplainedTrial> {
    let found = facts.found.as_ref()?;
    let lines = Lines::middle(&facts.pong, facts.host_clock.as_ref());
    let (view, guests) = (facts.view(&lines), facts.guests(&lines));
    let threads = facts.threads(tables, &view);
    let spans: Vec<(i64, i64)> = found.found.worst.iter().map(|i| (i.begin_ns, i.end_ns)).collect();
    let known = Circumstances { threads: &threads, seen: &view.seen, incidents: &spans, guests: &guests };
    let sight = Sight::of(found, &view, known);
    let t0_ns = record.manifest.trials.iter().find(|t| t.id == facts.trial).and_then(|t| t.t0_ns);
    // No trial has more of the incidents that are described.
    let mut ranks: Vec<_> = found.found.worst.iter().map(|i| std::cmp::Reverse(rank(i, found.slots))).collect();
    ranks.sort_unstable();
    ranks.truncate(INCIDENTS_DESCRIBED);
    let last = ranks.last().map(|last| last.0);
    let one = |(incident, ledger): (&Incident, Option<Ledger>)| {
        // An incident of which nothing was recorded has no ledger.
        let ledger = ledger.filter(|l| l.not_seen_ns < incident.excess_ns);
        let with_course = Some(rank(incident, found.slots)) >= last;
        let mut report = described(facts, incident, ledger.as_ref(), &sight);
        report.waterfall = with_course.then(|| sight.course(incident, &facts.pong)).flatten();
        report.text = words::text(&report, t0_ns);
        let entries = ledger.map_or(Vec::new(), |l| l.entries);
        let delayed = entries.iter().map(|entry| delayed(entry, &threads)).collect();
        Explained { report, rows: incident.rows, entries, delayed }
    };
    let ledgers = ledgers(tables, facts, &sight, &spans);
    let incidents = found.found.worst.iter().zip(ledgers).map(one).collect();
    Some(ExplainedTrial { incidents, usual: UsualSums::of(&sight.usual.recorded, &threads) })
}

/// The report of one incident, without its picture and its text.
fn described(facts: &TrialFacts, incident: &Incident, ledger: Option<&Ledger>, sight: &Sight) -> IncidentReport {
    let span = (incident.begin_ns, incident.end_ns);
    let without = ledger.is_none() && incident.excess_ns > 0;
    let seen = facts.seen.as_ref().map(|_| sight.known.seen);
    let worst = sight.messages.get(&incident.worst.1);
    let sees_host = sight.timelines.meeting(span).any(|timeline| !timeline.misses_host());
    IncidentReport {
        trial: facts.trial,
        begin_ns: incident.begin_ns,
        end_ns: incident.end_ns,
        late: incident.late,
        lost: incident.lost,
        worst_slot: worst.map_or(incident.worst.1, |stamps| stamps.slot),
        worst_ns: incident.worst.0,
        leg: worst.and_then(|stamps| sight.usual.worst_leg(stamps)).map(|leg| words::leg_key(leg).to_owned()),
        excess_ns: incident.excess_ns,
        sustained: is_sustained(incident, sight.found.slots),
        unexplained_ns: ledger.map_or(incident.excess_ns, |l| l.unexplained_ns),
        not_seen_ns: ledger.map_or(incident.excess_ns, |l| l.not_seen_ns),
        inconsistent: ledger.is_some_and(|l| l.inconsistent),
        ledger: ledger.map(|l| l.entries.iter().map(|e| entry(e, sight.known.threads)).collect()),
        waterfall: None,
        no_ledger: without.then(|| why_no_ledger(seen, span).to_owned()),
        other_clock: facts.pong.report(span),
        host_clock_width_ns: facts.host_clock.as_ref().filter(|_| sees_host).map(|bounds| width_ns(bounds, span)),
        text: String::new(),
    }
}

/// Largest width of the bounds of the difference between two clocks at the begin and the end of a time span of the ping's clock.
fn width_ns(bounds: &ClockBounds, (from_ns, to_ns): (i64, i64)) -> i64 {
    let at = |at_ns| {
        let [low, high] = bounds.offset_ns(at_ns);
        high - low
    };
    at(from_ns).max(at(to_ns))
}

/// Whether an incident contains more than a tenth of the slots of its trial.
fn is_sustained(incident: &Incident, slots: u64) -> bool {
    (incident.late + incident.lost) * 10 > slots
}

/// Rank of an incident among those of its condition: the larger, the worse.
fn rank(incident: &Incident, slots: u64) -> (bool, i64, u64) {
    (is_sustained(incident, slots), incident.excess_ns, incident.lost)
}

/// Reason why an incident from `begin` to `end` has no ledger.
fn why_no_ledger<'a>(seen: Result<&'a [Switches], &'a String>, (begin, end): (i64, i64)) -> &'a str {
    let seen = match seen {
        Ok(seen) => seen,
        Err(reason) => return reason,
    };
    let any = |spans: &[(i64, i64)]| spans.iter().any(|(from, to)| *from <= end && begin <= *to);
    match () {
        // The kernel dropped them, or the agent discarded them because they were old.
        () if seen.iter().any(|s| s.host.is_none() && any(&s.gaps)) => "the events of this time were dropped",
        () if !seen.iter().all(|s| s.host.is_some() || any(&s.windows)) => {
            "the record does not contain the events of this time"
        }
        () => "the recorded events cannot tell whether the threads slept or waited",
    }
}

fn entry(entry: &Entry, threads: &Threads) -> LedgerEntry {
    let key = &entry.key;
    LedgerEntry {
        cause: key.cause,
        leg: words::leg_key(key.leg).into(),
        end: Some(key.end.to_owned()),
        cpu: key.cpu.map(kernel_cpu),
        thread: key.thread.and_then(|tid| threads.name(tid)),
        by: key.by.clone(),
        ns_low: entry.low_ns,
        ns_high: entry.high_ns,
        evidence: entry.evidence,
    }
}

/// The thread that an entry of a ledger delayed.
fn delayed(entry: &Entry, threads: &Threads) -> DelayedThread {
    let tid = entry.key.thread;
    DelayedThread {
        thread: tid.and_then(|tid| threads.name(tid)),
        role: tid.and_then(|tid| threads.role(tid)),
        cpu: entry.key.cpu.map(kernel_cpu),
        ns: entry.low_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::most_listed;

    #[test]
    fn conditions_share_the_incidents_of_a_report() {
        assert_eq!([0, 1, 4, 10, 50].map(most_listed), [1_000, 1_000, 250, 100, 100]);
    }
}
