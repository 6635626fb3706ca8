//! Rules for queue disciplines, launch times and policing at the interfaces of the ends.

use crate::error::Fault;
use crate::resolve::Places;
use tailbound_model::{
    EndSpec, GatesBy, GatesSpec, KnobSpec, LaunchBy, LaunchMode, LaunchSpec, PathSpec, PlaceSpec, PoliceOnly, TrialSpec,
};

/// Refuses gates where they cannot be set or read: on an interface that Tailbound makes, only the kernel opens and closes gates, in
/// network namespaces; interfaces of the user belong to an existing path on this host.
pub(super) fn gates(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let ends = [("ping", &spec.ping, &at.ping), ("pong", &spec.pong, &at.pong)];
    ends.into_iter().find_map(|(name, end, at)| {
        let gates = end.gates.as_ref()?;
        let fault = |reason: String, help: &str| Some(Fault::new(at.gates, reason).help(help));
        match &spec.path {
            PathSpec::Existing { .. } => match end.place {
                PlaceSpec::Process | PlaceSpec::ExistingNetns(_) => None,
                _ => fault(
                    format!("gates are set and read on this host, and the {name} end has the place {}", end.place),
                    "write `place: process` or `place: { existing-netns: NAME }`, or remove `gates`",
                ),
            },
            path if gates.by == GatesBy::Existing => fault(
                format!("existing gates belong to an existing interface, and the path is {path}"),
                "write `path: existing` with the interfaces, or remove `by`",
            ),
            path => match without_interface(path) {
                None => made_gates((name, end, gates), path, fault),
                Some(why) => fault(
                    format!("gates need an interface that Tailbound creates or an existing one: {why}"),
                    "write `path: veth`, `path: bridge` or `path: existing`, or remove `gates`",
                ),
            },
        }
    })
}

/// Refuses gates that an interface which Tailbound makes cannot have.
fn made_gates(
    (name, end, gates): (&str, &EndSpec, &GatesSpec),
    path: &PathSpec,
    fault: impl Fn(String, &str) -> Option<Fault>,
) -> Option<Fault> {
    if gates.by == GatesBy::Offload {
        let reason =
            format!("no network card opens and closes the gates of an interface that Tailbound creates ({path})");
        return fault(reason, "write `path: existing` with the interface of a network card, or remove `by`");
    }
    if gates.replace {
        let reason = format!("an interface that Tailbound creates has no queue discipline to replace ({path})");
        return fault(reason, "remove `replace`");
    }
    if matches!(path, PathSpec::Veth { delay: Some(_), .. }) {
        let reason = "an interface has one queue discipline: it can have gates or a delay";
        return fault(reason.into(), "remove `gates`, or `delay` of the path");
    }
    if end.place != PlaceSpec::Netns {
        let reason = format!("gates are made in network namespaces, and the {name} end has the place {}", end.place);
        return fault(reason, "write `place: netns`, or remove `gates`");
    }
    None
}

/// Refuses traffic classes on an interface that neither Tailbound creates nor the user has on this host, and beside another queue
/// discipline.
pub(super) fn shaping(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let ends = [("ping", &spec.ping, &at.ping), ("pong", &spec.pong, &at.pong)];
    ends.into_iter().find_map(|(name, end, at)| {
        let shaping = end.shaping.as_ref()?;
        let fault = |reason: String, help: &str| Some(Fault::new(at.shaping, reason).help(help));
        let launches = name == "ping" && spec.stream.is_some_and(|stream| stream.launch.is_some());
        match &spec.path {
            PathSpec::Veth { delay: Some(_), .. } => fault(
                "an interface has one queue discipline: it can have `shaping` or a delay".into(),
                "remove `shaping`, or `delay` of the path",
            ),
            PathSpec::Existing { .. } if !matches!(end.place, PlaceSpec::Process | PlaceSpec::ExistingNetns(_)) => fault(
                format!("`shaping` is set on this host, and the {name} end has the place {}", end.place),
                "write `place: process` or `place: { existing-netns: NAME }`, or remove `shaping`",
            ),
            path => match not_created("shaping", name, end, path) {
                Some((reason, help)) if !matches!(path, PathSpec::Existing { .. }) => fault(reason, &help),
                None if shaping.replace => fault(
                    format!("an interface that Tailbound creates has no queue discipline to replace ({path})"),
                    "remove `replace`",
                ),
                _ if end.gates.is_some() || launches => fault(
                    format!(
                        "an interface has one queue discipline: the {name} end can have `shaping`, `gates` or launch times"
                    ),
                    "remove all but one of them",
                ),
                _ => None,
            },
        }
    })
}

