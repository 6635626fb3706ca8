//! Words for incidents and tracks.

use tailbound_document::{ConditionReport, Evidence, IncidentReport, LedgerEntry};

/// Name of an incident on its track: its most important cause with its share, or what is known without a cause.
pub(super) fn incident(incident: &IncidentReport) -> String {
    let kind = if incident.sustained { "sustained incident" } else { "incident" };
    if incident.excess_ns == 0 {
        return format!("{kind}: {} lost or not sent", incident.lost);
    }
    let named = incident.ledger.iter().flatten().max_by_key(|entry| entry.ns_low);
    match named.filter(|entry| entry.ns_low >= incident.unexplained_ns && entry.ns_low > 0) {
        Some(entry) => format!("{kind}: {}", cause(entry, incident.excess_ns)),
        None => format!("{kind}: {} unexplained", share(incident.unexplained_ns, incident.excess_ns)),
    }
}

fn share(ns: i64, of_ns: i64) -> String {
    format!("{:.0} %", 100.0 * ns as f64 / of_ns.max(1) as f64)
}

fn cause(entry: &LedgerEntry, of_ns: i64) -> String {
    let word = serde_json::to_value(entry.cause).ok().and_then(|word| word.as_str().map(str::to_owned));
    let by = entry.by.as_ref().map_or(String::new(), |by| format!(" ({})", by.name));
    let inferred = if entry.evidence == Evidence::Inferred { ", inferred" } else { "" };
    format!("{} {}{by}{inferred}", share(entry.ns_low, of_ns), word.unwrap_or_default())
}

/// Name of a trial: its id, and the name of its condition.
pub(super) fn trial(id: usize, condition: &ConditionReport) -> String {
    format!("trial {id}: {}", condition.name)
}

/// The number of things, in the singular or the plural.
pub(super) fn some(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {many}", tailbound_document::number::count(number)) }
}
