//! Findings about the effect of loads: threads that waited for a CPU, and calls and deliveries that were blocked. They
//! are computed from the kernel's counters and from the samples, never from what the study asked for.

use crate::findings::finding::finding;
use crate::findings::instead::{self, Starved};
use std::collections::{BTreeMap, BTreeSet};
use tailbound_analysis::{BLOCKED_MOST_NS, Bound, Waited, blocked_limit_ns, waited};
use tailbound_document::number::time;
use tailbound_document::{ConditionReport, Finding, FindingLevel, LoadReport, Report, Thread, ThreadReport};
use tailbound_model::Metric;

/// A thread is starved if it waited for a CPU for at least this share of the trial, and for at least [`LEAST_NS`].
const SHARE: f64 = 0.1;

const LEAST_NS: i64 = 100_000_000;

/// If only an upper bound of the waiting time is known, the thread is reported if the bound is at least this share of
/// the trial.
const PERHAPS: f64 = 0.5;

/// A call, delivery or wake-up was blocked if it took this number of times as long as usual: as the longest one without
/// a load or, if no condition shows that, as the median one under the load.
const BLOCKED_TIMES: i64 = 3;

/// Code of the finding that no call, delivery or wake-up was blocked under a load.
const NOTHING_BLOCKED: &str = "load_blocked_nothing";

/// Findings about starved threads of each condition, and about the effect of the loads.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let starved: Vec<Finding> = report.conditions.iter().filter_map(|c| starved(report, c)).collect();
    let is_starved = |c: &ConditionReport| starved.iter().any(|f| f.conditions == [c.id]);
    let all: Vec<Finding> = report.conditions.iter().filter_map(|c| effect(report, c, is_starved(c))).collect();
    let (effects, quiet): (Vec<Finding>, Vec<Finding>) = all.into_iter().partition(|f| f.code == "load_blocked");
    starved.into_iter().chain(effects).chain(not_blocked(report, &quiet)).collect()
}

/// One sentence of the report for all conditions in which the load blocked no call, no delivery and no thread.
fn not_blocked(report: &Report, quiet: &[Finding]) -> Option<Finding> {
    let ids: Vec<usize> = quiet.iter().flat_map(|f| f.conditions.iter().copied()).collect();
    let which = match ids.as_slice() {
        [] => return None,
        [one] => report.conditions[*one].name.clone(),
        many => format!("{} conditions with a load", many.len()),
    };
    let limits: BTreeSet<i64> = ids.iter().map(|id| blocked_limit_ns(report.conditions[*id].period_ns)).collect();
    let limit = match limits.iter().next() {
        Some(limit) if limits.len() == 1 => time(*limit as f64),
        _ => format!("a period (or {})", time(BLOCKED_MOST_NS as f64)),
    };
    let text = format!(
        "{which}: nothing was blocked under the load: no call, no delivery and no wake-up took {limit} or longer and \
         {BLOCKED_TIMES} times as long as usual, and no thread was starved."
    );
    Some(finding(FindingLevel::Caution, NOTHING_BLOCKED, text, &ids))
}

/// A thread that waited for a CPU between the first and the last slot, with its process and its waiting time.
struct Waiting<'a> {
    process: &'a ThreadReport,
    thread: &'a Thread,
    waited: Waited,
}

