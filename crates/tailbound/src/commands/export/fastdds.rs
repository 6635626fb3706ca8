//! Writes a configuration of Fast DDS 2.9: profiles with the transport, and thread settings for Fast DDS 2.13 and later as a
//! comment.

use super::{Source, xml};
use crate::failure::Failure;
use tailbound_model::{Policy, RoleScheduling};

fn element(name: &str, value: &str) -> String {
    format!("<{name}>{value}</{name}>")
}

fn locator(address: &str) -> String {
    let (address, port) = address.split_once(':').unwrap_or((address, ""));
    let port = if port.is_empty() { String::new() } else { element("port", &xml::escape(port)) };
    let address = element("address", &xml::escape(address));
    element("locator", &element("udpv4", &(address + &port)))
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|v| !v.is_empty())
}

/// Makes the text of a configuration file of Fast DDS, for FASTRTPS_DEFAULT_PROFILES_FILE.
pub fn profiles(mut source: Source) -> Result<String, Failure> {
    if source.option("discovery_server").is_some() {
        return Err(Failure::bad_input("the option discovery_server of driver fastdds cannot be exported")
            .help("write the RemoteServer element of the profile by hand"));
    }
    let transport = source.option("transport").unwrap_or("udp").to_owned();
    let descriptor = if transport == "udp" { udp(&source)? } else { shared_memory(&source) };
    let participant = format!(
        "<participant profile_name=\"tailbound\" is_default_profile=\"true\"><rtps>{}{}{}</rtps></participant>",
        element("builtin", &discovery(&source, &transport)),
        element("userTransports", &element("transport_id", "tailbound")),
        element("useBuiltinTransports", "false"),
    );
    let inside = if transport == "intra-process" { "FULL" } else { "OFF" };
    let profiles = format!(
        "<dds xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\">{}{}</dds>",
        element("library_settings", &element("intraprocess_delivery", inside)),
        element(
            "profiles",
            &(element("transport_descriptors", &element("transport_descriptor", &descriptor))
                + &participant
                + &end_point("data_writer", &source, &transport)
                + &end_point("data_reader", &source, &transport))
        )
    );
    source.notes.push(format!(
        "domain {} is not in this file: the application sets the domain when it creates its participant",
        source.spec.domain
    ));
    let mut head = vec![
        format!("Fast DDS 2.9: {}", source.what),
        "This file is for FASTRTPS_DEFAULT_PROFILES_FILE=..., or for load_XML_profiles_file".into(),
    ];
    head.extend(source.notes.iter().map(|note| format!("- {note}")));
    Ok(xml::comment(&head) + &xml::indented(&profiles) + &threads(&source))
}

fn udp(source: &Source) -> Result<String, Failure> {
    let mut x = element("transport_id", "tailbound") + &element("type", "UDPv4");
    for (name, key) in [
        ("sendBufferSize", "socket_send_buffer_size"),
        ("receiveBufferSize", "socket_receive_buffer_size"),
        ("maxMessageSize", "max_message_size"),
        ("TTL", "multicast_ttl"),
    ] {
        x += &source.option(key).map_or(String::new(), |value| element(name, &xml::escape(value)));
    }
    let most = source.option("max_participant_index").and_then(|n| n.parse::<u32>().ok());
    x += &most.map_or(String::new(), |n| element("maxInitialPeersRange", &(n + 1).to_string()));
    // The white list of Fast DDS 2.9 accepts addresses only.
    match (source.option("address"), source.option("interface")) {
        (Some(address), _) => x += &element("interfaceWhiteList", &element("address", &xml::escape(address))),
        (None, Some(interface)) => {
            let text = format!("interface {interface}: profiles of Fast DDS 2.9 name an interface only by its address");
            return Err(Failure::bad_input(text).help("set the `address` of the path in the study"));
        }
        (None, None) => {}
    }
    Ok(x)
}

fn shared_memory(source: &Source) -> String {
    let size = |key: &str| xml::escape(source.option(key).unwrap_or_default());
    element("transport_id", "tailbound")
        + &element("type", "SHM")
        + &element("maxMessageSize", &size("max_message_size"))
        + &element("segment_size", &size("shm_segment_size"))
}

fn discovery(source: &Source, transport: &str) -> String {
    let mut x = element("discovery_config", &element("discoveryProtocol", "SIMPLE"));
    x += &element("avoid_builtin_multicast", "true");
    if transport != "udp" {
        return x;
    }
    let peers = list(source.option("peers").unwrap_or_default()).map(locator).collect::<String>();
    if source.option("multicast") == Some("off") {
        let here = source.option("address").map_or_else(|| "<locator/>".to_owned(), locator);
        x += &element("metatrafficUnicastLocatorList", &here);
        x += &element("initialPeersList", &peers);
    } else if !peers.is_empty() {
        x += &element("initialPeersList", &(peers + &locator("239.255.0.1")));
    }
    x
}

