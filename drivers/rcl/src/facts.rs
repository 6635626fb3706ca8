//! What both drivers of ROS 2 answer about their end points, the middleware and the threads; every answer is JSON.

use core::ffi::CStr;

use serde_json::{Map, Value, json};
use tailbound_abi::TB_EUNSUPPORTED;
use tailbound_abi::side::{Fail, Outcome, fail, threads_by_role};

use crate::context::own_configuration;
use crate::environment::{VARIABLES, distribution, variable, version};
use crate::library::Ros;
use crate::options::Options;
use crate::qos;
use crate::types::{IncompatibleQos, Profile};

/// What ROS 2 knows about a publisher or subscription.
pub trait Known {
    fn is_writer(&self) -> bool;
    /// Name of the topic in ROS 2.
    fn topic(&self) -> &CStr;
    /// Name of the message type in the graph of ROS 2.
    fn type_name(&self) -> &str;
    /// Number of peers that are matched.
    fn matched(&self) -> Outcome<usize>;
    /// The policies that the middleware has in effect.
    fn profile(&self) -> Outcome<Profile>;
    /// The status of incompatible QoS; `None` if the middleware has no such event.
    fn incompatible(&self) -> Outcome<Option<IncompatibleQos>>;
    /// Number of entities of the other kind with this topic that were discovered, matched or not.
    fn discovered(&self) -> Outcome<usize>;
}

/// Answers a query about an end point. `layer`: the library that the driver calls.
///
/// # Errors
/// There is no such end point or no such query.
pub fn about<'a>(end: impl FnOnce() -> Outcome<&'a dyn Known>, what: &str, layer: &str) -> Outcome<Value> {
    match what {
        "qos" => end().and_then(policies).map(Value::Object),
        "peers" => end()?.matched().map(|n| (1..=n).map(|n| json!({"number": n})).collect()),
        "unmatched" => end().and_then(unmatched),
        "flow" => flow(end()?, layer),
        _ => {
            let known = "qos stats peers unmatched transport threads flow";
            fail(TB_EUNSUPPORTED, format!("query {what}: this question is not known; the known questions are {known}"))
        }
    }
}

/// The policies that the middleware has in effect.
fn policies(e: &dyn Known) -> Outcome<Map<String, Value>> {
    Ok(qos::read(&e.profile()?, e.is_writer()))
}

/// Returns the send settings and counters of a writer; ROS 2 reports none of them, so they are described in words.
fn flow(e: &dyn Known, layer: &str) -> Outcome<Value> {
    if !e.is_writer() {
        return Err(Fail::invalid(format!("query flow: {} is a reader", e.topic().to_string_lossy())));
    }
    Ok(json!({
        "matched": e.matched()?,
        "batching": "none",
        "data": "either",
        "by": {
            "batching": format!("{layer} has no batching"),
            "unacked_limit": format!("{layer} has no such setting; it is part of the configuration of the middleware"),
            "data": "the middleware chooses between unicast and multicast",
            "retransmitted": format!("{layer} does not count retransmissions"),
            "throttled": format!("{layer} does not count how often publishing waits"),
        },
    }))
}

/// Explains why an end point has no peer: no other end point was seen, or its type or QoS differs.
fn unmatched(e: &dyn Known) -> Outcome<Value> {
    let (topic, matched) = (e.topic().to_string_lossy(), e.matched()?);
    if matched > 0 {
        return Ok(json!({"reason": "matched", "detail": format!("{matched} matched on {topic}")}));
    }
    let status = e.incompatible()?;
    if let Some(policy) = status.filter(|s| s.total > 0).map(|s| qos::policy_name(s.policy)) {
        let detail = format!("{policy}: the publisher offers less than the subscription requests");
        return Ok(json!({"reason": "incompatible QoS", "policy": policy, "detail": detail}));
    }
    let what = if e.is_writer() { "subscription" } else { "publisher" };
    Ok(match e.discovered()? {
        0 => json!({"reason": "nothing seen", "detail": format!("no {what} of {topic} was discovered")}),
        n => {
            let reason = if status.is_some() { "type differs" } else { "type or QoS differs" };
            let detail = format!(
                "{n} discovered with the name {topic} as {what}, and none has matched so far; this end point has type {}",
                e.type_name()
            );
            json!({"reason": reason, "detail": detail})
        }
    })
}

/// Describes ROS 2, its middleware and its network, as far as they are known. `packages`: the packages of ROS 2 that the driver calls.
pub fn transport(ros: &Ros, options: &Options, nodes: &[String], packages: &[&str]) -> Value {
    let of = |package: &str| match version(package) {
        Some(version) => format!("{package} {version}"),
        None => format!("{package} (version not known)"),
    };
    let own = own_configuration();
    // What the driver itself has set is no variable of the user.
    let of_user = |name: &&str| variable(name).filter(|value| own.as_ref() != Some(value));
    let set = VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), json!(of_user(name)?))));
    let libraries: Vec<String> = packages.iter().copied().chain([&*ros.rmw]).map(of).collect();
    let mut all = json!({
        "library": libraries.join(", "),
        "distribution": distribution(),
        "rmw": ros.rmw,
        "rmw_library": ros.rmw_library,
        "rcl_library": ros.rcl_library,
        "domain": options.domain,
        "nodes": nodes,
        "address": options.address,
        "variables": set.collect::<Map<_, _>>(),
        "configuration": own,
    });
    if ros.rmw == "rmw_cyclonedds_cpp" {
        all["transport"] = json!("udp");
    }
    all
}

/// Lists the threads of this process whose names are among these roles and patterns.
pub fn threads(roles: &[(&str, &str)]) -> Value {
    threads_by_role(roles)
        .into_iter()
        .map(|(tid, name, role)| json!({"tid": tid, "name": name, "role": role}))
        .collect()
}
