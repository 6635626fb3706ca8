//! The controller's part of a flow: sizes its memory and time limits, stores its counts, and checks that the counts are
//! consistent.

use super::RunError;
use super::trial_state::{Part, TrialResult};
use std::time::Duration;
use tailbound_model::*;
use tailbound_record::{RecordWriter, TrialRecord};
use tailbound_wire::Role;

/// Shortest time between two messages for which memory is allocated if the study gives no rate, ns.
const FASTEST_NS: i64 = 250;
/// Largest number of bytes in one datagram, from which the smallest number of batches is computed.
const LARGEST_DATAGRAM: u64 = 65_507;
const MOST_ROWS: u64 = 4_000_000;
/// Longest time from the opening of two ends until the driver has matched them.
const MATCH_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Time by which each further end extends the match timeout, because all ends discover each other on the same CPUs.
const MATCH_TIMEOUT_EACH: Nanos = Nanos::from_secs(1);
/// Name of the driver option that limits the number of unacknowledged messages.
const UNACKED_LIMIT: &str = "unacked_limit";

/// Longest time until all ends of a trial are matched. A load that begins before discovery may delay discovery until the
/// load ends, so that its duration is added.
pub(super) fn match_timeout(spec: &TrialSpec) -> Nanos {
    let further = (spec.measure.subscribers() + spec.measure.publishers()).saturating_sub(2);
    let before = spec.loads.iter().filter(|load| load.start == LoadStart::BeforeDiscovery);
    let loaded = before.filter_map(|load| load.duration).max().unwrap_or(Nanos(0));
    Nanos(MATCH_TIMEOUT.0 + i64::from(further) * MATCH_TIMEOUT_EACH.0 + loaded.0)
}

/// Reason why a driver cannot send a flow as the study asks; `None` = the driver can send it.
pub(super) fn lack(spec: &TrialSpec, driver: &tailbound_driver::Description) -> Option<String> {
    let (flow, name) = (spec.measure.flow()?, &driver.name);
    if flow.batching && !driver.has("batch") {
        return Some(format!("driver {name} has no batching"));
    }
    let limit = flow.unacked_limit?;
    if driver.option(UNACKED_LIMIT).is_none() {
        return Some(format!("driver {name} has no limit of unacknowledged messages that could be set"));
    }
    if spec.driver.config.is_some() {
        return Some("`unacked_limit` has no effect beside a `config` of the driver, which is used unchanged".into());
    }
    if let Some(other) = spec.driver.options.get(UNACKED_LIMIT).filter(|other| **other != limit.to_string()) {
        return Some(format!("`unacked_limit` is {limit}, but the driver option `unacked_limit` is {other}"));
    }
    let asked = |policy: &str| spec.qos.get(policy).map(String::as_str);
    let waits = asked("reliability") != Some("best-effort") && asked("history") == Some("keep-all");
    (!waits).then(|| {
        "`unacked_limit` needs reliable messages and `qos.history: keep-all`: writers with other QoS do not wait for \
         acknowledgements"
            .into()
    })
}

/// Warns if the ends may fill the kernel's neighbour table, which all network namespaces share. If the table is full,
/// packets are dropped before they are sent.
pub(super) fn neighbours(spec: &TrialSpec) -> Option<Warning> {
    const LIMIT: &str = "/proc/sys/net/ipv4/neigh/default/gc_thresh3";
    let of_namespaces = |f: &&Flow| f.apart && !spec.pong.place.is_remote();
    let flow = spec.measure.flow().filter(of_namespaces)?;
    let ends = u64::from(flow.subscribers + flow.publishers);
    let limit: u64 = std::fs::read_to_string(LIMIT).ok()?.trim().parse().ok()?;
    // With a middleware, every end exchanges messages with every other end.
    let pairs = ends * (ends - 1);
    let text = format!(
        "{ends} network namespaces may need {pairs} entries in the kernel's neighbour table, whose limit for all \
         namespaces is {limit}: beyond this limit, packets are dropped before they are sent"
    );
    let remedy =
        "as root, raise the limit in the study: `host: { sysctl: { net.ipv4.neigh.default.gc_thresh3: 8192 } }`";
    (pairs > limit).then(|| Warning::new("neighbours", Severity::Warning, text, remedy))
}

