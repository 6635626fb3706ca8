//! A flow as the controller sees it: how much memory and time it takes, its counts, and whether they add up.

use super::RunError;
use super::trial::{Outcome, Part};
use std::time::Duration;
use tailbound_model::*;
use tailbound_record::{RecordWriter, TrialRecord};
use tailbound_wire::Role;

/// What is kept ready for rows where no rate says how many there will be.
const FASTEST_NS: i64 = 250;
/// Octets that fit into one datagram at most: so many batches there are at least.
const LARGEST_DATAGRAM: u64 = 65_507;
const MOST_ROWS: u64 = 4_000_000;
/// How long matching of two ends may take.
const MATCH_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Each further end adds as much: all ends discover each other, on the CPUs that there are.
const MATCH_TIMEOUT_EACH: Nanos = Nanos::from_secs(1);
/// The well-known option of drivers.
const UNACKED_LIMIT: &str = "unacked_limit";

/// How long the ends of a trial may take to meet.
pub(super) fn match_timeout(spec: &TrialSpec) -> Nanos {
    let further = (spec.measure.subscribers() + spec.measure.publishers()).saturating_sub(2);
    Nanos(MATCH_TIMEOUT.0 + i64::from(further) * MATCH_TIMEOUT_EACH.0)
}

/// What keeps a driver from sending a flow as the study asks.
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
        return Some("`unacked_limit` has no effect beside a `config` of the driver, which is used as it is".into());
    }
    if let Some(other) = spec.driver.options.get(UNACKED_LIMIT).filter(|other| **other != limit.to_string()) {
        return Some(format!("`unacked_limit` is {limit}, and the driver's option of that name is {other}"));
    }
    let asked = |policy: &str| spec.qos.get(policy).map(String::as_str);
    let waits = asked("reliability") != Some("best-effort") && asked("history") == Some("keep-all");
    (!waits).then(|| {
        "`unacked_limit` needs reliable messages and `qos.history: keep-all`: other writers wait for no acknowledgement"
            .into()
    })
}

/// The kernel has one table of neighbours for all network namespaces. Past its limit packets are dropped unsent.
pub(super) fn neighbours(spec: &TrialSpec) -> Option<Warning> {
    const LIMIT: &str = "/proc/sys/net/ipv4/neigh/default/gc_thresh3";
    let of_namespaces = |f: &&Flow| f.apart && !spec.pong.place.is_remote();
    let flow = spec.measure.flow().filter(of_namespaces)?;
    let ends = u64::from(flow.subscribers + flow.publishers);
    let limit: u64 = std::fs::read_to_string(LIMIT).ok()?.trim().parse().ok()?;
    // With a middleware all ends speak with all.
    let pairs = ends * (ends - 1);
    let text = format!(
        "{ends} network namespaces may need {pairs} entries in the kernel's table of neighbours, which holds {limit} for \
         all of them: packets beyond that are dropped unsent"
    );
    let mend = "as root, raise it in the study: `host: { sysctl: { net.ipv4.neigh.default.gc_thresh3: 8192 } }`";
    (pairs > limit).then(|| Warning::new("neighbours", Severity::Warning, text, mend))
}

/// Cells for the rows of a flow.
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

/// The longest that a flow may take: a publisher that is blocked again and again, and subscribers that wait for the rest.
pub(super) fn limit(flow: &Flow) -> Duration {
    Nanos(flow.whole().0.saturating_mul(2).saturating_add(4 * FLOW_TIMEOUT.0)).duration() + Duration::from_secs(60)
}

/// What the ends of an agent counted goes into the record; the rows of the ramp-up are known by it.
pub(super) fn store(record: &mut RecordWriter, part: &mut Part, counts: &[FlowCounts]) {
    let trial = &mut record.manifest.trials[part.order.trial];
    for (role, counts) in part.roles.iter().zip(counts) {
        trial.ends.entry(role.word().into()).or_default().flow = Some(counts.clone());
        let every = part.order.spec.measure.flow().and_then(Flow::row_every);
        if let (Role::Ping, Some(every)) = (role, every) {
            part.order.warm_up = counts.part(FlowPart::Window).first.div_ceil(every);
        }
    }
}

/// Messages of the trial as an outcome; why nothing arrived, if nothing did. Counts that do not add up make it invalid.
pub(super) fn account(record: &mut RecordWriter, id: usize, outcome: &mut Outcome) -> Result<Option<String>, RunError> {
    let trial: &TrialRecord = &record.manifest.trials[id];
    let sending = trial.ends.iter().filter(|(name, _)| is_publisher(name));
    let Some(sent) = FlowCounts::of_all(sending.filter_map(|(_, e)| e.flow.as_ref())) else { return Ok(None) };
    let receiving = trial.ends.iter().filter(|(name, _)| !is_publisher(name));
    let receiving: Vec<_> = receiving.filter_map(|(name, e)| Some((name, e.flow.as_ref()?))).collect();
    outcome.sent = sent.messages();
    outcome.scheduled = sent.messages();
    let condition = record.manifest.plan.trials.iter().find(|t| t.id == id).map_or(0, |t| t.condition);
    let spec = &record.manifest.plan.conditions[condition].spec;
    let octets: u64 = sent.parts.iter().map(|p| p.octets).sum();
    outcome.batches = spec.measure.flow().filter(|f| f.batching).map(|_| (octets / LARGEST_DATAGRAM).max(1));
    outcome.answered = receiving.iter().map(|(_, c)| c.messages()).min().unwrap_or(0);
    let none: Vec<&str> = receiving.iter().filter(|(_, c)| c.messages() == 0).map(|(name, _)| name.as_str()).collect();
    let finding = match (outcome.sent, none.as_slice()) {
        (0, _) => Some("the driver took none of the messages".to_owned()),
        (_, []) => None,
        (n, none) => Some(format!("the ends had met, but of {n} messages none reached {}", none.join(", "))),
    };
    let wrong: Vec<Warning> = receiving.iter().filter_map(|(name, c)| differ(&sent, name, c)).collect();
    for warning in wrong {
        record.warn(warning.at_trial(id))?;
    }
    Ok(finding)
}

/// What a subscriber counted, held against what was sent and against its own account of gaps.
fn differ(sent: &FlowCounts, name: &str, counts: &FlowCounts) -> Option<Warning> {
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
