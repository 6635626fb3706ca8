//! Explains errors of a cluster, with what the user can do. Nothing in this module sends a request.

mod api;
mod end;
mod exec;
mod start;
#[cfg(test)]
mod tests;

pub(crate) use api::{Asked, absent, not_made, refused};
pub(crate) use end::{deleted, ended, evicted, node_lost};
pub(crate) use exec::{exec_ended, exec_refused};
pub(crate) use start::{Starting, starting};

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::Timestamp;

/// Returns the time of the last occurrence of an event that the Kubernetes cluster reports.
pub(crate) fn when(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|s| s.last_observed_time.as_ref()).map(|t| t.0);
    let last = event.last_timestamp.as_ref().map(|t| t.0);
    series.or(last).or(event.event_time.as_ref().map(|t| t.0))
}

/// Returns the last of the cluster's events that has one of these reasons.
fn last<'a>(events: &'a [Event], reasons: &[&str]) -> Option<&'a Event> {
    events.iter().rfind(|e| e.reason.as_deref().is_some_and(|r| reasons.contains(&r)))
}

/// Formats a message of a cluster as `: TEXT`, or as nothing if the message is empty. Messages of clusters may have
/// several lines and any punctuation at the end.
fn told(text: Option<&str>) -> String {
    let text = text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.trim_end_matches('.');
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// Returns the innermost part of a cluster's message: API server, kubelet, container runtime and its helper each put
/// their text in front of the message that they received.
fn innermost(said: &str) -> &str {
    ["unable to start container process: ", "error executing command in container: ", "Internal error occurred: "]
        .iter()
        .find_map(|front| said.rfind(front).map(|at| &said[at + front.len()..]))
        .map_or(said, |inner| inner.trim_end_matches(": unknown"))
}
