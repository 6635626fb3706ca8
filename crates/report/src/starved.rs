//! What a load did to the run: threads that waited for a CPU, and what was blocked by it. Told from the kernel's counts
//! and from the samples alone, never from what the study asked for.

use crate::circumstances::{LoadReport, Thread, ThreadReport};
use crate::condition::ConditionReport;
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use crate::loads::busy;
use crate::number::time;
use crate::waits::{Bound, Waited, waited};

/// A thread is starved when it waited for a CPU for at least this share of the trial, and this long.
const SHARE: f64 = 0.1;
const LEAST_NS: i64 = 100_000_000;
/// Where no more is known than that it waited no longer, it is told from this share on.
const PERHAPS: f64 = 0.5;
/// What takes this long was blocked.
pub(crate) const BLOCKED_NS: i64 = 100_000_000;

/// Code of the finding that says so.
const NOTHING_BLOCKED: &str = "load_blocked_nothing";

/// Starved threads by condition, and what the loads came to.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let starved: Vec<Finding> = report.conditions.iter().filter_map(|c| starved(report, c)).collect();
    let is_starved = |c: &ConditionReport| starved.iter().any(|f| f.conditions == [c.id]);
    let all: Vec<Finding> = report.conditions.iter().filter_map(|c| effect(report, c, is_starved(c))).collect();
    let (effects, quiet): (Vec<Finding>, Vec<Finding>) = all.into_iter().partition(|f| f.code == "load_blocked");
    starved.into_iter().chain(effects).chain(not_blocked(report, &quiet)).collect()
}

/// One sentence for all conditions in which nothing was blocked.
fn not_blocked(report: &Report, quiet: &[Finding]) -> Option<Finding> {
    let ids: Vec<usize> = quiet.iter().flat_map(|f| f.conditions.iter().copied()).collect();
    let which = match ids.as_slice() {
        [] => return None,
        [one] => report.conditions[*one].name.clone(),
        many => format!("{} conditions with a load", many.len()),
    };
    let text = format!(
        "{which}: nothing was blocked under the load: no call, no delivery and no wake-up took {} or longer, and no thread was starved.",
        time(BLOCKED_NS as f64)
    );
    Some(finding(FindingLevel::Caution, NOTHING_BLOCKED, text, &ids))
}

/// A thread that waited, between the first slot and the last.
struct Waiting<'a> {
    process: &'a ThreadReport,
    thread: &'a Thread,
    waited: Waited,
}

impl Waiting<'_> {
    /// How long it waited is known, and long; otherwise it waited at the end, nobody knows since when.
    fn is_known(&self) -> bool {
        self.waited.bound != Bound::AtMost && is_long(self.waited.ns, self.waited.span_ns)
    }

    /// It may have waited for most of the time: a wait that had begun before the first slot is counted whole.
    fn is_perhaps(&self) -> bool {
        let Waited { ns, bound, span_ns, .. } = self.waited;
        bound == Bound::AtMost && ns >= LEAST_NS && ns as f64 >= PERHAPS * span_ns as f64
    }

    /// The most that it may have waited.
    fn most_ns(&self) -> i64 {
        if self.is_known() || self.waited.bound == Bound::AtMost {
            self.waited.ns
        } else {
            self.waited.span_ns - self.waited.cpu_ns
        }
    }
}

fn is_long(ns: i64, span_ns: i64) -> bool {
    ns >= LEAST_NS && ns as f64 >= SHARE * span_ns as f64
}

fn waiting<'a>(report: &'a Report, condition: &ConditionReport) -> Vec<Waiting<'a>> {
    let of_condition = |t: &&ThreadReport| report.trial(t.trial).is_some_and(|trial| trial.condition == condition.id);
    let mut found = Vec::new();
    for process in report.threads.iter().filter(of_condition) {
        for thread in &process.after {
            let Some(waited) = waited(process, thread) else { continue };
            let waiting = Waiting { process, thread, waited };
            let open = waited.open && is_long(waiting.most_ns(), waited.span_ns);
            if waiting.is_known() || open || waiting.is_perhaps() {
                found.push(waiting);
            }
        }
    }
    found.sort_by_key(|w| (!w.is_known(), std::cmp::Reverse(w.most_ns())));
    found
}

