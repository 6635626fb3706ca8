//! Answers of the driver `rclcpp` to queries; every answer is JSON.

use serde_json::{Value, json};
use tailbound_abi::side::{Fail, Outcome};

use super::describe::roles;
use super::endpoint::Endpoint;
use super::options::{CALLBACK_GROUPS, EXECUTORS, MESSAGES, SEND_BY};
use super::session::Session;
use crate::facts::{self, Known};

/// Answers the query `what` about an end point, or about the session if `ep` is 0.
pub fn answer(session: &Session, ep: u32, what: &str) -> Outcome<Value> {
    let endpoint = || match ep {
        0 => Err(Fail::invalid(format!("query {what} needs an end point"))),
        ep => session.endpoint(ep).and_then(|e| e.verify(false).map(|()| e)),
    };
    match what {
        "stats" if ep == 0 => {
            session.alive().map(|e| Ok((e.id.to_string(), stats(e)?))).collect::<Outcome<_>>().map(Value::Object)
        }
        "stats" => endpoint().and_then(stats),
        "transport" => Ok(transport(session)),
        "threads" => Ok(facts::threads(&roles())),
        "stamps" => Ok(session
            .taken
            .get()
            .map_or_else(|| json!({"stamps": [], "unread": 0, "left_out": 0}), |taken| taken.stamps())),
        "peers" if ep == 0 => Ok(json!([])),
        _ => facts::about(|| endpoint().map(|e| e as &dyn Known), what, "rclcpp"),
    }
}

/// Returns the counters of an end point.
fn stats(e: &Endpoint) -> Outcome<Value> {
    let status = e.status()?;
    let mut all = json!({"matched": status.matched});
    if e.is_writer() {
        all["matched_inside_process"] = json!(status.matched_inside);
        all["not_published_by_timer"] = json!(status.failed);
    }
    Ok(all)
}

/// Describes ROS 2, its middleware and how the nodes are made.
fn transport(session: &Session) -> Value {
    let mut all = facts::transport(session.ros, &session.options, &session.nodes, &["rclcpp", "rcl"]);
    let own = &session.own;
    all["executor"] = json!(EXECUTORS[own.executor]);
    all["callback_groups"] = json!(CALLBACK_GROUPS[own.callback_groups]);
    all["message"] = json!(MESSAGES[own.message]);
    all["send_by"] = json!(SEND_BY[own.send_by]);
    all["intra_process"] = json!(own.intra_process);
    all["loan"] = json!(own.loan);
    all["rclcpp_library"] = json!(session.shim.path);
    if own.threads > 0 {
        all["executor_threads"] = json!(own.threads);
    }
    all
}