impl Waiting<'_> {
    /// True if the waiting time of the thread is known, exactly or as a lower bound, and is long enough for the thread
    /// to count as starved. A reported thread with the result false still waited at the end of the trial, or only an
    /// upper bound of its waiting time is known.
    fn is_known(&self) -> bool {
        self.waited.bound != Bound::AtMost && is_long(self.waited.ns, self.waited.span_ns)
    }

    /// True if the thread may have waited for most of the trial. In this case only an upper bound of the waiting time
    /// is known, because a wait that began before the first slot is counted completely.
    fn is_perhaps(&self) -> bool {
        let Waited { ns, bound, span_ns, .. } = self.waited;
        bound == Bound::AtMost && ns >= LEAST_NS && ns as f64 >= PERHAPS * span_ns as f64
    }

    /// Longest time in ns for which the thread can have waited for a CPU.
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
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(" Other waiting threads: {}.", others.join(", ")),
    };
    let Waited { ns, bound, cpu_ns, span_ns, later_ns, .. } = worst.waited;
    let (waited, span, ran) = (time(ns as f64), time(span_ns as f64), time(cpu_ns as f64));
    let (perhaps, known) = (worst.waited.bound == Bound::AtMost, worst.is_known());
    let (name, policy) = (&worst.thread.name, &worst.thread.policy);
    let waited = if known || perhaps {
        let bound = bound.words();
        format!(
            "thread `{name}` of the {end} end ({policy}) was ready to run but waited {bound}{waited} of {span}, and ran \
                for {ran}"
        )
    } else {
        let later = time(later_ns as f64);
        format!(
            "thread `{name}` of the {end} end ({policy}) was waiting for a CPU when the trial ended, and still {later} \
                later; the kernel does not say when the wait began; the thread ran for {ran} of {span}"
        )
    };
    let text = format!(
        "{}: {} of CPU {}: {waited}.{others} {}",
        condition.name,
        // A wait that had begun before the first slot is counted completely.
        if perhaps { "perhaps starved" } else { "starved" },
        worst.thread.cpus,
        instead::words(report, Starved { process: worst.process, thread: worst.thread, waited_ns: worst.most_ns() }),
    );
    Some(Finding { evidence: "threads".into(), ..finding(FindingLevel::Caution, "starved", text, &[condition.id]) })
}

/// Finding about what was blocked under the loads of a condition, or that nothing was blocked.
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
    let quiet = without_load(report, condition);
    let mut effects = Vec::new();
    for (metric, text) in [
        (Metric::SendLateness, "the main thread woke up to {} late"),
        (Metric::SendDuration, "the call that publishes took up to {}"),
        (Metric::Out, "delivery on the way out took up to {}"),
        (Metric::Turnaround, "the turnaround in the pong took up to {}"),
        (Metric::Back, "delivery on the way back took up to {}"),
    ] {
        if let Some(worst) = blocked_ns(condition, &quiet, metric) {
            effects.push(text.replace("{}", &time(worst as f64)));
        }
    }
    let counts = &condition.counts;
    if counts.lost > 0 {
        effects.push(format!("{} of {} messages were lost", counts.lost, counts.scheduled));
    }
    let ends = report.trials.iter().filter(|t| trials.contains(&t.id)).flat_map(|t| t.ends.values());
    if let Some(matched) = ends.filter_map(|e| e.matched_after_ns).max().filter(|ns| *ns >= 1_000_000_000) {
        effects.push(format!("the ends found each other only after {}", time(matched as f64)));
    }
    if effects.is_empty() && starved {
        return None;
    }
    let code = if effects.is_empty() { NOTHING_BLOCKED } else { "load_blocked" };
    let text = format!("{}: blocked under the load: {}.", condition.name, effects.join("; "));
    Some(finding(FindingLevel::Caution, code, text, &[condition.id]))
}

/// The longest time of a metric under a load, ns; `None` if nothing was blocked.
fn blocked_ns(condition: &ConditionReport, quiet: &[&ConditionReport], metric: Metric) -> Option<i64> {
    let worst = condition.metric(metric)?.max_ns?;
    let longest = quiet.iter().filter_map(|c| c.metric(metric)?.max_ns).max();
    let median = || condition.metric(metric)?.quantile(0.5)?.value_ns();
    let usual = match longest {
        Some(longest) => longest,
        None if worst >= BLOCKED_MOST_NS => 0,
        None => median()?,
    };
    let long = worst >= blocked_limit_ns(condition.period_ns);
    (long && worst >= usual.saturating_mul(BLOCKED_TIMES)).then_some(worst)
}

/// The conditions without a load that are otherwise like this condition.
fn without_load<'a>(report: &'a Report, condition: &ConditionReport) -> Vec<&'a ConditionReport> {
    let levels = |c: &ConditionReport| -> BTreeMap<String, String> {
        let others = c.levels.iter().filter(|(factor, _)| *factor != "load" && !factor.starts_with("load."));
        others.map(|(factor, level)| (factor.clone(), level.clone())).collect()
    };
    let loaded = |c: &ConditionReport| report.loads.iter().any(|l| c.trial_ids.contains(&l.trial));
    report.conditions.iter().filter(|c| !loaded(c) && levels(c) == levels(condition)).collect()
}
