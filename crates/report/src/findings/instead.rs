//! Words about what had the CPUs of a starved thread while the thread waited, as far as the record proves it.
//!
//! Input: CPU times of loads and of measured threads, and the CPUs that they could use. A program is named only for CPU
//! time that certainly lies between the two readings of the starved thread, on CPUs that the starved thread may use.
//! CPU times do not show the order of events, so no sentence says that a program ran in a particular wait.

use std::collections::BTreeSet;
use tailbound_document::number::time;
use tailbound_document::{CauseWord, EndReport, Host, LoadReport, Report, Thread, ThreadReport};
use tailbound_model::{CpuList, Policy};

/// A program is named if its CPU time is at least this share of the wait.
const ENOUGH: f64 = 0.5;

/// A starved thread, with its process.
#[derive(Clone, Copy)]
pub(super) struct Starved<'a> {
    pub process: &'a ThreadReport,
    pub thread: &'a Thread,
    /// Longest time for which the thread can have waited for a CPU, ns.
    pub waited_ns: i64,
}

/// CPU time of a program on the CPUs of a starved thread, between the two readings of that thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Used {
    ns: i64,
    /// False if `ns` is a lower bound, because the program could also run at other times or on other CPUs.
    exact: bool,
}

impl Used {
    fn words(self) -> String {
        format!("{}{}", if self.exact { "" } else { "at least " }, time(self.ns as f64))
    }
}

/// Largest number of programs that a sentence names.
const NAMED: usize = 3;

/// Sentence about the programs that had CPUs for which the end of a starved thread waited while messages were late, if
/// events show such programs.
fn named(report: &Report, starved: Starved<'_>) -> Option<String> {
    let condition = report.conditions.get(report.trial(starved.process.trial)?.condition)?;
    let waited = |cause: CauseWord| {
        matches!(
            cause,
            CauseWord::WaitedForCpu | CauseWord::KernelThread | CauseWord::Instrument | CauseWord::FairServer
        )
    };
    let at_end = |end: &Option<String>| end.as_ref().is_some_and(|end| starved.process.ends.contains(end));
    let causes = condition.causes.iter().filter(|c| waited(c.cause) && at_end(&c.end));
    let mut names: Vec<String> = Vec::new();
    for name in causes.filter_map(|c| Some(format!("`{}`", c.by.as_ref()?.name))) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(NAMED);
    let names = match names.as_slice() {
        [] => return None,
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    };
    Some(format!("While messages were late, threads of this end waited for CPUs that {names} had."))
}

/// Sentence about the load or the measured thread with the most CPU time on the CPUs of a starved thread.
pub(super) fn words(report: &Report, starved: Starved<'_>) -> String {
    let cpus = &starved.thread.cpus;
    let loads = || report.loads.iter().filter(|l| shares_cpus(report, l, starved));
    let load = loads().filter_map(|l| Some((of_load(l, starved)?, l))).max_by_key(|(used, _)| *used);
    let thread = threads(report, starved, cpus).max_by_key(|(used, ..)| *used);
    let enough = |used: Used| used.ns as f64 >= ENOUGH * starved.waited_ns as f64;
    match (load, thread) {
        (Some((used, load)), other) if enough(used) && other.is_none_or(|(o, ..)| o.ns <= used.ns) => format!(
            "In this time the load `{}` ({}) had {} of CPU time on CPU {cpus}.{}",
            load.run,
            load.policy,
            used.words(),
            beside_load(report, load, starved)
        ),
        (_, Some((used, process, thread))) if enough(used) => format!(
            "In this time thread `{}` of the {} end ({}) had {} of CPU time on CPU {cpus}.",
            thread.name,
            process.ends.join(" and "),
            thread.policy,
            used.words(),
        ),
        _ => match loads().max_by_key(|l| l.cpu_ns) {
            Some(load) => format!(
                "The load `{}` ({}) could use CPU {}; its CPU time does not show how much of CPU {cpus} it had in this \
                 time.",
                load.run, load.policy, load.cpus
            ),
            None => named(report, starved)
                .unwrap_or_else(|| "The CPU times in the record do not show what ran there in this time.".into()),
        },
    }
}

