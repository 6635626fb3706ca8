//! Finds the pattern of each trial under load: one word for the effect of the load. The pattern follows from the
//! discovery time of the ends, M1, M2, M3, M4 and run delays, compared with the trials of the same study without a
//! load, or with the trial's own schedule if there are no such trials. The levels that the study requested are never
//! used.

use crate::main_wait;
use crate::waits::{BLOCKED_MOST_NS, blocked_limit_ns, since_birth_ns};
use std::collections::BTreeMap;
use tailbound_document::number::time;
use tailbound_document::{Course, LoadReport, Report, TrialReport};
use tailbound_model::{Metric, Pattern};
use tailbound_record::Record;

/// Limit in ns for the discovery time: if the ends find each other later than this, discovery was late.
const MEETING_NS: i64 = 1_000_000_000;

/// A figure counts as higher under load if it is at least this many times the figure without a load.
const TIMES: f64 = 3.0;

/// A trial took longer if its duration is more than this many times the expected duration.
const LONGER: f64 = 1.05;

/// The figures of a trial from which its pattern is decided.
struct Figures {
    /// Time until the ends had found each other, in ns; `None` if they never did.
    met_ns: Option<i64>,
    m1_ns: Option<i64>,
    m2: Spread,
    m3: Spread,
    /// Time between two wake-ups minus one period; 0 for stop-and-wait, in which answers wake the sender.
    stood: Spread,
    unanswered: u64,
}

/// Longest and usual time of one metric in a trial.
#[derive(Clone, Copy, Default)]
struct Spread {
    longest_ns: i64,
    /// Median of the shortest times of the trial's columns, in ns.
    usual_ns: i64,
}

impl Spread {
    /// True if the longest of these times reaches `limit_ns` and is clearly above `quiet_ns`, the longest time in trials
    /// without a load. If there is no such trial, the longest time must be above a fixed limit, or clearly above the usual
    /// time in the same trial.
    fn is_blocked(self, limit_ns: i64, quiet_ns: Option<i64>) -> bool {
        let clearly_above = |ns: i64| self.longest_ns as f64 >= TIMES * ns as f64;
        let above = match quiet_ns {
            Some(quiet) => clearly_above(quiet),
            None => self.longest_ns >= BLOCKED_MOST_NS || clearly_above(self.usual_ns),
        };
        self.longest_ns >= limit_ns && above
    }
}

fn figures(report: &Report, trial: &TrialReport) -> Figures {
    let course = trial.course.as_ref();
    let spread = |m| {
        let ranges = || course.into_iter().flat_map(move |c| c.columns(m).iter().flatten());
        let mut lows: Vec<i64> = ranges().map(|r| r.0).collect();
        lows.sort_unstable();
        let usual_ns = lows.get(lows.len() / 2).copied().unwrap_or(0);
        Spread { longest_ns: ranges().map(|r| r.1).max().unwrap_or(0), usual_ns }
    };
    let stood = period_ns(report, trial).map_or(Spread::default(), |period_ns| {
        let Spread { longest_ns, usual_ns } = spread(Metric::WakePeriod);
        Spread { longest_ns: (longest_ns - period_ns).max(0), usual_ns: (usual_ns - period_ns).max(0) }
    });
    let met = trial.ends.values().map(|e| e.matched_after_ns).collect::<Option<Vec<i64>>>();
    Figures {
        met_ns: met.and_then(|met| met.into_iter().max()),
        m1_ns: course.and_then(|c| c.run_time_ns),
        m2: spread(Metric::WakeToSent),
        m3: spread(Metric::RoundTrip),
        stood,
        unanswered: course.map_or(0, |c| c.unanswered.iter().sum()),
    }
}

fn period_ns(report: &Report, trial: &TrialReport) -> Option<i64> {
    report.conditions.get(trial.condition).and_then(|c| c.period_ns)
}

/// Finds the pattern of every trial with a load, by trial id.
pub(crate) fn of_trials(record: &Record, report: &Report) -> BTreeMap<usize, (Pattern, String)> {
    let loaded = |id: usize| report.loads.iter().any(|l| l.trial == id && l.failed.is_none());
    let (under, quiet): (Vec<&TrialReport>, Vec<&TrialReport>) = report.trials.iter().partition(|t| loaded(t.id));
    under.into_iter().filter_map(|t| Some((t.id, pattern(record, report, t, &quiet)?))).collect()
}