fn starved(report: &Report, condition: &ConditionReport) -> Option<Finding> {
    let waiting = waiting(report, condition);
    let worst = waiting.first()?;
    let end = worst.process.ends.join(" and ");
    let mut others: Vec<&str> =
        waiting.iter().map(|w| w.thread.name.as_str()).filter(|n| *n != worst.thread.name).collect();
    others.sort_unstable();
    others.dedup();
    let others = if others.is_empty() { String::new() } else { format!(" So were {}.", others.join(", ")) };
    let Waited { ns, bound, cpu_ns, span_ns, later_ns, .. } = worst.waited;
    let (waited, span, ran) = (time(ns as f64), time(span_ns as f64), time(cpu_ns as f64));
    let (perhaps, known) = (worst.waited.bound == Bound::AtMost, worst.is_known());
    let waited = if known || perhaps {
        format!("was ready to run but waited {}{waited} of {span}, and ran for {ran}", bound.words())
    } else {
        let later = time(later_ns as f64);
        format!(
            "was waiting for a CPU when the trial ended, and still {later} later; since when the kernel does not say, and it \
             ran for {ran} of {span}"
        )
    };
    let text = format!(
        "{}: {} of CPU {}: thread `{}` of the {end} end ({}) {waited}.{others} {}",
        condition.name,
        // A wait that had begun before the first slot is counted whole.
        if perhaps { "perhaps starved" } else { "starved" },
        worst.thread.cpus,
        worst.thread.name,
        worst.thread.policy,
        instead(report, worst),
    );
    Some(Finding { evidence: "threads".into(), ..finding(FindingLevel::Caution, "starved", text, &[condition.id]) })
}

/// What ran meanwhile, as far as it is known: the most of all loads and measured threads of that trial on those CPUs.
fn instead(report: &Report, worst: &Waiting<'_>) -> String {
    let trial = worst.process.trial;
    let cpus = &worst.thread.cpus;
    let load = report.loads.iter().filter(|l| l.trial == trial && overlap(&l.cpus, cpus)).max_by_key(|l| l.cpu_ns);
    let thread = |(p, t): &(&ThreadReport, &Thread)| (p.pid, t.tid) != (worst.process.pid, worst.thread.tid);
    let threads = report.threads.iter().filter(|p| p.trial == trial).flat_map(|p| p.after.iter().map(move |t| (p, t)));
    let used = |(p, t): &(&ThreadReport, &Thread)| {
        t.cpu_ns.saturating_sub(p.before.iter().find(|b| b.tid == t.tid).map_or(0, |b| b.cpu_ns))
    };
    let thread = threads.filter(thread).filter(|(_, t)| overlap(&t.cpus, cpus)).max_by_key(used);
    // Half of the wait is the least that something must have run to be named as its cause.
    let enough = |ns: u64| ns as f64 >= 0.5 * worst.most_ns() as f64;
    match (load, thread) {
        (Some(load), other) if enough(load.cpu_ns) && other.is_none_or(|t| used(&t) <= load.cpu_ns) => {
            format!(
                "Meanwhile the load `{}` ({}) had {} of it.{}",
                load.run,
                load.policy,
                time(load.cpu_ns as f64),
                rescue(report, load)
            )
        }
        (_, Some((process, thread))) if enough(used(&(process, thread))) => format!(
            "Meanwhile thread `{}` of the {} end ({}) had {} of it.",
            thread.name,
            process.ends.join(" and "),
            thread.policy,
            time(used(&(process, thread)) as f64)
        ),
        _ => "What ran instead is not in the record.".into(),
    }
}

