//! Why a pod does not run yet, and whether it ever will.

use super::{end, last, told};
use crate::error::PodError;
use k8s_openapi::api::core::v1::{ContainerStateWaiting, Event, Pod as PodObject};
use kube::ResourceExt;
use std::time::Duration;

/// Nodes are freed when the pods of the trial before are gone.
const SCHEDULED_WITHIN: Duration = Duration::from_secs(20);
/// A network that comes up with its node makes sandboxes after a few tries.
const SANDBOX_WITHIN: Duration = Duration::from_secs(30);

/// What has become of a pod that was made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Starting {
    /// It runs.
    Runs,
    /// It may run yet; what it waits for.
    Waits(String),
    /// It cannot run.
    Never(PodError),
}

/// Judges a pod by its status and by what was told of it.
pub(crate) fn starting(pod: &PodObject, events: &[Event], waited: Duration) -> Starting {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let spec = pod.spec.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let node = spec.node_name.unwrap_or_default();
    let never = |what: String, mend: &str| Starting::Never(PodError::new(what, mend));
    let container = status.container_statuses.iter().flatten().next();
    let state = container.and_then(|c| c.state.clone()).unwrap_or_default();

    if let Some(why) = end::ended(pod) {
        return never(why, refused_by_node(&status.reason.unwrap_or_default()));
    }
    if state.running.is_some() {
        return Starting::Runs;
    }
    if node.is_empty() {
        let unscheduled = status.conditions.iter().flatten().find(|c| c.type_ == "PodScheduled" && c.status == "False");
        let said = told(unscheduled.and_then(|c| c.message.as_deref()).map(without_preemption));
        return if unscheduled.is_some() && waited >= SCHEDULED_WITHIN {
            never(format!("no node takes the pod {name}{said}"), unschedulable(&said))
        } else {
            Starting::Waits(format!("no node has taken it yet{said}"))
        };
    }
    if let Some(waiting) = &state.waiting
        && let Some(e) = container_cannot_start(&name, &node, pod, waiting)
    {
        return Starting::Never(e);
    }
    if let Some(event) = last(events, &["FailedCreatePodSandBox"]) {
        let said = told(event.message.as_deref());
        if waited >= SANDBOX_WITHIN {
            let text = format!("node {node} cannot make the network or the sandbox of the pod {name}{said}");
            let mend = match said.contains("no runtime for") {
                true => "its container runtime does not know this runtime class: name another `runtime_class`, or none",
                false => "look at the pod network of that node and at its CNI",
            };
            return never(text, mend);
        }
        return Starting::Waits(format!("node {node} has not made its sandbox yet{said}"));
    }
    let reason = state.waiting.and_then(|w| w.reason).map_or_else(String::new, |r| format!(", {r}"));
    let news = told(events.last().and_then(|e| e.message.as_deref()));
    if reason.is_empty() && waited >= SANDBOX_WITHIN {
        return Starting::Waits(format!(
            "node {node} has not begun it{news}; does its kubelet answer in namespace {namespace}"
        ));
    }
    Starting::Waits(format!("node {node} is at it{reason}{news}"))
}

/// Of the reasons why a container waits, those that do not pass.
fn container_cannot_start(
    name: &str,
    node: &str,
    pod: &PodObject,
    waiting: &ContainerStateWaiting,
) -> Option<PodError> {
    let container = pod.spec.as_ref().and_then(|s| s.containers.first());
    let image = container.and_then(|c| c.image.clone()).unwrap_or_default();
    let said = told(waiting.message.as_deref());
    let reason = waiting.reason.as_deref()?;
    let load = "`tailbound image` makes it, and `ctr -n k8s.io images import` or `kind load image-archive` gives it to \
                the node; or name an `image` that a registry has";
    match reason {
        "ErrImageNeverPull" => {
            Some(PodError::new(format!("node {node} has no image {image}, and is not to fetch it (pull: never)"), load))
        }
        "ImagePullBackOff" | "ErrImagePull" => {
            Some(PodError::new(format!("node {node} has no image {image} and cannot fetch it{said}"), load))
        }
        "InvalidImageName" => {
            Some(PodError::new(format!("{image} is not a name of an image{said}"), "look at its spelling"))
        }
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" | "CrashLoopBackOff" => {
            Some(PodError::new(
                format!("node {node} cannot start the container of the pod {name} ({reason}{said})"),
                "look whether the image is one of `tailbound image`, and at what the pod asks for",
            ))
        }
        _ => None,
    }
}

/// What the scheduler says of the nodes; that no other pod is worth removing for this one helps nobody.
fn without_preemption(said: &str) -> &str {
    let ends = ["no new claims to deallocate", "preemption:"].into_iter().filter_map(|words| said.find(words));
    said[..ends.min().unwrap_or(said.len())].trim_end_matches([' ', ',', '.'])
}

/// What helps, by the words of the scheduler.
fn unschedulable(said: &str) -> &'static str {
    let has = |words: &str| said.contains(words);
    if has("Insufficient") {
        "ask for fewer `cpus` or less `memory`, or free some: `kubectl describe nodes` shows what is taken"
    } else if has("NodeAffinity") || has("node affinity") || has("node selector") {
        "`kubectl get nodes --show-labels` shows the nodes there are"
    } else if has("taint") {
        "choose nodes that are for such pods: `kubectl describe nodes` shows their taints"
    } else {
        "`kubectl describe nodes` shows what they have"
    }
}

/// What helps, by the reason of a kubelet that refused the pod.
fn refused_by_node(reason: &str) -> &'static str {
    match reason {
        "OutOfcpu" | "OutOfmemory" | "OutOfpods" | "UnexpectedAdmissionError" | "SMTAlignmentError" => {
            "ask for fewer `cpus` or less `memory`, or name another node"
        }
        _ => "look whether the image is one of `tailbound image`, and of this release",
    }
}