fn levels_without_load(report: &Report, trial: &TrialReport) -> Option<BTreeMap<String, String>> {
    let mut levels = report.conditions.get(trial.condition)?.levels.clone();
    levels.retain(|factor, _| factor != "load" && !factor.starts_with("load."));
    Some(levels)
}

/// Longest times of the trials without a load that are otherwise like a trial under load; `None` if there are none.
struct Quiet(Vec<Figures>);

impl Quiet {
    fn most(&self, of: fn(&Figures) -> Option<i64>) -> Option<i64> {
        self.0.iter().filter_map(of).max()
    }
}

fn beside(ns: Option<i64>) -> String {
    ns.map_or(String::new(), |ns| format!(", without a load {}", time(ns as f64)))
}

fn pattern(record: &Record, report: &Report, trial: &TrialReport, quiet: &[&TrialReport]) -> Option<(Pattern, String)> {
    let own = levels_without_load(report, trial);
    let alike = |t: &&&TrialReport| t.course.is_some() && levels_without_load(report, t) == own;
    let quiet = Quiet(quiet.iter().filter(alike).map(|t| figures(report, t)).collect());
    let found = figures(report, trial);
    if found.met_ns.is_none() && trial.finding.is_some() {
        return never_met(report, trial);
    }
    if let Some(starved) = met_late(report, trial, found.met_ns, quiet.most(|f| f.met_ns)) {
        return Some(starved);
    }
    let course = trial.course.as_ref()?;
    let limit_ns = blocked_limit_ns(period_ns(report, trial));
    if let Some(blocked) = blocked(record, report, trial, &found, &quiet) {
        return Some(blocked);
    }
    if let Some(longer) = longer(course, found.m1_ns, quiet.most(|f| f.m1_ns), limit_ns) {
        return Some((Pattern::TotalTimeLonger, longer));
    }
    let quiet_unanswered = quiet.most(|f| Some(f.unanswered as i64));
    if found.unanswered > 0 && quiet_unanswered.is_none_or(|q| found.unanswered as f64 >= TIMES * q as f64) {
        let beside = quiet_unanswered.map_or(String::new(), |n| format!(", without a load {n}"));
        return Some((
            Pattern::MessagesLost,
            format!("{} of {} lost or not sent{beside}", found.unanswered, course.slots),
        ));
    }
    let quiet_m3 = quiet.most(|f| Some(f.m3.longest_ns));
    let m3 = format!("M3 up to {}{}", time(found.m3.longest_ns as f64), beside(quiet_m3));
    let late = found.m3.is_blocked(limit_ns, quiet_m3);
    Some((if late { Pattern::AnswersLate } else { Pattern::NoEffect }, m3))
}

/// Pattern of a trial whose ends never found each other: discovery was starved if a thread waited for a CPU meanwhile.
fn never_met(report: &Report, trial: &TrialReport) -> Option<(Pattern, String)> {
    let delayed = delay_until_met(report, trial.id, false);
    let (ns, name) = delayed.filter(|(ns, _)| *ns >= MEETING_NS && at_work(report, trial.id).next().is_some())?;
    let waited = time(ns as f64);
    let text = format!("the ends never found each other; thread `{name}` waited {waited} for a CPU meanwhile");
    Some((Pattern::DiscoveryStarved, text))
}

/// Pattern of a trial whose ends found each other late: discovery was starved if a load ran then, and if a thread
/// waited for a CPU for half of the time.
fn met_late(
    report: &Report,
    trial: &TrialReport,
    met_ns: Option<i64>,
    quiet_ns: Option<i64>,
) -> Option<(Pattern, String)> {
    let met = met_ns.filter(|met| *met >= MEETING_NS && quiet_ns.is_none_or(|q| *met as f64 >= TIMES * q as f64))?;
    let delayed = delay_until_met(report, trial.id, true).filter(|(ns, _)| 2 * ns >= met);
    let (ns, name) = delayed.filter(|_| was_there(report, trial.id, met))?;
    let text = format!(
        "the ends found each other after {}{}; thread `{name}` waited {} for a CPU meanwhile",
        time(met as f64),
        beside(quiet_ns),
        time(ns as f64)
    );
    Some((Pattern::DiscoveryStarved, text))
}

