//! Explains why a pod of a Kubernetes cluster no longer runs.

use super::{last, told};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Event, Node, Pod as PodObject};
use kube::ResourceExt;

/// Explains why an existing pod has ended, or is ending.
pub(crate) fn ended(pod: &PodObject) -> Option<String> {
    let name = pod.name_any();
    let status = pod.status.clone().unwrap_or_default();
    let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or("its node").to_owned();
    let said = told(status.message.as_deref());
    let why = match status.reason.as_deref() {
        Some("Evicted") => Some(format!("the pod {name} was evicted by node {node}{said}")),
        Some("DeadlineExceeded") => Some(format!("the pod {name} was ended at its time limit{said}")),
        Some("NodeLost") => Some(format!("node {node} of the pod {name} is lost{said}")),
        Some("Terminated" | "NodeShutdown" | "Shutdown") => {
            Some(format!("node {node} of the pod {name} shuts down{said}"))
        }
        Some(reason) if status.phase.as_deref() == Some("Failed") => {
            Some(format!("node {node} refuses the pod {name} ({reason}{said})"))
        }
        _ => None,
    };
    if why.is_some() {
        return why;
    }
    let container = status.container_statuses.iter().flatten().next();
    let terminated = container.and_then(|c| c.state.as_ref()).and_then(|s| s.terminated.as_ref());
    if pod.metadata.deletion_timestamp.is_some() {
        let disrupted =
            status.conditions.iter().flatten().find(|c| c.type_ == "DisruptionTarget" && c.status == "True");
        return Some(match disrupted {
            Some(c) => format!(
                "the pod {name} is being removed ({}{})",
                c.reason.as_deref().unwrap_or_default(),
                told(c.message.as_deref())
            ),
            None => deleted(&name, &[]),
        });
    }
    if let Some(terminated) = terminated {
        return Some(container_ended(&name, &node, pod, terminated));
    }
    match status.phase.as_deref() {
        Some("Failed" | "Succeeded") => Some(format!("the pod {name} has ended{said}")),
        _ => None,
    }
}

/// Explains why a pod was evicted, from the events of its node. The node reports an event immediately, and writes the
/// reason into the pod a little later.
pub(crate) fn evicted(pod: &PodObject, events: &[Event]) -> Option<String> {
    let known = pod.status.as_ref().is_some_and(|s| s.reason.is_some());
    let event = last(events, &["Evicted", "Preempted", "Preempting"]).filter(|_| !known)?;
    let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or("its node");
    Some(format!("the pod {} was evicted by node {node}{}", pod.name_any(), told(event.message.as_deref())))
}

fn container_ended(name: &str, node: &str, pod: &PodObject, end: &ContainerStateTerminated) -> String {
    let said = told(end.message.as_deref());
    match (end.reason.as_deref(), end.exit_code) {
        (Some("OOMKilled"), _) => {
            let limits = pod.spec.as_ref().and_then(|s| s.containers.first()).and_then(|c| c.resources.clone());
            let memory = limits.and_then(|r| r.limits).and_then(|l| l.get("memory").map(|m| m.0.clone()));
            let had = memory.map_or_else(String::new, |m| format!(": it had {m}"));
            format!("the pod {name} was killed, because its memory was not enough{had}")
        }
        (Some("StartError" | "ContainerCannotRun"), _) => {
            let said = told(end.message.as_deref().map(super::innermost));
            format!("node {node} cannot start the container of the pod {name}{said}")
        }
        (_, 0) => format!("the process of the pod {name} has ended{said}"),
        // Shells report a process that was ended by a signal with this exit code.
        (_, code) if code > 128 => format!("the process of the pod {name} was ended by signal {}{said}", code - 128),
        (_, code) => format!("the process of the pod {name} has ended with exit code {code}{said}"),
    }
}

/// Explains why a pod of a Kubernetes cluster no longer exists.
pub(crate) fn deleted(name: &str, events: &[Event]) -> String {
    let why = last(events, &["Evicted", "Preempted", "TaintManagerEviction", "NodeControllerEviction", "NodeShutdown"]);
    match why {
        Some(event) => format!(
            "the pod {name} was removed ({}{})",
            event.reason.as_deref().unwrap_or_default(),
            told(event.message.as_deref())
        ),
        None => format!("the pod {name} was deleted"),
    }
}

/// Explains why a pod may no longer run although its status says that it runs: its node no longer responds.
pub(crate) fn node_lost(pod: &str, name: &str, node: Option<&Node>) -> Option<String> {
    let Some(node) = node else { return Some(format!("node {name} of the pod {pod} is no longer in the cluster")) };
    let conditions = node.status.as_ref().and_then(|s| s.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|c| c.type_ == "Ready" && c.status != "True")?;
    Some(format!(
        "node {name} of the pod {pod} does not report to the cluster any more{}",
        told(ready.message.as_deref())
    ))
}