/// True if the load ran on the kernel of the starved thread, could use one of its CPUs, and was there while the thread
/// was observed.
fn shares_cpus(report: &Report, load: &LoadReport, Starved { process, thread, .. }: Starved<'_>) -> bool {
    let (Some(all), Some(cpus)) = (parsed(&load.cpus), parsed(&thread.cpus)) else { return false };
    let there = inside_ns(load, process).is_none_or(|ns| ns > 0);
    let here = on_one_kernel(report, load.trial, &load.at, first_end(process));
    load.trial == process.trial && !all.is_disjoint(&cpus) && there && here
}

fn first_end(process: &ThreadReport) -> &str {
    process.ends.first().map_or("", String::as_str)
}

/// True if two ends of a trial ran on the same kernel, so that equal numbers of CPUs mean the same CPUs.
fn on_one_kernel(report: &Report, trial: usize, one: &str, other: &str) -> bool {
    let end = |name: &str| report.trial(trial)?.ends.get(name);
    let same = |a: &EndReport, b: &EndReport| {
        // The name of a clock contains the id of the boot of its kernel.
        a.clock == b.clock && (!a.clock.is_empty() || a.host == b.host)
    };
    one == other || end(one).zip(end(other)).is_some_and(|(a, b)| same(a, b))
}

/// Time for which a load was there between the two readings of a process's threads on the same host, ns; `None` if it is
/// not known when the load or the readings were.
fn inside_ns(load: &LoadReport, process: &ThreadReport) -> Option<i64> {
    let (began, read) = (load.began_ns?, process.read_ns?);
    let (ended, last) = (began + load.ran_ns, read + process.span_ns?);
    Some((ended.min(last) - began.max(read)).max(0))
}

/// CPU time that a load certainly had on the CPUs of a starved thread, between the two readings of the thread. The CPU
/// time of the load is known only for its whole life, on all CPUs that it could use; as much of it as possible is taken
/// to lie elsewhere.
fn of_load(load: &LoadReport, Starved { process, thread, .. }: Starved<'_>) -> Option<Used> {
    let (all, cpus) = (parsed(&load.cpus)?, parsed(&thread.cpus)?);
    let inside = inside_ns(load, process)?;
    let (outside, others) = (load.ran_ns - inside, all.difference(&cpus).count() as i64);
    let elsewhere = outside.saturating_mul(all.len() as i64).saturating_add(inside.saturating_mul(others));
    Some(Used { ns: (load.cpu_ns as i64).saturating_sub(elsewhere).max(0), exact: elsewhere == 0 })
}

/// The other measured threads on the same kernel as the starved thread that could run only on `cpus`, each with the CPU
/// time that it used between the readings of its thread table before and after the trial.
fn threads<'a>(
    report: &'a Report,
    starved: Starved<'a>,
    cpus: &'a str,
) -> impl Iterator<Item = (Used, &'a ThreadReport, &'a Thread)> {
    let (trial, own) = (starved.process.trial, first_end(starved.process));
    let here = move |p: &&ThreadReport| p.trial == trial && on_one_kernel(report, trial, first_end(p), own);
    let all = report.threads.iter().filter(here).flat_map(|p| p.after.iter().map(move |t| (p, t)));
    let other = move |(p, t): &(&ThreadReport, &Thread)| {
        (p.pid, t.tid) != (starved.process.pid, starved.thread.tid)
            && parsed(&t.cpus).zip(parsed(cpus)).is_some_and(|(own, all)| own.is_subset(&all))
    };
    all.filter(other).map(|(p, t)| (used(p, t), p, t))
}

fn used(process: &ThreadReport, thread: &Thread) -> Used {
    let before = process.before.iter().find(|b| b.tid == thread.tid).map_or(0, |b| b.cpu_ns);
    Used { ns: thread.cpu_ns.saturating_sub(before) as i64, exact: true }
}

