//! What ran beside the measurement.

use crate::circumstances::LoadReport;
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;

/// CPU time by the time it ran, in percent of one CPU.
pub(crate) fn busy(load: &LoadReport) -> Option<f64> {
    (load.ran_ns > 0).then(|| 100.0 * load.cpu_ns as f64 / load.ran_ns as f64)
}

/// How many in a second.
pub(crate) fn per_second(n: Option<u64>, ran_ns: i64) -> Option<u64> {
    n.filter(|_| ran_ns > 0).map(|n| (n as f64 * 1e9 / ran_ns as f64).round() as u64)
}

/// One sentence for each load, over all the trials that had it.
pub(crate) fn beside(report: &Report) -> Vec<Finding> {
    let key = |l: &LoadReport| (l.run.clone(), l.at.clone(), l.policy.clone(), l.cpus.clone());
    let mut known = Vec::new();
    for load in report.loads.iter().filter(|l| l.failed.is_none()) {
        if !known.contains(&key(load)) {
            known.push(key(load));
        }
    }
    known
        .into_iter()
        .filter_map(|k| one(report, &report.loads.iter().filter(|l| key(l) == k).collect::<Vec<_>>()))
        .collect()
}

fn one(report: &Report, loads: &[&LoadReport]) -> Option<Finding> {
    let first = loads.first()?;
    let busy: Vec<f64> = loads.iter().filter_map(|l| busy(l)).collect();
    let (least, most) = busy.iter().fold((f64::MAX, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
    let range = if format!("{least:.0}") == format!("{most:.0}") {
        format!("{most:.0}")
    } else {
        format!("{least:.0} to {most:.0}")
    };
    let mut conditions: Vec<usize> = loads.iter().filter_map(|l| Some(report.trial(l.trial)?.condition)).collect();
    conditions.sort_unstable();
    conditions.dedup();
    let place = match conditions.as_slice() {
        all if all.len() == report.conditions.len() => String::new(),
        [one] => format!(" of {}", report.conditions[*one].name),
        several => format!(" in {} conditions", several.len()),
    };
    let before = |l: &&&LoadReport| l.began_after_ns.is_some_and(|began| began + l.ran_ns <= 0);
    let missed = match loads.iter().filter(before).count() {
        0 => String::new(),
        n if n == loads.len() => " It was over before the first slot.".into(),
        n => format!(" In {n} of {} trials it was over before the first slot.", loads.len()),
    };
    let text = format!(
        "Beside the {} end{place} ran the load `{}` ({}, CPU {}): it took {range} % of one CPU.{missed}",
        first.at, first.run, first.policy, first.cpus,
    );
    Some(Finding { evidence: "loads".into(), ..finding(FindingLevel::Caution, "load", text, &conditions) })
}
