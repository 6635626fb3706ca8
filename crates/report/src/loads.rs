//! What ran beside the measurement.

use crate::circumstances::LoadReport;
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use crate::number::{count, share, three_digits};

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
    // A half that receives is told with the one that sends.
    let told = |l: &&LoadReport| l.failed.is_none() && l.part.as_deref() != Some("receives");
    for load in report.loads.iter().filter(told) {
        if !known.contains(&key(load)) {
            known.push(key(load));
        }
    }
    known
        .into_iter()
        .filter_map(|k| one(report, &report.loads.iter().filter(|l| told(l) && key(l) == k).collect::<Vec<_>>()))
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
        "Beside the {} end{place} ran the load `{}` ({}, CPU {}): it took {range} % of one CPU.{}{missed}",
        first.at,
        first.run,
        first.policy,
        first.cpus,
        sent(report, loads),
    );
    Some(Finding { evidence: "loads".into(), ..finding(FindingLevel::Caution, "load", text, &conditions) })
}

/// ` It sent 30,000 messages a second (353 Mbit/s), the pong end received 29,990 (0.03 % missing).`
fn sent(report: &Report, loads: &[&LoadReport]) -> String {
    let rate = |of: &[&LoadReport], n: fn(&LoadReport) -> Option<u64>| -> Option<f64> {
        let ran: i64 = of.iter().map(|l| l.ran_ns).sum();
        let sum: u64 = of.iter().map(|l| n(l)).sum::<Option<u64>>()?;
        (ran > 0).then(|| sum as f64 * 1e9 / ran as f64)
    };
    let (Some(sent), Some(octets)) = (rate(loads, |l| l.messages), rate(loads, |l| l.octets)) else {
        return String::new();
    };
    let halves = |l: &&LoadReport| {
        l.part.as_deref() == Some("receives")
            && loads.iter().any(|s| s.trial == l.trial && s.run == l.run && s.at != l.at)
    };
    let receivers: Vec<&LoadReport> = report.loads.iter().filter(halves).collect();
    let received = receivers.first().map(|first| {
        let sum = |n: fn(&LoadReport) -> Option<u64>| receivers.iter().filter_map(|l| n(l)).sum::<u64>();
        let (came, missing) = (sum(|l| l.messages), sum(|l| l.missing));
        let missing = match missing {
            0 => "none missing".to_owned(),
            n => format!("{} missing ({})", count(n), share(n, came + n)),
        };
        format!("; {} came to the {} end, {missing}", count(came), first.at)
    });
    let late: u64 = loads.iter().filter_map(|l| l.late).sum();
    let late = if late > 0 { format!("; {} of them late by a period or more", count(late)) } else { String::new() };
    let megabits = three_digits(octets * 8.0 / 1e6);
    let told = received.unwrap_or("; what came of them is not known".into());
    format!(" It sent {} messages a second ({megabits} Mbit/s of payload){late}{told}.", three_digits(sent))
}