/// Refuses a queue discipline under `host` for the interface of an end that gets another one.
pub(super) fn two_at_one_interface(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let PathSpec::Existing { ping, pong } = &spec.path else { return None };
    let launches = spec.stream.is_some_and(|stream| stream.launch.is_some());
    let ends = [(&spec.ping, ping, &at.ping), (&spec.pong, pong, &at.pong)];
    ends.into_iter().enumerate().find_map(|(number, (end, side, places))| {
        let (other, pos) = match (&end.gates, &end.shaping) {
            (Some(_), _) => ("gates", places.gates),
            (None, Some(_)) => ("shaping", places.shaping),
            (None, None) if number == 0 && launches => ("launch times", at.stream),
            _ => return None,
        };
        let is_its = |knob: &&KnobSpec| matches!(knob, KnobSpec::Queue { interface, .. } if side.interface.as_ref() == Some(interface));
        let key = spec.host.iter().find(is_its)?.key();
        let reason = format!("an interface has one queue discipline: it can have {other} or `{key}`");
        Some(Fault::new(pos, reason).help("remove one of the two"))
    })
}

/// Why an end has no interface of its own that Tailbound creates, as `key` needs it, and what to do.
fn not_created(key: &str, name: &str, end: &EndSpec, path: &PathSpec) -> Option<(String, String)> {
    match without_interface(path) {
        None if end.place == PlaceSpec::Netns => None,
        None => Some((
            format!("`{key}` needs a network namespace, and the {name} end has the place {}", end.place),
            format!("write `place: netns`, or remove `{key}`"),
        )),
        Some(why) if key == "police" => Some((
            format!("`{key}` needs an interface that Tailbound creates: {why}"),
            format!("write `path: veth` or `path: bridge`, or remove `{key}`"),
        )),
        Some(why) => Some((
            format!("`{key}` needs an interface that Tailbound creates or an existing one: {why}"),
            format!("write `path: veth`, `path: bridge` or `path: existing`, or remove `{key}`"),
        )),
    }
}

/// Why Tailbound creates no interface with transmit queues for an end in a network namespace on this path; `None` = it creates one, which
/// is a side of a veth pair.
fn without_interface(path: &PathSpec) -> Option<String> {
    match path {
        PathSpec::Veth { .. }
        | PathSpec::Bridge { .. }
        | PathSpec::Macvtap { .. }
        | PathSpec::Xdp { .. }
        | PathSpec::OpenVswitch { .. } => None,
        PathSpec::Loopback => Some("the path is loopback, whose interface has one transmit queue".to_owned()),
        PathSpec::Datagram { .. } => Some(format!(
            "the path is {path}, which joins two guests, and the interfaces in them belong to their kernels"
        )),
        PathSpec::Existing { .. } => Some(format!("the path is {path}, whose interfaces belong to the user")),
    }
}

/// Refuses a stream of ends without a clock of their own, and launch times on interfaces that Tailbound does not create.
pub(super) fn stream(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let stream = spec.stream?;
    let fault = |reason: String, help: &str| Some(Fault::new(at.stream, reason).help(help));
    if spec.measure.flow().is_some() {
        return fault("`stream` applies to ping-pong only".into(), "remove `stream`, or measure `ping-pong`");
    }
    // Which tools send at such times is known to the crate that runs them.
    if spec.driver.name == "null" {
        let reason = format!("`{}` does not send at times of CLOCK_TAI", spec.driver.name);
        return fault(reason, "remove `stream`, or name another driver");
    }
    let launch = stream.launch?;
    if matches!(spec.path, PathSpec::Veth { delay: Some(_), .. }) {
        let reason = "an interface has one queue discipline: it can have launch times or a delay";
        return fault(reason.into(), "remove `launch`, or `delay` of the path");
    }
    launch_place(&spec.ping, &spec.path, launch)
        .or_else(|| below_gates(spec.ping.gates.as_ref()?, launch))
        .and_then(|(reason, help)| fault(reason, &help))
}

/// Why the interface of the ping cannot have launch times, and what to do.
fn launch_place(ping: &EndSpec, path: &PathSpec, launch: LaunchSpec) -> Option<(String, String)> {
    let found = |reason: String, help: &str| Some((reason, help.to_owned()));
    if matches!(path, PathSpec::Existing { .. }) {
        return match &ping.place {
            PlaceSpec::Process | PlaceSpec::ExistingNetns(_) => None,
            place => found(
                format!("launch times are set and read on this host, and the ping has the place {place}"),
                "write `place: process` or `place: { existing-netns: NAME }`, or remove `launch`",
            ),
        };
    }
    not_created("launch", "ping", ping, path).or_else(|| match launch {
        LaunchSpec { by: LaunchBy::Existing, .. } => found(
            format!("an existing queue with launch times belongs to an existing interface, and the path is {path}"),
            "write `path: existing` with the interfaces, or remove `by`",
        ),
        LaunchSpec { replace: true, .. } => found(
            format!("an interface that Tailbound creates has no queue discipline to replace ({path})"),
            "remove `replace`",
        ),
        _ => None,
    })
}

