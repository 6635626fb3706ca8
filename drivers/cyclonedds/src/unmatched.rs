//! Explains why an end point has no peer: no other end point was seen, its type differs, or a QoS policy does not fit.

use serde_json::{Value, json};
use tailbound_abi::side::Outcome;

use crate::endpoint::Endpoint;
use crate::error::check;
use crate::naming::Naming;
use crate::peers::{self, each_builtin, text};
use crate::{ffi, qos, sample};

/// An end point of the other kind (reader or writer) on the same topic.
struct Counterpart {
    guid: String,
    type_name: String,
    qos: Value,
}

/// Makes the answer to `query("unmatched")`: `{"reason", "policy"?, "detail"}`.
pub fn explain(participant: ffi::dds_entity_t, naming: Naming, endpoint: &Endpoint) -> Outcome<Value> {
    let matched = endpoint.matched();
    if matched > 0 {
        return Ok(json!({"reason": "matched", "detail": format!("{matched} matched on {}", endpoint.topic)}));
    }
    let writer = endpoint.kind == tailbound_abi::TB_WRITER;
    let (topic, what) = if writer {
        (ffi::DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION, "reader")
    } else {
        (ffi::DDS_BUILTIN_TOPIC_DCPSPUBLICATION, "writer")
    };
    let mut found: Vec<Counterpart> = Vec::new();
    each_builtin(participant, topic, |e: &ffi::dds_builtintopic_endpoint| {
        // SAFETY: the strings and the QoS belong to a sample that is lent during the call.
        unsafe {
            if text(e.topic_name) == endpoint.topic {
                found.push(Counterpart {
                    guid: peers::guid(&e.key),
                    type_name: text(e.type_name),
                    qos: qos::read(e.qos, !writer),
                });
            }
        }
    })?;
    if found.is_empty() {
        let others = peers::participants(participant)?.len().saturating_sub(1);
        let detail =
            format!("no {what} of {} was discovered; {others} other participants were discovered", endpoint.topic);
        return Ok(json!({"reason": "nothing seen", "detail": detail}));
    }
    // SAFETY: the name is a static string.
    let own_type = unsafe { text(sample::descriptor(naming).m_typename) };
    let Some(same_type) = found.iter().find(|c| c.type_name == own_type) else {
        let other = &found[0];
        let detail = format!(
            "the {what} {} of {} has type {}, but this end point has type {own_type}",
            other.guid, endpoint.topic, other.type_name
        );
        return Ok(json!({"reason": "type differs", "detail": detail}));
    };
    let own = qos::effective(endpoint.open()?.entity, writer)?;
    let policy = last_policy(endpoint.open()?.entity, writer)?;
    let Some(policy) = policy else {
        let detail = format!(
            "the {what} {} of {} has the same type and no incompatible policy: the match is not complete yet",
            same_type.guid, endpoint.topic
        );
        return Ok(json!({"reason": "nothing seen", "detail": detail}));
    };
    let (offered, requested) =
        if writer { (&own[&policy], &same_type.qos[&policy]) } else { (&same_type.qos[&policy], &own[&policy]) };
    let show = |v: &Value| v.as_str().map_or_else(|| "another value".to_owned(), str::to_owned);
    let detail = format!("{policy}: offered {}, requested {}", show(offered), show(requested));
    Ok(json!({"reason": "incompatible QoS", "policy": policy, "detail": detail}))
}

/// Name of the QoS policy because of which Cyclone last refused a match.
fn last_policy(entity: ffi::dds_entity_t, writer: bool) -> Outcome<Option<String>> {
    let (count, id) = if writer {
        let mut status =
            ffi::dds_offered_incompatible_qos_status { total_count: 0, total_count_change: 0, last_policy_id: 0 };
        // SAFETY: the call fills the given struct.
        check("dds_get_offered_incompatible_qos_status", unsafe {
            ffi::dds_get_offered_incompatible_qos_status(entity, &mut status)
        })?;
        (status.total_count, status.last_policy_id)
    } else {
        let mut status =
            ffi::dds_requested_incompatible_qos_status { total_count: 0, total_count_change: 0, last_policy_id: 0 };
        // SAFETY: the call fills the given struct.
        check("dds_get_requested_incompatible_qos_status", unsafe {
            ffi::dds_get_requested_incompatible_qos_status(entity, &mut status)
        })?;
        (status.total_count, status.last_policy_id)
    };
    Ok((count > 0).then(|| qos::policy_name(id)))
}
