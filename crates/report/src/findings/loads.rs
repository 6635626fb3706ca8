//! Findings about the loads that ran during the measurement.

use crate::findings::finding::finding;
use crate::tables::loads::busy;
use tailbound_document::number::{count, share, three_digits};
use tailbound_document::{Finding, FindingLevel, LoadReport, Report};

/// One sentence of the report for each load, over all trials with this load.
pub(crate) fn beside(report: &Report) -> Vec<Finding> {
    let key = |l: &LoadReport| (l.run.clone(), l.at.clone(), l.policy.clone(), l.cpus.clone());
    let mut known = Vec::new();
    // The receiving half of a load is described together with the sending half.
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
        n if n == loads.len() => " The load ended before the first slot.".into(),
        n => format!(" In {n} of {} trials the load ended before the first slot.", loads.len()),
    };
    let text = format!(
        "Beside the {} end{place}, the load `{}` ran ({}, CPU {}): the load took {range} % of one CPU.{}{missed}",
        first.at,
        first.run,
        first.policy,
        first.cpus,
        sent(report, loads),
    );
    Some(Finding { evidence: "loads".into(), ..finding(FindingLevel::Caution, "load", text, &conditions) })
}

/// Sentence about the messages of a load, for example ` The load sent 30,000 messages a second (353 Mbit/s), the pong
/// end received 29,990 (0.03 % missing).`
fn sent(report: &Report, loads: &[&LoadReport]) -> String {
    let rate = |of: &[&LoadReport], n: fn(&LoadReport) -> Option<u64>| -> Option<f64> {
        let ran: i64 = of.iter().map(|l| l.ran_ns).sum();
        let sum: u64 = of.iter().map(|l| n(l)).sum::<Option<u64>>()?;
        (ran > 0).then(|| sum as f64 * 1e9 / ran as f64)
    };
    let (Some(sent), Some(bytes)) = (rate(loads, |l| l.messages), rate(loads, |l| l.bytes)) else {
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
    let late =
        if late > 0 { format!("; {} messages were late by a period or more", count(late)) } else { String::new() };
    let megabits = three_digits(bytes * 8.0 / 1e6);
    let arrived = received.unwrap_or("; the number of messages that arrived is not known".into());
    format!(" The load sent {} messages a second ({megabits} Mbit/s of payload){late}{arrived}.", three_digits(sent))
}