/// Why an interface with gates cannot have launch times of the messages, and what to do.
fn below_gates(gates: &GatesSpec, launch: LaunchSpec) -> Option<(String, String)> {
    let found = |reason: &str, help: &str| Some((reason.to_owned(), help.to_owned()));
    match (gates.by, launch.by) {
        (GatesBy::Existing, LaunchBy::Existing) => None,
        (GatesBy::Existing, LaunchBy::Etf) => found(
            "the gates of the ping are only read, so that no queue with launch times can be set below them",
            "set up `etf` below the gates (tc), and write `by: existing` in `launch` too, or remove `launch`",
        ),
        (_, LaunchBy::Existing) => found(
            "the gates of the ping take the place of all queue disciplines of its interface, also of the queue with launch times",
            "remove `by` of `launch`, or write `by: existing` in `gates` too",
        ),
        (GatesBy::Offload, LaunchBy::Etf) => found(
            "gates by `offload` are on the clock of the network card, and Tailbound sets launch times of CLOCK_TAI below gates of this \
             clock only",
            "set up both queue disciplines (tc), and write `by: existing` in `gates` and in `launch`, or remove `launch`",
        ),
        (GatesBy::Software | GatesBy::Assist { .. }, LaunchBy::Etf) if launch.replace => found(
            "the ping has gates, whose key `replace` says whether a queue discipline of its interface is replaced",
            "remove `replace` of `launch`, and write `replace: yes` in `gates`",
        ),
        (GatesBy::Assist { .. }, LaunchBy::Etf) if launch.mode == LaunchMode::Deadline => found(
            "gates by `assist` are kept by the launch times alone, and a launch time in the mode `deadline` lets a message leave before \
             its gate opens",
            "remove `mode`, or write `by: software` in the `gates` of the ping",
        ),
        (GatesBy::Assist { ahead }, LaunchBy::Etf) if ahead != launch.ahead => Some((
            format!(
                "gates by `assist` and launch times have the same queues, which would give frames to the device {ahead} and {} before \
                 their launch times",
                launch.ahead
            ),
            format!("write the same `ahead` in `gates: {{ by: {{ assist: {{ ahead: {ahead} }} }} }}` and in `launch`"),
        )),
        // Their queues take frames of all sockets, because `taprio` gives launch times to those that have none.
        (GatesBy::Assist { .. }, LaunchBy::Etf) => None,
        (GatesBy::Software, LaunchBy::Etf) => shared_class(gates, launch),
    }
}

/// The class of the messages has frames of others, which its queues would drop.
fn shared_class(gates: &GatesSpec, launch: LaunchSpec) -> Option<(String, String)> {
    let class = gates.classes.iter().find(|class| class.priorities.contains(&launch.priority))?;
    let others = class.priorities.iter().filter(|priority| **priority != launch.priority).map(u8::to_string);
    let others = others.collect::<Vec<_>>().join(", ");
    if others.is_empty() {
        return None;
    }
    let reason = format!(
        "the messages have launch times, and their class `{}` has other priorities too ({others}): its queue would drop everything \
         that has no launch time",
        class.name
    );
    let help =
        format!("give the messages a class of their own: `{{ name: stream, priorities: [{}] }}`", launch.priority);
    Some((reason, help))
}

/// Name of the driver of an end if it is not `udp`.
fn other_driver<'a>(spec: &'a TrialSpec, end: &str) -> Option<&'a str> {
    let of_pong = spec.pong_driver.as_ref().filter(|_| end == "pong");
    Some(of_pong.unwrap_or(&spec.driver).name.as_str()).filter(|name| *name != "udp")
}

/// Refuses policing on an interface that Tailbound does not create, and of messages whose losses are not named one by one.
pub(super) fn police(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let ends = [("ping", &spec.ping, &at.ping), ("pong", &spec.pong, &at.pong)];
    ends.into_iter().find_map(|(name, end, at)| {
        let police = end.police.as_ref()?;
        let fault = |reason: String, help: &str| Some(Fault::new(at.police, reason).help(help));
        if spec.measure.flow().is_some() || spec.has_tool() || spec.driver.name == "null" {
            let reason = "`police` applies to ping-pong between the ends of a driver that sends packets".to_owned();
            return fault(reason, "remove `police`, or measure `ping-pong` with another driver");
        }
        // No other driver has one port for its messages alone.
        if let (Some(PoliceOnly::Messages), Some(driver)) = (police.only, other_driver(spec, name)) {
            let reason =
                format!("`only: messages` needs the port of the messages, which the driver `{driver}` does not say");
            return fault(
                reason,
                "write `only: { port: NUMBER }` with a port of the middleware, or use the driver `udp`",
            );
        }
        not_created("police", name, end, &spec.path).and_then(|(reason, help)| fault(reason, &help))
    })
}