/// Number of cells of sample memory that are allocated for the rows of samples of a flow.
pub(super) fn rows(flow: &Flow, rate: Rate) -> u64 {
    let Some(every) = flow.row_every() else { return 0 };
    let time = flow.ramp_up.0.saturating_add(flow.window.0);
    let messages = match rate {
        Rate::Period(period) => time / period.0.max(1) + 1,
        Rate::Max => time / FASTEST_NS,
    };
    let rows = messages as u64 / every + 2;
    if rate == Rate::Max { rows.min(MOST_ROWS) } else { rows }
}

/// Longest time that a flow may take. It includes time for a publisher that is blocked again and again, and for
/// subscribers that wait for the last messages.
pub(super) fn limit(flow: &Flow) -> Duration {
    Nanos(flow.whole().0.saturating_mul(2).saturating_add(4 * FLOW_TIMEOUT.0)).duration() + Duration::from_secs(60)
}

/// Writes the flow counts of an agent's ends into the record, and derives from the counts which rows of samples belong
/// to the ramp-up (the part of the flow before the window).
pub(super) fn store(record: &mut RecordWriter, part: &mut Part, counts: &[FlowCounts]) {
    let trial = record.manifest.trial_mut(part.order.trial);
    for (role, counts) in part.roles.iter().zip(counts) {
        trial.ends.entry(role.word().into()).or_default().flow = Some(counts.clone());
        let every = part.order.spec.measure.flow().and_then(Flow::row_every);
        if let (Role::Ping, Some(every)) = (role, every) {
            part.order.warm_up = counts.part(FlowPart::Window).first.div_ceil(every);
        }
    }
}

/// Writes the numbers of messages of a flow into the result. If a subscriber received no message, returns a finding
/// that says so. Counts that are not consistent make the trial invalid.
pub(super) fn account(
    record: &mut RecordWriter,
    id: usize,
    result: &mut TrialResult,
) -> Result<Option<String>, RunError> {
    let trial: &TrialRecord = record.manifest.trial(id);
    let sending = trial.ends.iter().filter(|(name, _)| is_publisher(name));
    let Some(sent) = FlowCounts::of_all(sending.filter_map(|(_, e)| e.flow.as_ref())) else { return Ok(None) };
    let receiving = trial.ends.iter().filter(|(name, _)| !is_publisher(name));
    let receiving: Vec<_> = receiving.filter_map(|(name, e)| Some((name, e.flow.as_ref()?))).collect();
    result.sent = sent.messages();
    result.scheduled = sent.messages();
    let condition = record.manifest.plan.trials.iter().find(|t| t.id == id).map_or(0, |t| t.condition);
    let spec = &record.manifest.plan.conditions[condition].spec;
    let bytes: u64 = sent.parts.iter().map(|p| p.bytes).sum();
    result.batches = spec.measure.flow().filter(|f| f.batching).map(|_| (bytes / LARGEST_DATAGRAM).max(1));
    result.answered = receiving.iter().map(|(_, c)| c.messages()).min().unwrap_or(0);
    let none: Vec<&str> = receiving.iter().filter(|(_, c)| c.messages() == 0).map(|(name, _)| name.as_str()).collect();
    let finding = match (result.sent, none.as_slice()) {
        (0, _) => Some("the driver accepted none of the messages".to_owned()),
        (_, []) => None,
        (n, none) => {
            Some(format!("the ends had found each other, but none of {n} messages reached {}", none.join(", ")))
        }
    };
    let wrong: Vec<Warning> = receiving.iter().filter_map(|(name, c)| contradiction(&sent, name, c)).collect();
    for warning in wrong {
        record.warn(warning.at_trial(id))?;
    }
    Ok(finding)
}

/// Warns if the counts of a subscriber contradict the number of messages sent or the subscriber's own count of missing
/// messages.
fn contradiction(sent: &FlowCounts, name: &str, counts: &FlowCounts) -> Option<Warning> {
    let beyond = sent.parts.iter().zip(&counts.parts).any(|(sent, came)| came.messages > sent.messages);
    let gaps = counts.messages() + counts.missing != counts.next;
    let text = match (beyond, gaps) {
        (true, _) => format!("{name} counted more messages than were sent"),
        (_, true) => format!(
            "{name} counted {} messages and {} gaps up to message {}",
            counts.messages(),
            counts.missing,
            counts.next
        ),
        (false, false) => return None,
    };
    Some(Warning::new("counts_differ", Severity::Invalid, text, "").at_end(name.to_owned()))
}