/// What the kernel kept back from a load that would have taken all.
fn rescue(report: &Report, load: &LoadReport) -> String {
    let real_time = load.policy.starts_with("rr ") || load.policy.starts_with("fifo ");
    let (Some(busy), true) = (busy(load), real_time && !load.cpus.contains([',', '-'])) else { return String::new() };
    // Of the kernel that ran it.
    let host = report.trial(load.trial).and_then(|t| t.ends.get(&load.at)).map(|end| end.host.as_str());
    let own = |h: &&crate::circumstances::Host| report.facts.len() == 1 || Some(h.host.as_str()) == host;
    let fact =
        |key: &str| report.facts.iter().filter(own).flat_map(|h| &h.facts).find(|f| f.key == key).map(|f| &f.value);
    let number = |key: &str| fact(key).and_then(serde_json::Value::as_i64);
    // What the study has set goes before what was found when the run began.
    let settings = report.host_settings.iter().filter(|s| s.trials.contains(&load.trial)).flat_map(|s| &s.settings);
    let there = |at: &str| !at.is_empty() && host.is_some_and(|host| host.starts_with(at));
    let elsewhere = report.host_settings.iter().flat_map(|s| &s.settings).any(|s| there(&s.at));
    let settings = settings.filter(|s| if elsewhere { there(&s.at) } else { s.at.is_empty() });
    let mut set =
        settings.filter(|s| s.what.ends_with("sched_rt_runtime_us") || s.key.ends_with("sched_rt_runtime_us"));
    let runtime_us = set.next().and_then(|s| s.found.parse().ok()).or_else(|| number("sched.rt_runtime_us"));
    let off = runtime_us.is_some_and(|us: i64| us < 0);
    let rest = 100.0 - busy.min(100.0);
    let nobody = |what: &str| format!(" Something else had the {rest:.0} % that it did not have: {what} is off.");
    let who = match fact("sched.fair_server").and_then(serde_json::Value::as_bool) {
        Some(true) => match fact("sched.fair_server_runtime_ns").and_then(serde_json::Value::as_str) {
            Some("0") => return nobody("the fair server"),
            Some(runtime) => format!("the fair server of Linux keeps {runtime} ns of each period for such threads"),
            None => "the fair server of Linux (6.12 and later) keeps time for such threads".into(),
        },
        Some(false) if off => return nobody("real-time throttling"),
        Some(false) => match (runtime_us, number("sched.rt_period_us")) {
            (Some(runtime), Some(period)) => {
                format!("real-time throttling stops the load after {runtime} of each {period} us")
            }
            _ => "real-time throttling keeps time for such threads".into(),
        },
        None => {
            "how the kernel keeps time for such threads is not known here; `tailbound doctor --rescue-test` finds out"
                .into()
        }
    };
    format!(" The {rest:.0} % that it did not have are the rescue of time-sharing threads: {who}.")
}

/// What was blocked while there were loads, or that nothing was.
fn effect(report: &Report, condition: &ConditionReport, starved: bool) -> Option<Finding> {
    let trials: Vec<usize> = report.trials.iter().filter(|t| t.condition == condition.id).map(|t| t.id).collect();
    let loads: Vec<&LoadReport> = report
        .loads
        .iter()
        .filter(|l| trials.contains(&l.trial) && l.failed.is_none() && l.began_after_ns.is_some())
        .collect();
    if loads.is_empty() {
        return None;
    }
    let max = |m: &Option<crate::condition::MetricReport>| m.as_ref().and_then(|m| m.max_ns).unwrap_or(0);
    let mut effects = Vec::new();
    for (what, worst) in [
        ("the main thread woke up to", max(&condition.send_lateness)),
        ("the call that publishes took up to", max(&condition.send_duration)),
        ("delivery on the way out took up to", max(&condition.out)),
        ("the pong took up to", max(&condition.turnaround)),
        ("delivery on the way back took up to", max(&condition.back)),
    ] {
        if worst >= BLOCKED_NS {
            let late = if what.ends_with("woke up to") { " late" } else { "" };
            effects.push(format!("{what} {}{late}", time(worst as f64)));
        }
    }
    let counts = &condition.counts;
    if counts.lost > 0 {
        effects.push(format!("{} of {} messages were never answered", counts.lost, counts.scheduled));
    }
    let ends = report.trials.iter().filter(|t| trials.contains(&t.id)).flat_map(|t| t.ends.values());
    if let Some(matched) = ends.filter_map(|e| e.matched_after_ns).max().filter(|ns| *ns >= 1_000_000_000) {
        effects.push(format!("the ends met only after {}", time(matched as f64)));
    }
    if effects.is_empty() && starved {
        return None;
    }
    let code = if effects.is_empty() { NOTHING_BLOCKED } else { "load_blocked" };
    let text = format!("{}: blocked under the load: {}.", condition.name, effects.join("; "));
    Some(finding(FindingLevel::Caution, code, text, &[condition.id]))
}

/// Whether two CPU lists share a CPU.
fn overlap(one: &str, other: &str) -> bool {
    let parse = |text: &str| text.parse::<tailbound_model::CpuList>().ok();
    matches!((parse(one), parse(other)), (Some(a), Some(b)) if !a.0.is_disjoint(&b.0))
}
