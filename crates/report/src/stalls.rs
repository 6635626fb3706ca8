//! Groups the described incidents of a condition that are alike, and makes one sentence of each group.

use crate::cause_words::cause_words;
use crate::tables::causes::described;
use std::collections::BTreeMap;
use tailbound_document::number::{count, time};
use tailbound_document::{CauseWord, ConditionReport, IncidentReport, LedgerEntry, Report};

/// Incidents with the same main cause, the worst first: their numbers in the list of incidents of the condition.
pub(crate) struct Alike(pub Vec<usize>);

/// What incidents must have in common to be alike: the cause, the end and the thread that was delayed, and what delayed
/// it.
type Kind<'r> = Option<(CauseWord, Option<&'r str>, Option<&'r str>, Option<&'r str>)>;

/// The entry of the ledger that says best why an incident happened: the largest one that explains if it is at least half as
/// large as the largest of all, otherwise the largest.
fn main_cause(incident: &IncidentReport) -> Option<&LedgerEntry> {
    let ledger = incident.ledger.as_ref()?;
    let largest = ledger.iter().max_by_key(|entry| entry.ns_low)?;
    let explains = ledger.iter().filter(|entry| entry.cause.explains() && entry.ns_low >= largest.ns_low / 2);
    explains.max_by_key(|entry| entry.ns_low).or(Some(largest))
}

fn kind(incident: &IncidentReport) -> Kind<'_> {
    let entry = main_cause(incident)?;
    Some((entry.cause, entry.end.as_deref(), entry.thread.as_deref(), entry.by.as_ref().map(|by| by.name.as_str())))
}

/// The described incidents of a condition in groups, the group with the worst incident first. A sustained incident is a
/// group of its own.
pub(crate) fn groups(condition: &ConditionReport) -> Vec<Alike> {
    let mut groups: Vec<Alike> = Vec::new();
    for (at, incident) in described(condition).iter().enumerate() {
        let is_alike = |group: &&mut Alike| {
            let first = &condition.incidents[group.0[0]];
            let answered = |i: &IncidentReport| i.worst_ns.is_some();
            !incident.sustained
                && !first.sustained
                && answered(incident) == answered(first)
                && kind(incident) == kind(first)
        };
        match groups.iter_mut().find(is_alike) {
            Some(group) => group.0.push(at),
            None => groups.push(Alike(vec![at])),
        }
    }
    groups
}

/// One sentence about the incidents of a group.
pub(crate) fn sentence(report: &Report, condition: &ConditionReport, group: &Alike) -> String {
    let incidents: Vec<&IncidentReport> = group.0.iter().filter_map(|at| condition.incidents.get(*at)).collect();
    let Some(worst) = incidents.first() else { return String::new() };
    let places = places(report, &incidents);
    let (late, lost) = (incidents.iter().map(|i| i.late).sum(), incidents.iter().map(|i| i.lost).sum());
    let head = match incidents.len() {
        1 => format!("One stall ({places})"),
        n => format!("{} stalls alike ({places})", count(n as u64)),
    };
    let longest = if incidents.len() > 1 { "in the longest, " } else { "" };
    let why = main_cause(worst).map_or(String::new(), |entry| format!(": {longest}{}", because(entry)));
    format!("{head} {}{why}.", effect(late, lost, incidents.iter().filter_map(|i| i.worst_ns).max()))
}

/// A short description of the incident to which a late message belongs.
pub(crate) fn short(report: &Report, incident: &IncidentReport) -> String {
    let why = main_cause(incident).map(because);
    why.unwrap_or_else(|| format!("stall ({})", places(report, &[incident])))
}

/// What the incidents did: the number of delayed and lost messages, and the longest time.
fn effect(late: u64, lost: u64, longest_ns: Option<i64>) -> String {
    let messages = |n: u64| if n == 1 { "1 message".to_owned() } else { format!("{} messages", count(n)) };
    let took = longest_ns.map_or(String::new(), |ns| format!(", which took up to {}", time(ns as f64)));
    match (late, lost) {
        (late, 0) => format!("delayed {}{took}", messages(late)),
        (0, lost) => format!("lost {} (or they were not sent)", messages(lost)),
        (late, lost) => format!("delayed {}{took}, and {} were lost or not sent", messages(late), count(lost)),
    }
}

/// When incidents began, for example `trial 4 at 131 ms, 543 ms; trial 15 at 230 ms`.
fn places(report: &Report, incidents: &[&IncidentReport]) -> String {
    let mut trials: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for incident in incidents {
        let begin_ns = report.trial(incident.trial).and_then(|t| t.t0_ns).unwrap_or(0);
        trials.entry(incident.trial).or_default().push(incident.begin_ns - begin_ns);
    }
    let of_trial = |(trial, mut begins): (usize, Vec<i64>)| {
        begins.sort_unstable();
        let begins: Vec<String> = begins.iter().map(|ns| time(*ns as f64)).collect();
        format!("trial {trial} at {}", begins.join(", "))
    };
    trials.into_iter().map(of_trial).collect::<Vec<_>>().join("; ")
}

/// Why an incident happened, for example `` `recv` of the pong end waited 12.0 ms for CPU 1 behind `python3` (fifo 50) ``.
fn because(entry: &LedgerEntry) -> String {
    let least = if entry.ns_low == entry.ns_high { "" } else { "at least " };
    let ns = format!("{least}{}", time(entry.ns_low as f64));
    match (entry.cause, &entry.thread, entry.cpu, &entry.by) {
        (CauseWord::WaitedForCpu, Some(thread), Some(cpu), Some(by)) => {
            let end = entry.end.as_ref().map_or(String::new(), |end| format!(" of the {end} end"));
            let policy = by.policy.as_ref().map_or(String::new(), |policy| format!(" ({policy})"));
            format!("`{thread}`{end} waited {ns} for CPU {cpu} behind `{}`{policy}", by.name)
        }
        _ => format!("{ns} {}", cause_words(entry.cause, entry.end.as_deref(), entry.by.as_ref())),
    }
}
