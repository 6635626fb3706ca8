//! Proposals about socket buffers, queue disciplines, interfaces and reliable writers.

use crate::case::{Case, Proposal};
use tailbound_document::CauseWord;
use tailbound_model::{DEFAULT_QUEUE, PathSpec, PlaceSpec, ReceiveMode};

/// Receive buffers that hold this many messages are large enough for a burst.
const BURST_MESSAGES: u64 = 4096;
/// Memory that the kernel charges for a small datagram, bytes.
const LEAST_CHARGE_BYTES: u64 = 2304;
/// Smallest and largest receive buffer that is proposed, bytes.
const BUFFER_BYTES: (u64, u64) = (8 << 20, 64 << 20);
/// Priority of a socket that the kernel's default queue discipline (`pfifo_fast`) sends first without a privilege.
const FIRST_PRIORITY: u32 = 6;

/// Option of a driver for the size of its receive buffer.
fn receive_option(driver: &str) -> Option<&'static str> {
    match driver {
        "udp" => Some("rcvbuf"),
        "cyclonedds" | "fastdds" | "ros2" => Some("socket_receive_buffer_size"),
        _ => None,
    }
}

/// Size of a receive buffer that holds a burst of messages, bytes.
fn buffer_bytes(case: &Case<'_>, option: &str) -> u64 {
    let of_message = case.situation.spec.message_bytes() + LEAST_CHARGE_BYTES;
    let now = case.driver_of(case.end()).options.get(option).and_then(|size| size.parse::<u64>().ok()).unwrap_or(0);
    (of_message * BURST_MESSAGES).max(4 * now).next_power_of_two().clamp(BUFFER_BYTES.0, BUFFER_BYTES.1)
}

/// A larger receive buffer of the driver, with the limit of the kernel that permits it.
pub(crate) fn receive_buffer(case: &Case<'_>) -> Vec<Proposal> {
    let end = case.end();
    let Some(option) = receive_option(case.driver_of(end).family()) else {
        let text = format!("Let the middleware of the {end} end ask for a larger receive buffer.");
        return vec![Proposal::by_hand(0.8, text)];
    };
    let bytes = buffer_bytes(case, option);
    let mut settings = Vec::new();
    if case.number("net.core.rmem_max").is_none_or(|most| (most as u64) < bytes) {
        settings.push(format!("host.sysctl.net.core.rmem_max={bytes}"));
    }
    settings.push(format!("{}={bytes}", case.driver_key(end, option)));
    let text = format!("Give the {end} end a receive buffer of {} MiB.", bytes >> 20);
    vec![Proposal::new(settings, if case.is_cause(CauseWord::SocketQueue) { 0.3 } else { 1.0 }, text)]
}

/// A larger limit of receive buffers, for middleware that asks for as much as it gets.
pub(crate) fn rmem_max(case: &Case<'_>) -> Vec<Proposal> {
    let bytes = BUFFER_BYTES.0;
    let enough = case.number("net.core.rmem_max").is_some_and(|most| most as u64 >= bytes);
    if enough || case.sets_host("host.sysctl.net.core.rmem_max") {
        return Vec::new();
    }
    let text = format!("Permit receive buffers of {} MiB (net.core.rmem_max).", bytes >> 20);
    vec![Proposal::new(vec![format!("host.sysctl.net.core.rmem_max={bytes}")], 0.4, text)]
}

/// A thread for each socket, or a thread that polls, reads sooner.
pub(crate) fn receive_threads(case: &Case<'_>) -> Vec<Proposal> {
    let end = case.end();
    let driver = case.driver_of(end);
    let is_single = driver.options.get("receive_threads").is_none_or(|of| of == "single");
    if driver.family() != "cyclonedds" || !is_single {
        return Vec::new();
    }
    let text = format!("Give each socket of the {end} end a receive thread of its own.");
    vec![Proposal::new(vec![format!("{}=multiple", case.driver_key(end, "receive_threads"))], 0.6, text)]
}

