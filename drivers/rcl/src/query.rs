//! Answers of the driver `rcl` to the queries that the loading program may make outside the hot path; every answer is JSON.

use core::ffi::CStr;

use serde_json::{Value, json};
use tailbound_abi::side::{Fail, Outcome};

use crate::describe::ROLES;
use crate::endpoint::Endpoint;
use crate::facts::{self, Known};
use crate::message::TYPE;
use crate::session::Session;
use crate::types::{IncompatibleQos, Profile};

impl Known for Endpoint {
    fn is_writer(&self) -> bool {
        Endpoint::is_writer(self)
    }

    fn topic(&self) -> &CStr {
        &self.topic
    }

    fn type_name(&self) -> &str {
        TYPE
    }

    fn matched(&self) -> Outcome<usize> {
        self.held()?.entity()?.matched()
    }

    fn profile(&self) -> Outcome<Profile> {
        self.held()?.entity()?.profile()
    }

    fn incompatible(&self) -> Outcome<Option<IncompatibleQos>> {
        Ok(self.held()?.entity()?.incompatible())
    }

    fn discovered(&self) -> Outcome<usize> {
        self.held()?.entity()?.discovered(&self.topic)
    }
}

/// Answers the query `what` about an end point, or about the session if `ep` is 0.
pub fn answer(session: &Session, ep: u32, what: &str) -> Outcome<Value> {
    let endpoint = || match ep {
        0 => Err(Fail::invalid(format!("query {what} needs an end point"))),
        ep => session.endpoint(ep).and_then(|e| e.held().map(|_| e)),
    };
    match what {
        "stats" if ep == 0 => {
            session.alive().map(|e| Ok((e.id.to_string(), stats(e)?))).collect::<Outcome<_>>().map(Value::Object)
        }
        "stats" => endpoint().and_then(stats),
        "transport" => Ok(transport(session)),
        "threads" => Ok(facts::threads(&ROLES)),
        "peers" if ep == 0 => Ok(json!([])),
        _ => facts::about(|| endpoint().map(|e| e as &dyn Known), what, "rcl"),
    }
}

/// Returns the counters of an end point: only the number of matched peers, because rcl reports no counters.
fn stats(e: &Endpoint) -> Outcome<Value> {
    Ok(json!({"matched": e.matched()?}))
}

/// Describes ROS 2, its middleware and its network, as far as they are known.
fn transport(session: &Session) -> Value {
    let mut all = facts::transport(session.ros, &session.options, &session.nodes, &["rcl"]);
    all["executor"] = json!("none: ROS 2 without an executor");
    if let Some(words) = session.listener_words().filter(|_| session.has_listener()) {
        all["listener"] = json!(words);
    }
    all
}
