//! What a cluster says when something fails, in words that say what to do. Nothing here asks it anything.

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

/// When it was last so.
pub(crate) fn when(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|s| s.last_observed_time.as_ref()).map(|t| t.0);
    let last = event.last_timestamp.as_ref().map(|t| t.0);
    series.or(last).or(event.event_time.as_ref().map(|t| t.0))
}

/// The last event with one of these reasons.
fn last<'a>(events: &'a [Event], reasons: &[&str]) -> Option<&'a Event> {
    events.iter().rfind(|e| e.reason.as_deref().is_some_and(|r| reasons.contains(&r)))
}

/// `: TEXT` where there is one. Messages of clusters end as they like, and may have several lines.
fn told(text: Option<&str>) -> String {
    let text = text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.trim_end_matches('.');
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// Of what API server, kubelet, runtime and its helper say, each in front of the next, the last.
fn innermost(said: &str) -> &str {
    ["unable to start container process: ", "error executing command in container: ", "Internal error occurred: "]
        .iter()
        .find_map(|front| said.rfind(front).map(|at| &said[at + front.len()..]))
        .map_or(said, |inner| inner.trim_end_matches(": unknown"))
}