/// Blocking threads of the end in place of a callback: a shorter way to the socket.
pub(crate) fn receive_block(case: &Case<'_>) -> Vec<Proposal> {
    if case.situation.spec.measure.receive() != ReceiveMode::Listener || case.situation.spec.is_one_session() {
        return Vec::new();
    }
    let text = "Receive in a thread of the end that blocks until a message arrives.".to_owned();
    vec![Proposal::new(vec!["measure.receive=block".into()], 0.2, text)]
}

/// Priority of the packets of the driver, for queue disciplines that send by priority.
pub(crate) fn packet_priority(case: &Case<'_>) -> Vec<Proposal> {
    // The packets that waited towards an end were sent by the other one.
    let sender = case.other_end();
    let driver = case.driver_of(sender);
    let has = |key: &str| driver.options.contains_key(key);
    // A packet that crosses a pair of virtual interfaces into another network namespace loses its priority
    // (`____dev_forward_skb` of include/linux/netdevice.h).
    let loses_priority = case.spec_of(sender).place != PlaceSpec::Process && is_elsewhere(case);
    if driver.name != "udp" || has("priority") || loses_priority {
        return Vec::new();
    }
    let by = case.by().map_or("the queue discipline".to_owned(), |by| format!("`{}`", by.name));
    let text =
        format!("Give the packets of the messages the priority {FIRST_PRIORITY}, so that {by} sends them first.");
    let is = |kinds: &[&str]| case.by().is_some_and(|by| kinds.iter().any(|kind| by.name.starts_with(kind)));
    let fit = if is(&["pfifo_fast", "prio", "mqprio", "taprio"]) {
        1.0
    } else if is(&["tbf", "htb"]) {
        // The packets wait in another queue discipline below it, which can have bands.
        0.6
    } else {
        // A queue discipline without bands does not look at priorities.
        0.35
    };
    vec![Proposal::new(vec![format!("{}={FIRST_PRIORITY}", case.driver_key(sender, "priority"))], fit, text)]
}

/// Priority of the messages for the transport of a DDS.
pub(crate) fn transport_priority(case: &Case<'_>) -> Vec<Proposal> {
    let is_dds = ["cyclonedds", "fastdds"].contains(&case.driver_of(case.other_end()).family());
    if !is_dds || case.situation.spec.qos.contains_key("transport_priority") {
        return Vec::new();
    }
    let text =
        "Give the messages the transport priority 10, which the middleware can pass on to its packets.".to_owned();
    vec![Proposal::new(vec!["qos.transport_priority=10".into()], 0.3, text)]
}

/// Traffic classes with transmit queues of their own, in place of a queue that all packets share.
pub(crate) fn shaping(case: &Case<'_>) -> Vec<Proposal> {
    let sender = case.other_end();
    let end = case.spec_of(sender);
    let spec = case.situation.spec;
    let is_existing = matches!(spec.path, PathSpec::Existing { .. });
    let is_made = matches!(spec.path, PathSpec::Veth { delay: None, .. } | PathSpec::Bridge { .. });
    let place_fits = match end.place {
        PlaceSpec::Netns => is_made,
        PlaceSpec::Process | PlaceSpec::ExistingNetns(_) => is_existing,
        _ => false,
    };
    let driver = case.driver_of(sender);
    if !place_fits || end.gates.is_some() || end.shaping.is_some() || driver.name != "udp" {
        return Vec::new();
    }
    let replace = if is_existing { ", replace: yes" } else { "" };
    let classes = format!("[{{ name: rest }}, {{ name: messages, priorities: [{FIRST_PRIORITY}] }}]");
    let settings = vec![
        format!("ends.{sender}.shaping={{ classes: {classes}{replace} }}"),
        format!("{}={FIRST_PRIORITY}", case.driver_key(sender, "priority")),
    ];
    let text = format!(
        "Give the messages a transmit queue of their own at the {sender} end, and their packets the priority {FIRST_PRIORITY}."
    );
    vec![Proposal::new(settings, if is_elsewhere(case) { 0.1 } else { 0.8 }, text)]
}

