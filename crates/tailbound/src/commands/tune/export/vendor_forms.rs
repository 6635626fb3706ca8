//! Forms for middleware: Cyclone DDS and Fast DDS as `driver export` writes them, and RTI Connext.

use super::super::changes::{Changes, Effect, EndName};
use super::page::{Page, home, of_end};
use crate::cli::{End, Vendor};
use crate::commands::export as vendor_export;
use crate::failure::Failure;
use tailbound_model::{Policy, RoleScheduling, Scheduling};

/// Options of drivers for the buffers of sockets, and the property of Connext.
const BUFFERS: [(&str, &str); 4] = [
    ("rcvbuf", "dds.transport.UDPv4.builtin.recv_socket_buffer_size"),
    ("socket_receive_buffer_size", "dds.transport.UDPv4.builtin.recv_socket_buffer_size"),
    ("sndbuf", "dds.transport.UDPv4.builtin.send_socket_buffer_size"),
    ("socket_send_buffer_size", "dds.transport.UDPv4.builtin.send_socket_buffer_size"),
];

/// The configuration of the end, with the options and the scheduling that it had in the trials with all kept changes. CPUs are in
/// it only if a kept change sets them.
pub fn configuration(changes: &Changes, end: EndName, vendor: Vendor) -> Result<Page, Failure> {
    let name = match vendor {
        Vendor::Cyclonedds => "cyclonedds",
        Vendor::Fastdds => "fastdds",
    };
    let mut page = Page::default();
    let effects = of_end(changes, end, &mut page);
    let mut is_said = false;
    for (setting, effect) in &effects {
        match effect {
            Effect::Threads { role, .. } if role.as_deref() != Some("main") => is_said = true,
            Effect::Option { driver, .. } if driver == name => is_said = true,
            effect => page.leave_out(setting, home(effect)),
        }
    }
    if !is_said {
        return Ok(page);
    }
    let spec = if end == EndName::Ping { changes.spec.clone() } else { changes.spec.of_pong() };
    let scheduling = scheduling(changes, end);
    let end = if end == EndName::Ping { End::Ping } else { End::Pong };
    let text = if spec.driver.name == name {
        page.note("The file is the whole configuration of the trials with the kept changes: read what else it sets.");
        vendor_export::with(&spec, &scheduling, end, vendor)?
    } else {
        page.note(format!(
            "Measured with the driver {}: only the scheduling of threads is in this output, by the roles of {name}, with which \
             it was not measured.",
            spec.driver.name
        ));
        vendor_export::threads(&spec, &scheduling, end, vendor)?
    };
    page.lines.push(text);
    Ok(page)
}

/// The scheduling of an end, with CPUs only if a kept change sets them.
fn scheduling(changes: &Changes, end: EndName) -> Scheduling {
    let of_end = if end == EndName::Ping { &changes.spec.ping } else { &changes.spec.pong };
    let mut scheduling = of_end.scheduling.clone();
    let sets_cpus = |effect: &Effect| matches!(effect, Effect::Threads { end: of, role: None, wanted } if *of == end && wanted.cpus.is_some());
    if !changes.effects().any(|(_, effect)| sets_cpus(effect)) {
        scheduling.cpus = None;
    }
    scheduling
}

/// A QoS profile of RTI Connext with the threads of the receiver pool, of events and of the database, and buffers of sockets.
pub fn connext(changes: &Changes, end: EndName) -> Page {
    let mut page = Page::default();
    let effects = of_end(changes, end, &mut page);
    let mut properties = Vec::new();
    let mut has_threads = false;
    for (setting, effect) in &effects {
        match effect {
            Effect::Threads { role, wanted, .. } if role.as_deref() != Some("main") => {
                let is_known = matches!(role.as_deref(), None | Some("middleware" | "receive" | "event"));
                match unknown_policy(wanted) {
                    _ if !is_known => page.leave_out(setting, "no thread of Connext has this role"),
                    Some(policy) => {
                        page.leave_out(
                            setting,
                            format!("Connext gives a thread a real-time priority only, not `{policy}`"),
                        );
                    }
                    None => has_threads = true,
                }
            }
            Effect::Option { key, value, .. } => match BUFFERS.iter().find(|(option, _)| option == key) {
                Some((_, property)) => properties.push((*property, value.clone())),
                None => page.leave_out(setting, home(effect)),
            },
            effect => page.leave_out(setting, home(effect)),
        }
    }
    let threads = if has_threads { threads(&scheduling(changes, end)) } else { String::new() };
    if !properties.is_empty() || !threads.is_empty() {
        page.note(format!("For the participants of the program at the {} end.", end.word()));
        page.note(
            "Never run: Tailbound has no driver for RTI Connext. PRIORITY_ENFORCE makes the creation fail if the priority is not \
             permitted.",
        );
        page.lines.push(vendor_export::indented(&profile(&threads, &properties)));
    }
    page
}

fn unknown_policy(wanted: &RoleScheduling) -> Option<Policy> {
    wanted.policy.filter(|policy| !matches!(policy, Policy::Fifo { .. }))
}

/// Settings of the threads by the policies and CPUs of the roles.
fn threads(scheduling: &Scheduling) -> String {
    let one = |(element, role): (&str, &str)| {
        let RoleScheduling { policy, cpus } = scheduling.of_role(role, true);
        let mut inside = String::new();
        if let Some(Policy::Fifo { priority }) = policy {
            inside += "<mask>STDIO|FLOATING_POINT|REALTIME_PRIORITY|PRIORITY_ENFORCE</mask>";
            inside += &format!("<priority>{priority}</priority>");
        }
        if let Some(cpus) = cpus {
            let cpus: String = cpus.0.iter().map(|cpu| format!("<element>{cpu}</element>")).collect();
            inside += &format!("<cpu_list>{cpus}</cpu_list>");
        }
        if inside.is_empty() { inside } else { format!("<{element}><thread>{inside}</thread></{element}>") }
    };
    [("receiver_pool", "receive"), ("event", "event"), ("database", "database")].map(one).concat()
}

fn profile(threads: &str, properties: &[(&str, String)]) -> String {
    let one = |(name, value): &(&str, String)| {
        format!("<element><name>{name}</name><value>{}</value></element>", vendor_export::escape(value))
    };
    let properties: String = properties.iter().map(one).collect();
    let property = match properties.is_empty() {
        true => String::new(),
        false => format!("<property><value>{properties}</value></property>"),
    };
    format!(
        "<dds><qos_library name=\"tailbound\"><qos_profile name=\"kept\"><domain_participant_qos>{threads}{property}\
         </domain_participant_qos></qos_profile></qos_library></dds>"
    )
}
