//! Before the driver opens: scheduling, memory, limits; and the check that QoS came out as asked.

use super::{ProcessReady, failed};
use crate::{govern, vendor};
use tailbound_driver::{Code, Driver, DriverError, Kv};
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::{EndOrder, EndReady, Failed, Order, Role};

/// Puts the process where the study wants it. Threads made later inherit it.
pub(super) fn process(order: &Order) -> Result<ProcessReady, Failed> {
    let mut warnings = Vec::new();
    let wanted = &order.ends[0].scheduling;
    let end = order.ends[0].role.word();
    let refused = |e: String| failed("scheduling", ExitCode::MachineNotFit, format!("{end}: {e}"), "");
    // A deadline is given when the driver is open: a thread that has one cannot make others.
    let all = RoleScheduling { policy: wanted.policy.filter(|p| !is_deadline(p)), cpus: wanted.cpus.clone() };
    host::apply(0, &all).map_err(|e| refused(e.to_string()))?;
    if let Some(difference) = host::verify(0, &all) {
        return Err(refused(difference));
    }
    limit_real_time(order).map_err(|e| refused(format!("RLIMIT_RTTIME cannot be set: {e}")))?;
    let timer_slack_ns = match host::scheduling::set_timer_slack_1ns() {
        Ok(slack) => Some(slack),
        Err(e) => {
            warnings.push(
                Warning::new(
                    "timer_slack",
                    Severity::Warning,
                    format!(
                        "timer slack could not be set to 1 ns: {e}; the default 50 us is part of every send lateness"
                    ),
                    "",
                )
                .at_end(end),
            );
            None
        }
    };
    let memory_locked = match host::scheduling::lock_memory() {
        Ok(_) => true,
        Err(e) => {
            let text = e.to_string();
            let (what, mend) = text.split_once("; ").unwrap_or((&text, ""));
            warnings.push(Warning::new("memory_not_locked", Severity::Warning, what, mend).at_end(end));
            false
        }
    };
    Ok(ProcessReady { memory_locked, timer_slack_ns, warnings })
}

/// A real-time thread that never sleeps is ended by the kernel (SIGXCPU) after the longest time that the trial may take:
/// the last resort, should the guard itself be kept from its CPU.
fn limit_real_time(order: &Order) -> nix::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if !order.is_real_time() {
        return Ok(());
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_RTTIME)?;
    let limit_us = ((order.match_timeout_ns + order.limit_ns) / 1_000) as u64 + 60_000_000;
    setrlimit(Resource::RLIMIT_RTTIME, limit_us.min(hard), hard)
}

fn is_deadline(policy: &Policy) -> bool {
    matches!(policy, Policy::Deadline { .. })
}

/// From here on threads get what their roles are to have, this one first.
pub(super) fn roles(order: &Order, driver: &Driver) -> Result<(), Failed> {
    let asked = &order.ends[0].scheduling;
    let refused =
        |e: String| failed("scheduling", ExitCode::MachineNotFit, format!("{}: {e}", order.ends[0].role.word()), "");
    govern::begin(asked, &driver.description().roles).map_err(refused)?;
    let main = asked.of_role("main", false);
    if asked.roles.contains_key("main") && !main.policy.as_ref().is_some_and(is_deadline) {
        host::apply(0, &main).map_err(|e| refused(format!("role main: {e}")))?;
    }
    Ok(())
}

/// Refuses what the driver says that it cannot do.
pub(super) fn check_limits(order: &Order, driver: &Driver) -> Result<(), Failed> {
    let description = driver.description();
    let limit = description.limits.max_payload_bytes;
    if order.spec.message_octets() > limit {
        return Err(failed(
            "payload",
            ExitCode::BadInput,
            format!("payload {} is beyond the limit of driver {}: {limit} octets", order.spec.payload, driver.name()),
            format!("use a payload of at most {limit} B with this driver"),
        ));
    }
    let mode = mode(order.spec.measure.receive());
    if !description.receives(mode) {
        let has: Vec<_> = description.receive_modes.iter().map(|m| m.name()).collect();
        return Err(failed(
            "receive_mode",
            ExitCode::BadInput,
            format!("driver {} has no receive mode `{}`; it has {}", driver.name(), mode.name(), has.join(", ")),
            "",
        ));
    }
    Ok(())
}

pub(crate) fn mode(mode: ReceiveMode) -> tailbound_driver::ReceiveMode {
    match mode {
        ReceiveMode::Listener => tailbound_driver::ReceiveMode::Listener,
        // The executor is a thread that waits, like that of `block`.
        ReceiveMode::Block | ReceiveMode::Executor => tailbound_driver::ReceiveMode::Block,
        ReceiveMode::Spin => tailbound_driver::ReceiveMode::Spin,
    }
}