/// Whether the packets wait at another device than the interface of their sender, e.g. at a port of a bridge.
fn is_elsewhere(case: &Case<'_>) -> bool {
    match (&case.situation.spec.path, queue_of_cause(case)) {
        (PathSpec::Existing { ping, pong }, Some((_, device))) => {
            let own = if case.other_end() == "ping" { ping } else { pong };
            own.interface.as_deref().is_some_and(|interface| interface != device)
        }
        _ => false,
    }
}

/// Kind of the queue discipline in which the packets waited, and name of its device.
fn queue_of_cause<'a>(case: &Case<'a>) -> Option<(&'a str, &'a str)> {
    case.by().and_then(|by| by.name.split_once(" of "))
}

/// Another queue discipline at the device: none that limits the rate, or one in which streams take turns.
pub(crate) fn other_queue(case: &Case<'_>) -> Vec<Proposal> {
    let Some((kind, device)) = queue_of_cause(case) else { return Vec::new() };
    let is_here =
        |place: &PlaceSpec| matches!(place, PlaceSpec::Process | PlaceSpec::Netns | PlaceSpec::ExistingNetns(_));
    let spec = case.situation.spec;
    // Interfaces that Tailbound makes have other names in each trial.
    let is_existing = matches!(spec.path, PathSpec::Existing { .. });
    if !is_existing || !(is_here(&spec.ping.place) || is_here(&spec.pong.place)) {
        return Vec::new();
    }
    let key = format!("host.queue.{device}");
    if case.sets_host(&key) {
        return Vec::new();
    }
    let (value, fit, text) = match kind {
        "tbf" => (
            DEFAULT_QUEUE,
            0.9,
            format!("Remove the queue discipline {kind} of the device `{device}`, which holds packets back."),
        ),
        "pfifo" | "bfifo" | "pfifo_fast" | "codel" => {
            ("fq_codel", 0.7, format!("Let streams take turns at the device `{device}`, in place of {kind}."))
        }
        // Streams take turns already, or the options could not be restored.
        _ => return Vec::new(),
    };
    vec![Proposal::new(vec![format!("{key}={value}")], fit, text)]
}

/// A smaller send buffer, so that fewer packets of the end itself wait.
pub(crate) fn send_buffer(case: &Case<'_>) -> Vec<Proposal> {
    let sender = case.other_end();
    let driver = case.driver_of(sender);
    let option = match driver.family() {
        "udp" => "sndbuf",
        "cyclonedds" => "socket_send_buffer_size",
        _ => return Vec::new(),
    };
    if driver.options.contains_key(option) {
        return Vec::new();
    }
    let text = format!("Give the {sender} end a send buffer of 64 KiB, so that fewer of its packets wait.");
    vec![Proposal::new(vec![format!("{}=65536", case.driver_key(sender, option))], 0.15, text)]
}

/// A queue discipline that holds packets back, by hand.
pub(crate) fn discipline(case: &Case<'_>) -> Vec<Proposal> {
    let Some(by) = case.by() else { return Vec::new() };
    let (kind, device) = queue_of_cause(case).unwrap_or(("", by.name.as_str()));
    let text = match kind {
        "netem" | "tbf" => format!(
            "Replace the queue discipline {kind} of the device `{device}`, which holds packets back, or give the messages a \
             band of their own (`tc qdisc replace dev {device} root handle 1: prio`)."
        ),
        "" => format!("Give the messages a queue of their own at the device `{device}`."),
        _ => format!(
            "Give the messages a band of their own at the device `{device}`, in place of {kind} (`tc qdisc replace dev {device} \
             root handle 1: prio`)."
        ),
    };
    vec![Proposal::by_hand(0.7, text)]
}