/// Pattern of a trial in which a send call or the main thread was blocked: starved if context switches show that the
/// main thread waited for a CPU for half of that time.
fn blocked(
    record: &Record,
    report: &Report,
    trial: &TrialReport,
    found: &Figures,
    quiet: &Quiet,
) -> Option<(Pattern, String)> {
    let limit_ns = blocked_limit_ns(period_ns(report, trial));
    let (quiet_m2, quiet_stood) = (quiet.most(|f| Some(f.m2.longest_ns)), quiet.most(|f| Some(f.stood.longest_ns)));
    let stood = found.stood.is_blocked(limit_ns, quiet_stood);
    // A blocked call also delays the next wake-up, by less than the duration of the call.
    let in_call = found.m2.is_blocked(limit_ns, quiet_m2) && !(stood && found.stood.longest_ns > found.m2.longest_ns);
    let (pattern, metric, name, than, ns, quiet) = if in_call {
        (Pattern::PublishBlocked, Metric::WakeToSent, "M2", "", found.m2.longest_ns, quiet_m2)
    } else if stood {
        let ns = found.stood.longest_ns;
        (Pattern::MainThreadBlocked, Metric::WakePeriod, "M4", " beyond a period", ns, quiet_stood)
    } else {
        return None;
    };
    let (starved, waited) = main_waited(record, report, trial.id, metric, ns);
    let text = format!("{name} up to {}{than}{}; {waited}", time(ns as f64), beside(quiet));
    Some((if starved { Pattern::SenderStarved } else { pattern }, text))
}

/// Whether the main thread of the ping certainly waited for a CPU for at least half of the time `ns`, the longest M2 or M4
/// (times between two steps of the send loop) of a trial, and words for the evidence.
fn main_waited(record: &Record, report: &Report, trial: usize, metric: Metric, ns: i64) -> (bool, String) {
    let Some((thread, in_all)) = main_wait::main_thread(report, trial) else {
        return (false, "the waiting time of the main thread is not known".into());
    };
    let all = time(in_all as f64);
    if 2 * in_all < ns {
        return (false, format!("the main thread waited {all} for a CPU in all"));
    }
    let span = main_wait::longest(record, trial, metric);
    match span.and_then(|span| main_wait::waited_ns(record, trial, thread, span)) {
        Some(then) => (
            2 * then >= ns,
            format!("the main thread waited at least {} of this time for a CPU, {all} in all", time(then as f64)),
        ),
        None => (
            false,
            format!("the main thread waited {all} for a CPU in all, and it is not known whether it did in this time"),
        ),
    }
}

fn longer(course: &Course, m1_ns: Option<i64>, quiet: Option<i64>, limit_ns: i64) -> Option<String> {
    let m1 = m1_ns?;
    let due = quiet.or(course.scheduled_ns)?;
    let instead = if quiet.is_some() { "without a load" } else { "its schedule" };
    (m1 as f64 > LONGER * due as f64 && m1 - due >= limit_ns)
        .then(|| format!("M1 {}, {instead} {}", time(m1 as f64), time(due as f64)))
}

/// The loads of a trial that really ran. If a load has a sending and a receiving part, the receiving part is left out,
/// because it does nothing before the sending part sends.
fn at_work(report: &Report, trial: usize) -> impl Iterator<Item = &LoadReport> {
    let began = |l: &&LoadReport| l.failed.is_none() && l.ran_ns > 0 && l.part.as_deref() != Some("receives");
    report.loads.iter().filter(move |l| l.trial == trial).filter(began)
}

/// True if a load began before the ends started to search for each other: the time from the begin of the load to the
/// first slot is at least the discovery time.
fn was_there(report: &Report, trial: usize, met_ns: i64) -> bool {
    at_work(report, trial).any(|l| l.began_after_ns.is_some_and(|ns| -ns >= met_ns))
}

/// The waiting time in ns, and the name, of the thread that waited longest for a CPU before the first slot or, if the
/// ends never found each other, until they gave up.
fn delay_until_met(report: &Report, trial: usize, met: bool) -> Option<(i64, String)> {
    let processes = report.threads.iter().filter(|p| p.trial == trial);
    let threads = processes.flat_map(|p| p.before.iter().chain(p.after.iter().filter(|_| !met)));
    threads.map(|t| (since_birth_ns(t), t.name.clone())).max_by_key(|(ns, _)| *ns)
}
