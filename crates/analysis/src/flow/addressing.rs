//! Finds how the publisher's datagrams were addressed: to a multicast group, to each subscriber, or both.

use tailbound_document::FlowCast;
use tailbound_model::{Counted, FlowCounts};
use tailbound_record::TrialRecord;

/// If the number of datagrams of one kind (multicast or unicast) is below this share of the number of the other kind,
/// the datagrams of the first kind are ignored.
const LITTLE: f64 = 0.1;

/// Smallest number of datagrams per message that counts. If the number is smaller, the messages were not sent over IP,
/// or many messages shared a datagram.
const NONE: f64 = 0.001;

/// Computes the addressing of a flow from the IP counters of the publisher's network namespace, without the datagrams
/// that are also sent while no messages are sent.
pub(crate) fn of(trial: &TrialRecord, sent: &FlowCounts, subscribers: u32) -> Option<FlowCast> {
    let proof = trial.proof.as_ref()?;
    let space = proof.spaces.iter().find(|s| s.ends.iter().any(|e| e == "ping"))?;
    let messages = sent.messages() as f64;
    let per_message = |key: &str| {
        let of = |c: &Counted| c.ip.get(key).copied().unwrap_or(0) as f64;
        let scale = |q: &Counted| space.data.ns as f64 / q.ns.max(1) as f64;
        let without = space.quiet.as_ref().map_or(0.0, |q| of(q) * scale(q));
        (of(&space.data) - without).max(0.0) / messages
    };
    let (all, group) = (per_message("Ip.OutRequests"), per_message("IpExt.OutMcastPkts"));
    if messages == 0.0 || all < NONE {
        return None;
    }
    let single = (all - group).max(0.0);
    let each = single / f64::from(subscribers);
    let way = if group >= NONE && each <= LITTLE * group {
        "multicast"
    } else if group <= LITTLE * each {
        "unicast"
    } else {
        "mixed"
    };
    let mut groups: Vec<String> = proof.spaces.iter().flat_map(|s| s.data.groups.iter().cloned()).collect();
    groups.sort();
    groups.dedup();
    Some(FlowCast { way: way.into(), to_groups: group, to_single: single, groups })
}
