//! What became of each trial under load, in a word: decided from when the ends met, M1, M2, M3 and run delays, against
//! the trials of the same study without a load, else against the trial's own schedule. Never from what the study asked for.

use crate::bins::{ELSEWHERE, PublishedReport};
use crate::circumstances::{LoadReport, Thread, TrialReport};
use crate::condition::ConditionReport;
use crate::course::Course;
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use crate::grid::{Column, Grid};
use crate::number::time;
use crate::starved::BLOCKED_NS;
use crate::summary::Summary;
use crate::waits::since_birth_ns;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{Metric, Pattern};

/// Ends that meet later than this met late.
const MEETING_NS: i64 = 1_000_000_000;
/// How many times the same without a load counts as more.
const TIMES: f64 = 3.0;
/// A trial that takes longer than this many times its time took longer.
const LONGER: f64 = 1.05;

/// What became of a trial under load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternReport {
    /// In words: `publish blocked`.
    pub name: String,
    /// The figures that say so.
    pub evidence: String,
}

/// The figures of a trial that patterns are told by.
struct Figures {
    /// How long the ends took to meet; `None` = they never did.
    met_ns: Option<i64>,
    m1_ns: Option<i64>,
    m2_ns: i64,
    m3_ns: i64,
    /// How much longer than a period the longest time between two wake-ups was; 0 for stop-and-wait, which wakes by answers.
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

/// The pattern of every trial that a load ran beside.
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
    // More than a limit, and more than what happens without a load.
    let more =
        |ns: i64, limit: i64, quiet: Option<i64>| ns >= limit && quiet.is_none_or(|q| ns as f64 >= TIMES * q as f64);
    let found = figures(report, trial);