/// Messages that meet the window of their gate.
pub(crate) fn offset(case: &Case<'_>) -> Vec<Proposal> {
    let text = "Move `stream.offset` so that messages are due shortly before the gate of their class opens.".to_owned();
    match case.situation.spec.stream {
        Some(_) => vec![Proposal::by_hand(0.8, text)],
        None => Vec::new(),
    }
}

/// The thread that receives polls the device itself.
pub(crate) fn busy_poll(case: &Case<'_>) -> Vec<Proposal> {
    let is_made = matches!(
        case.situation.spec.path,
        PathSpec::Loopback | PathSpec::Veth { .. } | PathSpec::Bridge { .. } | PathSpec::Datagram { .. }
    );
    if case.sets_host("host.sysctl.net.core.busy_read") {
        return Vec::new();
    }
    // Only drivers of network cards can be polled.
    let fit = if is_made { 0.05 } else { 0.5 };
    let text = "Let a thread that reads a socket poll the network card for 50 us.".to_owned();
    vec![Proposal::new(vec!["host.sysctl.net.core.busy_read=50".into()], fit, text)]
}

/// A longer backlog of a CPU for received packets.
pub(crate) fn backlog(case: &Case<'_>) -> Vec<Proposal> {
    if case.sets_host("host.sysctl.net.core.netdev_max_backlog") {
        return Vec::new();
    }
    let text = "Let each CPU keep 20,000 received packets (net.core.netdev_max_backlog).".to_owned();
    vec![Proposal::new(vec!["host.sysctl.net.core.netdev_max_backlog=20000".into()], 1.0, text)]
}

/// More memory for fragments of datagrams.
pub(crate) fn fragments(case: &Case<'_>) -> Vec<Proposal> {
    if case.sets_host("host.sysctl.net.ipv4.ipfrag_high_thresh") {
        return Vec::new();
    }
    let text = "Give fragments of datagrams 16 MiB of memory (net.ipv4.ipfrag_high_thresh).".to_owned();
    vec![Proposal::new(vec!["host.sysctl.net.ipv4.ipfrag_high_thresh=16777216".into()], 0.8, text)]
}

/// Interrupts of a network card without delay.
pub(crate) fn coalescing(case: &Case<'_>) -> Vec<Proposal> {
    let PathSpec::Existing { ping, pong } = &case.situation.spec.path else { return Vec::new() };
    let side = if case.end() == "ping" { ping } else { pong };
    let Some(interface) = &side.interface else { return Vec::new() };
    let text = format!("Let the network card `{interface}` raise its receive interrupt without delay.");
    let key = format!("host.nic.{interface}");
    vec![Proposal::new(vec![format!("{key}={{ adaptive_rx: off, coalesce_rx: 0 us }}")], 0.5, text)]
}

/// Messages that are not acknowledged.
pub(crate) fn best_effort(case: &Case<'_>) -> Vec<Proposal> {
    let is_reliable = case.situation.spec.qos.get("reliability").is_none_or(|of| of.starts_with("reliable"));
    if case.driver_of(case.end()).name == "udp" || !is_reliable {
        return Vec::new();
    }
    let fit = if case.is_cause(CauseWord::Retransmission) { 0.3 } else { 0.6 };
    let text =
        "Send best effort, so that no message waits for an earlier one; lost messages then stay lost.".to_owned();
    vec![Proposal::new(vec!["qos.reliability=best-effort".into()], fit, text)]
}

/// A history that keeps only the last message, so that a writer does not wait for acknowledgements.
pub(crate) fn keep_last(case: &Case<'_>) -> Vec<Proposal> {
    let keeps_all = case.situation.spec.qos.get("history").is_some_and(|of| of == "keep-all");
    if !keeps_all {
        return Vec::new();
    }
    let text = "Keep the last 16 messages, so that the writer does not wait for acknowledgements of all.".to_owned();
    vec![Proposal::new(vec!["qos.history={ keep-last: 16 }".into()], 0.8, text)]
}