/// Sentence about the measured threads that had CPU time on a CPU on which a real-time load ran, and about the CPU time
/// that the kernel reserves for time-sharing threads. The sentence does not say whether a thread had its time in pauses of
/// the load or from what the kernel reserves.
fn beside_load(report: &Report, load: &LoadReport, starved: Starved<'_>) -> String {
    let real_time = load.policy.parse().is_ok_and(|policy: Policy| policy.starves());
    if !real_time || parsed(&load.cpus).is_none_or(|cpus| cpus.len() != 1) {
        return String::new();
    }
    let is_real_time = |t: &Thread| t.policy.parse().is_ok_and(|policy: Policy| policy.is_real_time());
    let (mut above, mut sharing) = (0, 0);
    let own = (used(starved.process, starved.thread), starved.process, starved.thread);
    for (used, _, thread) in threads(report, starved, &load.cpus).chain([own]) {
        *(if is_real_time(thread) { &mut above } else { &mut sharing }) += used.ns;
    }
    format!(
        " On CPU {}, the measured real-time threads had {}, the measured time-sharing threads {}; {}.",
        load.cpus,
        time(above as f64),
        time(sharing as f64),
        reserved(report, load)
    )
}

/// What the kernel of a load's host reserves for time-sharing threads beside a real-time load.
fn reserved(report: &Report, load: &LoadReport) -> String {
    // Only facts of the host that ran the load are used.
    let host = report.trial(load.trial).and_then(|t| t.ends.get(&load.at)).map(|end| end.host.as_str());
    let own = |h: &&Host| report.facts.len() == 1 || Some(h.host.as_str()) == host;
    let fact =
        |key: &str| report.facts.iter().filter(own).flat_map(|h| &h.facts).find(|f| f.key == key).map(|f| &f.value);
    let number = |key: &str| fact(key).and_then(serde_json::Value::as_i64);
    // Host settings of the study replace the facts that were read at the begin of the run.
    let settings = report.host_settings.iter().filter(|s| s.trials.contains(&load.trial)).flat_map(|s| &s.settings);
    let there = |at: &str| !at.is_empty() && host.is_some_and(|host| host.starts_with(at));
    let elsewhere = report.host_settings.iter().flat_map(|s| &s.settings).any(|s| there(&s.at));
    let settings = settings.filter(|s| if elsewhere { there(&s.at) } else { s.at.is_empty() });
    let mut set =
        settings.filter(|s| s.what.ends_with("sched_rt_runtime_us") || s.key.ends_with("sched_rt_runtime_us"));
    let runtime_us = set.next().and_then(|s| s.found.parse().ok()).or_else(|| number("sched.rt_runtime_us"));
    let off = runtime_us.is_some_and(|us: i64| us < 0);
    match fact("sched.fair_server").and_then(serde_json::Value::as_bool) {
        Some(true) => match fact("sched.fair_server_runtime_ns").and_then(serde_json::Value::as_str) {
            Some("0") => "the fair server, which reserves CPU time for time-sharing threads, is off".into(),
            Some(runtime) => {
                format!("the fair server of Linux reserves {runtime} ns of each period for time-sharing threads")
            }
            None => "the fair server of Linux (6.12 and later) reserves CPU time for time-sharing threads".into(),
        },
        Some(false) if off => "real-time throttling, which reserves CPU time for time-sharing threads, is off".into(),
        Some(false) => match (runtime_us, number("sched.rt_period_us")) {
            (Some(runtime), Some(period)) => {
                format!("real-time throttling stops real-time threads after {runtime} of each {period} us")
            }
            _ => "real-time throttling reserves CPU time for time-sharing threads".into(),
        },
        None => "how the kernel of this host reserves CPU time for time-sharing threads is not known; \
                `tailbound doctor --rescue-test` finds out"
            .into(),
    }
}

fn parsed(cpus: &str) -> Option<BTreeSet<u32>> {
    cpus.parse::<CpuList>().ok().map(|list| list.0)
}
