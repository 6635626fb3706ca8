//! Rules for queue disciplines, launch times and policing at the interfaces of the ends.

use crate::error::Fault;
use crate::resolve::Places;
use tailbound_model::{EndSpec, GatesBy, GatesSpec, LaunchSpec, PathSpec, PlaceSpec, TrialSpec};

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
            path @ (PathSpec::Veth { .. } | PathSpec::Bridge { .. }) => made_gates((name, end, gates), path, fault),
            path => fault(
                format!("gates need an interface that Tailbound creates or an existing one, and the path is {path}"),
                "write `path: veth`, `path: bridge` or `path: existing`, or remove `gates`",
            ),
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

/// Why an end has no interface of its own that Tailbound creates, as `key` needs it, and what to do.
fn not_created(key: &str, name: &str, end: &EndSpec, path: &PathSpec) -> Option<(String, String)> {
    match path {
        PathSpec::Veth { .. } | PathSpec::Bridge { .. } if end.place == PlaceSpec::Netns => None,
        PathSpec::Veth { .. } | PathSpec::Bridge { .. } => Some((
            format!("`{key}` needs a network namespace, and the {name} end has the place {}", end.place),
            format!("write `place: netns`, or remove `{key}`"),
        )),
        path => Some((
            format!("`{key}` needs an interface that Tailbound creates, and the path is {path}"),
            format!("write `path: veth` or `path: bridge`, or remove `{key}`"),
        )),
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
    if !matches!(spec.path, PathSpec::Veth { .. } | PathSpec::Bridge { .. }) {
        let reason = format!("launch times need an interface that Tailbound creates, and the path is {}", spec.path);
        return fault(reason, "write `path: veth` or `path: bridge`, or remove `launch`");
    }
    if spec.ping.place != PlaceSpec::Netns {
        let reason = format!("launch times need a network namespace, and the ping has the place {}", spec.ping.place);
        return fault(reason, "write `place: netns`, or remove `launch`");
    }
    spec.ping.gates.as_ref().and_then(|gates| below_gates(gates, launch, fault))
}

/// Refuses launch times of the messages of an interface with gates that cannot keep them.
fn below_gates(gates: &GatesSpec, launch: LaunchSpec, fault: impl Fn(String, &str) -> Option<Fault>) -> Option<Fault> {
    if matches!(gates.by, GatesBy::Assist { .. }) {
        let reason = "gates by `assist` give each frame of the ping a launch time of their own".to_owned();
        return fault(reason, "write `by: software` in the `gates` of the ping, or remove `launch`");
    }
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
    fault(reason, &help)
}

/// Refuses policing on an interface that Tailbound does not create, and of messages whose losses are not named one by one.
pub(super) fn police(spec: &TrialSpec, at: &Places) -> Option<Fault> {
    let ends = [("ping", &spec.ping, &at.ping), ("pong", &spec.pong, &at.pong)];
    ends.into_iter().find_map(|(name, end, at)| {
        end.police.as_ref()?;
        let fault = |reason: String, help: &str| Some(Fault::new(at.police, reason).help(help));
        if spec.measure.flow().is_some() || spec.has_tool() || spec.driver.name == "null" {
            let reason = "`police` applies to ping-pong between the ends of a driver that sends packets".to_owned();
            return fault(reason, "remove `police`, or measure `ping-pong` with another driver");
        }
        not_created("police", name, end, &spec.path).and_then(|(reason, help)| fault(reason, &help))
    })
}