/// Options for the driver's `open`: the path's, the study's, its configuration file.
///
/// The lab offers interface, address, peers and multicast to every driver; each is given those that it knows.
pub(crate) fn open_options(order: &Order, end: &EndOrder, driver: &Driver) -> Kv {
    let knows = |key: &str| driver.description().option(key).is_some();
    let takes = |(key, value): &&(String, String)| {
        driver.description().option(key).is_some_and(|o| o.values.is_empty() || o.values.contains(value))
    };
    let mut kv: Kv = end.options.iter().filter(takes).cloned().collect();
    for (key, value) in &order.spec.driver.options {
        kv.set(key.as_str(), value.as_str());
    }
    if knows("domain") {
        kv.set("domain", order.spec.domain.to_string());
    }
    if order.spec.participants_of_session() > 1 {
        kv.set("participants", order.spec.participants_of_session().to_string());
    }
    // The publisher's; where both ends share a session it is the session's.
    let publishes = !end.role.receives() || order.spec.is_one_session();
    if let Some(limit) = order.spec.measure.flow().and_then(|f| f.unacked_limit).filter(|_| publishes) {
        kv.set("unacked_limit", limit.to_string());
    }
    // For a middleware that counts octets where the study counts messages.
    if knows("payload") && kv.get("unacked_limit").is_some() && kv.get("payload").is_none() {
        kv.set("payload", order.spec.message_octets().to_string());
    }
    // Without multicast a participant is looked for at the ports of so many numbers, and each end is one.
    let ends = order.spec.measure.subscribers() + order.spec.measure.publishers();
    if ends > 2 && knows("max_participant_index") && !order.spec.driver.options.contains_key("max_participant_index") {
        kv.set("max_participant_index", (ends + 8).to_string());
    }
    if let Some(config) = &order.spec.driver.config {
        kv.set("config", config.text.as_str());
    }
    if let Some((key, value)) = vendor::option(&order.ends[0].scheduling, driver.description()) {
        kv.set(key, value);
    }
    kv
}

/// Policies that DDS knows for writers only (OMG DDS 1.4, table of QoS policies), and batching.
const WRITERS_POLICIES: [&str; 3] = ["lifespan", "transport_priority", "batch"];

/// QoS of the study for a writer or a reader, and which participant of the session it belongs to.
pub(crate) fn policies(order: &Order, role: Role, writer: bool) -> Kv {
    let fits = |k: &str| writer || !WRITERS_POLICIES.contains(&k);
    let mut kv: Kv = order.spec.qos.iter().filter(|(k, _)| fits(k)).map(|(k, v)| (k.as_str(), v.as_str())).collect();
    if writer && !role.receives() && order.spec.measure.flow().is_some_and(|f| f.batching) {
        kv.set("batch", "on");
    }
    if order.spec.participants_of_session() > 1 {
        kv.set("participant", if role == Role::Ping { "0" } else { "1" });
    }
    kv
}

pub(super) fn open_failed(e: DriverError) -> Failed {
    let bad_input = matches!(e.code, Code::EINVAL | Code::EQOS | Code::ETOOBIG | Code::EUNSUPPORTED);
    let exit = if bad_input { ExitCode::BadInput } else { ExitCode::RunFailed };
    failed("driver_open", exit, e, "`tailbound driver list` shows each driver's options, QoS and limits")
}

/// Options beside the user's own configuration, which is used as it is.
pub(super) fn options_without_effect(order: &Order) -> Option<Warning> {
    const GENERAL: [&str; 4] = ["naming", "instance", "transport", "participants"];
    order.spec.driver.config.as_ref()?;
    let beside = order.spec.driver.options.keys().filter(|k| !GENERAL.contains(&k.as_str()));
    let beside: Vec<&str> = beside.map(String::as_str).collect();
    let text = format!("`config` is used as it is; driver options beside it have no effect: {}", beside.join(", "));
    let mend = "write them into the configuration, or leave them out";
    (!beside.is_empty()).then(|| Warning::new("options_without_effect", Severity::Warning, text, mend))
}

/// QoS that came out other than asked makes the trial invalid.
pub(super) fn qos_differences(order: &Order, ready: &EndReady) -> Vec<Warning> {
    let differs = |(key, asked): (&String, &String)| {
        let found = ready.qos.get(key).map_or("nothing", String::as_str);
        (found != asked).then(|| {
            Warning::new(
                "qos_not_as_asked",
                Severity::Invalid,
                format!("QoS {key} was asked to be {asked}, the driver reports {found}"),
                "",
            )
            .at_end(ready.name.clone())
        })
    };
    if ready.qos.is_empty() { Vec::new() } else { order.spec.qos.iter().filter_map(differs).collect() }
}