    let delayed = delay_until_met(report, trial.id, found.met_ns.is_some());
    match found.met_ns {
        None if trial.finding.is_some() => {
            let starved = delayed.filter(|(ns, _)| *ns >= MEETING_NS && at_work(report, trial.id).next().is_some());
            return starved.map(|(ns, name)| {
                let text =
                    format!("the ends never met; thread `{name}` waited {} for a CPU meanwhile", time(ns as f64));
                (Pattern::DiscoveryStarved, text)
            });
        }
        Some(met) if was_there(report, trial.id, met) && more(met, MEETING_NS, most(|f| f.met_ns)) => {
            if let Some((ns, name)) = delayed.filter(|(ns, _)| 2 * ns >= met) {
                let (met, waited) = (time(met as f64), time(ns as f64));
                let text = format!(
                    "the ends met after {met}{}; thread `{name}` waited {waited} for a CPU meanwhile",
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
    // A call that is blocked keeps the next wake-up from its time, by less than it takes itself.
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

/// Loads that began. The half that receives does nothing before the other sends.
fn at_work(report: &Report, trial: usize) -> impl Iterator<Item = &LoadReport> {
    let began = |l: &&LoadReport| l.failed.is_none() && l.ran_ns > 0 && l.part.as_deref() != Some("receives");
    report.loads.iter().filter(move |l| l.trial == trial).filter(began)
}

/// A load ran before the ends were there to meet: the first slot came no sooner after that than they took to meet.
fn was_there(report: &Report, trial: usize, met_ns: i64) -> bool {
    at_work(report, trial).any(|l| l.began_after_ns.is_some_and(|ns| -ns >= met_ns))
}

/// The thread that waited longest for a CPU before the first slot; where there was none, until the ends gave up.
fn delay_until_met(report: &Report, trial: usize, met: bool) -> Option<(i64, String)> {
    let processes = report.threads.iter().filter(|p| p.trial == trial);
    let threads = processes.flat_map(|p| p.before.iter().chain(p.after.iter().filter(|_| !met)));
    threads.map(|t| (since_birth_ns(t), t.name.clone())).max_by_key(|(ns, _)| *ns)
}

/// What the ping end's main thread waited for a CPU between the first slot and the last.
fn main_delay(report: &Report, trial: usize) -> i64 {
    let is_main = |t: &&Thread| t.role == "main";
    let process = report.threads.iter().find(|p| p.trial == trial && p.ends.iter().any(|e| e == "ping"));
    let delay = |threads: &[Thread]| threads.iter().find(is_main).map_or(0, |t| t.run_delay_ns);
    process.map_or(0, |p| delay(&p.after).saturating_sub(delay(&p.before)) as i64)
}

/// Trials of a condition by pattern.
fn counts(report: &Report, condition: &ConditionReport) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for pattern in report.trials.iter().filter(|t| t.condition == condition.id).filter_map(|t| t.pattern.as_ref()) {
        *counts.entry(pattern.name.clone()).or_insert(0) += 1;
    }
    counts
}

/// Rows of patterns: their heads, measured conditions with their counts, and published rows.
pub(crate) struct Table<'a> {
    pub heads: Vec<&'static str>,
    pub measured: Vec<(&'a ConditionReport, BTreeMap<String, u64>)>,
    pub published: Vec<&'a PublishedReport>,
}

impl<'a> Table<'a> {
    /// `None` where nothing ran under a load.
    pub fn of(report: &'a Report) -> Option<Table<'a>> {
        let all = report.conditions.iter().map(|c| (c, counts(report, c)));
        let measured: Vec<_> = all.filter(|(_, counts)| !counts.is_empty()).collect();
        let published: Vec<_> = report.published.iter().filter(|p| !p.patterns.is_empty()).collect();
        let rows = || measured.iter().map(|(_, c)| c).chain(published.iter().map(|p| &p.patterns));
        let seen = |p: &Pattern| rows().any(|counts| counts.contains_key(p.words()));
        let heads = Pattern::ALL.into_iter().filter(seen).map(Pattern::words).collect();
        (!measured.is_empty()).then_some(Table { heads, measured, published })
    }
}

/// The count of a pattern as a cell.
pub(crate) fn cell(counts: &BTreeMap<String, u64>, head: &str) -> String {
    counts.get(head).map_or(String::new(), u64::to_string)
}

/// One sentence over all trials under load.
pub(crate) fn finding_of(report: &Report) -> Option<Finding> {
    let table = Table::of(report)?;
    let ids: Vec<usize> = table.measured.iter().map(|(c, _)| c.id).collect();
    let total = |head: &&'static str| -> (&'static str, u64) {
        (*head, table.measured.iter().filter_map(|(_, c)| c.get(*head)).sum::<u64>())
    };
    let parts: Vec<(&str, u64)> = table.heads.iter().map(total).filter(|(_, n)| *n > 0).collect();
    let trials: u64 = parts.iter().map(|(_, n)| n).sum();
    let parts: Vec<String> = parts.iter().map(|(head, n)| format!("{head} {n}")).collect();
    let plural = if trials == 1 { "" } else { "s" };
    let text = format!("Patterns of {trials} trial{plural} under load: {}.", parts.join(", "));
    Some(Finding { evidence: "patterns".into(), ..finding(FindingLevel::Caution, "patterns", text, &ids) })
}

/// The table for a terminal, with its title.
pub(crate) fn table(report: &Report, summary: &Summary) -> Option<(String, Grid)> {
    let table = Table::of(report)?;
    let mut grid = Grid::of_levels_and(summary, table.published.iter().map(|p| format!("* {}", p.name)));
    let in_words = |counts: &BTreeMap<String, u64>| {
        let seen = table.heads.iter().filter_map(|h| Some(format!("{h} {}", counts.get(*h)?)));
        (seen.collect::<Vec<_>>().join(", "), String::new())
    };
    let measured = report.conditions.iter().map(|c| in_words(&counts(report, c)));
    let cells = measured.chain(table.published.iter().map(|p| in_words(&p.patterns))).collect();
    grid.columns.push(Column { head: "trials by pattern".into(), cells, right: false });
    let elsewhere = if table.published.is_empty() { String::new() } else { format!("; * {ELSEWHERE}") };
    Some((format!("what became of the trials under load{elsewhere}"), grid))
}

/// What others said, marked as theirs.
pub(crate) fn said(report: &Report) -> Vec<String> {
    let said = |p: &PublishedReport| Some(format!("{} ({ELSEWHERE}): {}.", p.name, p.text.as_ref()?));
    report.published.iter().filter_map(said).collect()
}
