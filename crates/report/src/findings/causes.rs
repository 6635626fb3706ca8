//! Makes the findings about the incidents of a condition: how much time late messages took beyond the usual, how much of
//! it each cause accounts for, and the tail that would remain without the largest cause.

use crate::cause_words::cause_words;
use crate::findings::finding::finding;
use crate::tables::remaining;
use tailbound_analysis::TrialCauses;
use tailbound_document::number::{count, time};
use tailbound_document::{CauseShare, ConditionReport, Finding, FindingLevel, IncidentTotals, Report};

/// Largest number of causes in the finding.
const NAMED: usize = 4;
/// Largest number of conditions with a finding about the causes of their late messages.
const CONDITIONS: usize = 4;
/// A cause with a smaller share of the excess is not named.
const LEAST_SHARE: f64 = 0.005;

/// Findings about the incidents of each condition, the condition with the largest excess first, and about every condition
/// in which one incident lasts for a large part of a trial. Conditions with smaller excesses are counted in one sentence.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let of = |ids: &[usize], text| Finding {
        evidence: "legs".into(),
        ..finding(FindingLevel::Caution, "causes", text, ids)
    };
    let mut all: Vec<Finding> = report.conditions.iter().filter_map(|c| Some(of(&[c.id], sustained(c)?))).collect();
    let mut late: Vec<(i64, &ConditionReport)> =
        report.conditions.iter().map(|c| (excess_ns(c), c)).filter(|(ns, _)| *ns > 0).collect();
    late.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    // One condition is no longer than the sentence about it.
    let named = if late.len() == CONDITIONS + 1 { late.len() } else { late.len().min(CONDITIONS) };
    let (named, others) = late.split_at(named);
    all.extend(named.iter().filter_map(|(_, c)| Some(of(&[c.id], total(c)?))));
    if let Some((most_ns, _)) = others.first() {
        let text = format!(
            "Late messages of {} more conditions took up to {} beyond the usual; their causes are in the document \
             (`conditions[].causes`).",
            count(others.len() as u64),
            time(*most_ns as f64)
        );
        let ids: Vec<usize> = others.iter().map(|(_, c)| c.id).collect();
        all.push(of(&ids, text));
    }
    all
}

/// Time that the late messages of a condition took beyond the usual, ns.
fn excess_ns(condition: &ConditionReport) -> i64 {
    condition.incident_totals.map_or(0, |totals| totals.excess_ns)
}

fn sustained(condition: &ConditionReport) -> Option<String> {
    // A trial that was kept for its worst incident does not show what is usual.
    let incident = condition.incidents.iter().find(|i| i.sustained && condition.used_trial_ids.contains(&i.trial))?;
    Some(format!(
        "{}: {} of consecutive late or lost messages are one incident with more than a tenth of the slots of trial {}: this is the \
         usual behaviour of the condition, and not a rare event. {}",
        condition.name,
        time((incident.end_ns - incident.begin_ns) as f64),
        incident.trial,
        incident.text
    ))
}

/// Finding about the causes of the late messages of one condition.
pub(crate) fn total(condition: &ConditionReport) -> Option<String> {
    let totals = condition.incident_totals.filter(|t| t.excess_ns > 0)?;
    let mut text = format!("{}: {}", condition.name, beyond(totals));
    if totals.covered_ns == 0 {
        let why = condition.incidents.iter().find_map(|i| i.no_ledger.as_deref());
        return Some(format!("{text}. No cause is known: {}.", why.unwrap_or("no events were recorded for them")));
    }
    text.push_str(&shares(totals, &condition.causes));
    remaining::finding(condition).iter().for_each(|without| text.push_str(&format!(" {without}")));
    Some(text)
}

/// The shares of the largest causes in the time of incidents, and of what is unexplained, after the sum of this time.
fn shares(totals: IncidentTotals, causes: &[CauseShare]) -> String {
    let mut text = String::new();
    if totals.covered_ns < totals.excess_ns {
        text.push_str(&format!("; causes were looked for in {} of it", time(totals.covered_ns as f64)));
    }
    text.push_str(": ");
    let share = |share: f64| format!("{:.0} %", 100.0 * share);
    let named = causes.iter().filter(|c| c.share >= LEAST_SHARE).take(NAMED);
    let mut parts: Vec<String> = named.clone().map(|c| format!("{} {}", share(c.share), words(c))).collect();
    let unexplained = totals.unexplained_ns as f64 / totals.covered_ns.max(1) as f64;
    let others = 1.0 - unexplained - named.map(|c| c.share).sum::<f64>();
    if others >= LEAST_SHARE {
        parts.push(format!("{} other causes", share(others)));
    }
    parts.push(format!("{} unexplained", share(unexplained)));
    text.push_str(&parts.join(", "));
    text.push('.');
    text
}

/// The late messages of one trial, for example `late messages took 412 ms beyond the usual, in 3 incidents: 61 % waiting for
/// a CPU that \`stress-ng\` had (pong end), 8 % unexplained.`. `None` if no cause was looked for.
pub(crate) fn of_trial(of: &TrialCauses) -> Option<String> {
    let totals = Some(of.totals).filter(|totals| totals.covered_ns > 0)?;
    Some(format!("{}{}", beyond(totals), shares(totals, &of.causes)))
}

/// The time that late messages took beyond the usual, and the number of incidents.
fn beyond(totals: IncidentTotals) -> String {
    let incidents =
        if totals.incidents == 1 { "1 incident".into() } else { format!("{} incidents", count(totals.incidents)) };
    format!("late messages took {} beyond the usual, in {incidents}", time(totals.excess_ns as f64))
}

/// Words for a cause after its share, e.g. `waiting for a CPU that \`stress-ng\` had (pong end)`.
fn words(cause: &CauseShare) -> String {
    cause_words(cause.cause, cause.end.as_deref(), cause.by.as_ref())
}