/// Writes the default profile of writers or readers of Fast DDS, with the QoS that a profile can express.
fn end_point(kind: &str, source: &Source, transport: &str) -> String {
    let qos = |key: &str, default: &str| {
        source.spec.qos.get(key).map_or(default, String::as_str).replace('-', "_").to_uppercase()
    };
    let sharing = if transport == "data-sharing" { "ON" } else { "OFF" };
    let mut x = element("kind", &qos("reliability", "reliable"));
    x = element("reliability", &x) + &element("durability", &element("kind", &qos("durability", "volatile")));
    x += &element("data_sharing", &element("kind", sharing));
    let mut rest = String::new();
    if kind == "data_writer" {
        let publish = if source.option("publish_mode") == Some("async") { "ASYNCHRONOUS" } else { "SYNCHRONOUS" };
        x += &element("publishMode", &element("kind", publish));
        let ms: u64 = source.option("heartbeat_period").and_then(|p| p.parse().ok()).unwrap_or(3000);
        let period =
            element("sec", &(ms / 1000).to_string()) + &element("nanosec", &(ms % 1000 * 1_000_000).to_string());
        rest = element("times", &element("heartbeatPeriod", &period));
    }
    let mut history = element("kind", &qos("history", "keep-last"));
    if !history.contains("KEEP_ALL") {
        history += &element("depth", &qos("history.depth", "1"));
    }
    let waits = history.contains("KEEP_ALL") && qos("reliability", "reliable") == "RELIABLE";
    let limits = source.option("unacked_limit").filter(|_| waits && kind == "data_writer");
    let limits = limits.map_or(String::new(), |n| {
        let each =
            [("max_samples", n), ("max_instances", "1"), ("max_samples_per_instance", n), ("allocated_samples", "1")];
        element("resourceLimitsQos", &each.map(|(name, value)| element(name, value)).concat())
    });
    let topic = element("topic", &(element("historyQos", &history) + &limits));
    format!(
        "<{kind} profile_name=\"tailbound {kind}\" is_default_profile=\"true\">{topic}{}{rest}</{kind}>",
        element("qos", &x)
    )
}

/// Writes the thread settings of later versions as a comment, because Fast DDS 2.9 refuses a file that contains them.
pub fn threads(source: &Source) -> String {
    let scheduling = &source.end.scheduling;
    let places = [
        ("receive", "in transport_descriptor", "default_reception_threads"),
        ("event", "in participant/rtps", "timed_events_thread"),
        ("send", "in participant/rtps", "builtin_controllers_sender_thread"),
    ];
    let mut lines = Vec::new();
    for (role, place, name) in places {
        let settings = settings(&scheduling.of_role(role, true));
        if !settings.is_empty() {
            lines.push(format!("{place} (role {role}):"));
            lines.push(format!("  {}", element(name, &settings)));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let head = [
        "Settings of threads, which Fast DDS has since 2.13; 2.9 refuses a file that contains them. By hand, they were in effect",
        "with 2.14.5 and 3.6.1; 3.x also wants heartbeat_period in place of heartbeatPeriod. Each belongs:",
    ];
    lines.splice(0..0, head.map(str::to_owned));
    if let Some(Policy::Deadline { .. }) = scheduling.policies().find(|p| matches!(p, Policy::Deadline { .. })) {
        lines.push("- Fast DDS has no setting for the policy deadline".into());
    }
    xml::comment(&lines)
}

/// Scheduling settings of a thread as numbers of Linux: policy, priority or nice value, and a mask of CPUs.
fn settings(role: &RoleScheduling) -> String {
    let numbers = match role.policy {
        Some(Policy::Other { nice }) => Some((libc::SCHED_OTHER, nice)),
        Some(Policy::Batch { nice }) => Some((libc::SCHED_BATCH, nice)),
        Some(Policy::Idle) => Some((libc::SCHED_IDLE, 0)),
        Some(Policy::Fifo { priority }) => Some((libc::SCHED_FIFO, priority as i32)),
        Some(Policy::Rr { priority }) => Some((libc::SCHED_RR, priority as i32)),
        Some(Policy::Deadline { .. }) | None => None,
    };
    let policy = numbers.map_or(String::new(), |(policy, priority)| {
        element("scheduling_policy", &policy.to_string()) + &element("priority", &priority.to_string())
    });
    let mask: u64 = role.cpus.iter().flat_map(|c| &c.0).filter(|cpu| **cpu < 64).map(|cpu| 1 << cpu).sum();
    let cpus = if mask > 0 { element("affinity", &mask.to_string()) } else { String::new() };
    policy + &cpus
}
