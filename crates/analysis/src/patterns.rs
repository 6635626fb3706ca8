//! Finds the pattern of each trial under load: one word for the effect of the load. The pattern follows from the
//! discovery time of the ends, M1, M2, M3, M4 and run delays, compared with the trials of the same study without a
//! load, or with the trial's own schedule if there are no such trials. The levels that the study requested are never
//! used.

use crate::waits::{BLOCKED_NS, since_birth_ns};
use std::collections::BTreeMap;
use tailbound_document::number::time;
use tailbound_document::{Course, LoadReport, Report, Thread, TrialReport};
use tailbound_model::{Metric, Pattern};

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
    m2_ns: i64,
    m3_ns: i64,
    /// Longest time between two wake-ups minus one period, in ns; 0 for stop-and-wait, in which answers wake the
    /// sender.
    stood_ns: i64,
    unanswered: u64,
}

fn figures(report: &Report, trial: &TrialReport) -> Figures {
    let course = trial.course.as_ref();
    let most = |m| course.and_then(|c| c.columns(m).iter().flatten().map(|r| r.1).max()).unwrap_or(0);
    let period_ns = report.conditions.get(trial.condition).and_then(|c| c.period_ns);
    let met = trial.ends.values().map(|e| e.matched_after_ns).collect::<Option<Vec<i64>>>();
    Figures {
        met_ns: met.and_then(|met| met.into_iter().max()),
        m1_ns: course.and_then(|c| c.run_time_ns),
        m2_ns: most(Metric::WakeToSent),
        m3_ns: most(Metric::RoundTrip),
        stood_ns: period_ns.map_or(0, |period_ns| (most(Metric::WakePeriod) - period_ns).max(0)),
        unanswered: course.map_or(0, |c| c.unanswered.iter().sum()),
    }
}

/// Finds the pattern of every trial with a load, by trial id.
pub(crate) fn of_trials(report: &Report) -> BTreeMap<usize, (Pattern, String)> {
    let loaded = |id: usize| report.loads.iter().any(|l| l.trial == id && l.failed.is_none());
    let (under, quiet): (Vec<&TrialReport>, Vec<&TrialReport>) = report.trials.iter().partition(|t| loaded(t.id));
    under.into_iter().filter_map(|t| Some((t.id, pattern(report, t, &quiet)?))).collect()
}

fn levels_without_load(report: &Report, trial: &TrialReport) -> Option<BTreeMap<String, String>> {
    let mut levels = report.conditions.get(trial.condition)?.levels.clone();
    levels.retain(|factor, _| factor != "load" && !factor.starts_with("load."));
    Some(levels)
}

fn pattern(report: &Report, trial: &TrialReport, quiet: &[&TrialReport]) -> Option<(Pattern, String)> {
    let own = levels_without_load(report, trial);
    let alike = |t: &&&TrialReport| t.course.is_some() && levels_without_load(report, t) == own;
    let quiet: Vec<Figures> = quiet.iter().filter(alike).map(|t| figures(report, t)).collect();
    let most = |of: fn(&Figures) -> Option<i64>| quiet.iter().filter_map(of).max();
    let beside = |ns: Option<i64>| ns.map_or(String::new(), |ns| format!(", without a load {}", time(ns as f64)));
    // True if a time is above a limit, and clearly above the same time without a load.
    let more =
        |ns: i64, limit: i64, quiet: Option<i64>| ns >= limit && quiet.is_none_or(|q| ns as f64 >= TIMES * q as f64);
    let found = figures(report, trial);

    let delayed = delay_until_met(report, trial.id, found.met_ns.is_some());
    match found.met_ns {
        None if trial.finding.is_some() => {
            let starved = delayed.filter(|(ns, _)| *ns >= MEETING_NS && at_work(report, trial.id).next().is_some());
            return starved.map(|(ns, name)| {
                let text = format!(
                    "the ends never found each other; thread `{name}` waited {} for a CPU meanwhile",
                    time(ns as f64)
                );
                (Pattern::DiscoveryStarved, text)
            });
        }
        Some(met) if was_there(report, trial.id, met) && more(met, MEETING_NS, most(|f| f.met_ns)) => {
            if let Some((ns, name)) = delayed.filter(|(ns, _)| 2 * ns >= met) {
                let (met, waited) = (time(met as f64), time(ns as f64));
                let text = format!(
                    "the ends found each other after {met}{}; thread `{name}` waited {waited} for a CPU meanwhile",
                    beside(most(|f| f.met_ns))
                );
                return Some((Pattern::DiscoveryStarved, text));
            }
        }
        _ => {}
    }
    let course = trial.course.as_ref()?;
    let (quiet_m2, quiet_stood) = (most(|f| Some(f.m2_ns)), most(|f| Some(f.stood_ns)));
    let stood = more(found.stood_ns, BLOCKED_NS, quiet_stood);
    // A blocked call also delays the next wake-up, by less than the duration of the call.
    let in_call = more(found.m2_ns, BLOCKED_NS, quiet_m2) && !(stood && found.stood_ns > found.m2_ns);
    let blocked = if in_call {
        Some((Pattern::PublishBlocked, "M2", "", found.m2_ns, quiet_m2))
    } else {
        stood.then_some((Pattern::MainThreadBlocked, "M4", " beyond a period", found.stood_ns, quiet_stood))
    };
    if let Some((pattern, metric, than, ns, quiet)) = blocked {
        let waited = main_delay(report, trial.id);
        let text = format!(
            "{metric} up to {}{than}{}; the main thread waited {} for a CPU in all",
            time(ns as f64),
            beside(quiet),
            time(waited as f64)
        );
        return Some((if 2 * waited >= ns { Pattern::SenderStarved } else { pattern }, text));
    }
    if let Some(longer) = longer(course, found.m1_ns, most(|f| f.m1_ns)) {
        return Some((Pattern::TotalTimeLonger, longer));
    }
    let quiet_unanswered = most(|f| Some(f.unanswered as i64));
    if more(found.unanswered as i64, 1, quiet_unanswered) {
        let beside = quiet_unanswered.map_or(String::new(), |n| format!(", without a load {n}"));
        return Some((
            Pattern::MessagesLost,
            format!("{} of {} never answered or never sent{beside}", found.unanswered, course.slots),
        ));
    }
    let quiet_m3 = most(|f| Some(f.m3_ns));
    let m3 = format!("M3 up to {}{}", time(found.m3_ns as f64), beside(quiet_m3));
    let late = more(found.m3_ns, BLOCKED_NS, quiet_m3);
    Some((if late { Pattern::AnswersLate } else { Pattern::NoEffect }, m3))
}

fn longer(course: &Course, m1_ns: Option<i64>, quiet: Option<i64>) -> Option<String> {
    let m1 = m1_ns?;
    let due = quiet.or(course.scheduled_ns)?;
    let instead = if quiet.is_some() { "without a load" } else { "its schedule" };
    (m1 as f64 > LONGER * due as f64 && m1 - due >= BLOCKED_NS)
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

/// Time for which the main thread of the ping end waited for a CPU between the first and the last slot, in ns.
fn main_delay(report: &Report, trial: usize) -> i64 {
    let is_main = |t: &&Thread| t.role == "main";
    let process = report.threads.iter().find(|p| p.trial == trial && p.ends.iter().any(|e| e == "ping"));
    let delay = |threads: &[Thread]| threads.iter().find(is_main).map_or(0, |t| t.run_delay_ns);
    process.map_or(0, |p| delay(&p.after).saturating_sub(delay(&p.before)) as i64)
}
