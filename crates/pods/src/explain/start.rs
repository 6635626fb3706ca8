//! Explains why a pod does not run yet, and decides whether the pod can run at all.

use super::{end, last, told};
use k8s_openapi::api::core::v1::{ContainerStateWaiting, Event, Pod as PodObject};
use kube::ResourceExt;
use std::time::Duration;
use tailbound_model::Problem;

/// Time limit for scheduling a pod. Nodes become free when the pods of the previous trial are removed, which takes some
/// time.
const SCHEDULED_WITHIN: Duration = Duration::from_secs(20);
/// Time limit for a pod's sandbox. While a node's network starts, the first attempts may fail.
const SANDBOX_WITHIN: Duration = Duration::from_secs(30);

/// State of a pod that was created and should start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Starting {
    /// The created pod runs.
    Runs,
    /// The created pod may still start; the text says what it waits for.
    Waits(String),
    /// The created pod cannot start.
    Never(Problem),
}

/// Decides the state of a created pod from its status and its events.
pub(crate) fn starting(pod: &PodObject, events: &[Event], waited: Duration) -> Starting {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let spec = pod.spec.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let node = spec.node_name.unwrap_or_default();
    let never = |what: String, remedy: &str| Starting::Never(Problem::new("pod_not_started", what, remedy));
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
            never(format!("no node accepts the pod {name}{said}"), unschedulable(&said))
        } else {
            Starting::Waits(format!("no node has accepted the pod yet{said}"))
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
            let remedy = match said.contains("no runtime for") {
                true => "the container runtime of the node does not know the runtime class of the pod: name another \
                     `runtime_class`, or none"
                    .to_owned(),
                false => format!("check the pod network and the network plugin (CNI) of node {node}"),
            };
            return never(text, &remedy);
        }
        return Starting::Waits(format!("node {node} has not made the sandbox of the pod yet{said}"));
    }
    let reason = state.waiting.and_then(|w| w.reason).map_or_else(String::new, |r| format!(", {r}"));
    let news = told(events.last().and_then(|e| e.message.as_deref()));
    if reason.is_empty() && waited >= SANDBOX_WITHIN {
        return Starting::Waits(format!(
            "node {node} has not begun to start the pod{news}; check whether the kubelet of the node runs (namespace of the \
             pod: {namespace})"
        ));
    }
    Starting::Waits(format!("node {node} is starting the pod{reason}{news}"))
}

/// Returns the error message ([`Problem`]) if a container does not start for a reason that the user must remove, for
/// example a missing image; `None` if the container may still start.
fn container_cannot_start(name: &str, node: &str, pod: &PodObject, waiting: &ContainerStateWaiting) -> Option<Problem> {
    let container = pod.spec.as_ref().and_then(|s| s.containers.first());
    let image = container.and_then(|c| c.image.clone()).unwrap_or_default();
    let said = told(waiting.message.as_deref());
    let reason = waiting.reason.as_deref()?;
    let load = "`tailbound image` makes the image, and `ctr -n k8s.io images import` or `kind load image-archive` \
                gives the image to the node; or name an `image` that a registry has";
    match reason {
        "ErrImageNeverPull" => Some(Problem::new(
            "pod_not_started",
            format!("node {node} has no image {image}, and must not fetch it (pull: never)"),
            load,
        )),
        "ImagePullBackOff" | "ErrImagePull" => Some(Problem::new(
            "pod_not_started",
            format!("node {node} has no image {image} and cannot fetch it{said}"),
            load,
        )),
        "InvalidImageName" => Some(Problem::new(
            "pod_not_started",
            format!("{image} is not a name of an image{said}"),
            "check the spelling of `image`",
        )),
        "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" | "CrashLoopBackOff" => {
            Some(Problem::new(
                "pod_not_started",
                format!("node {node} cannot start the container of the pod {name} ({reason}{said})"),
                "check whether the image was made by `tailbound image`, and check the requests of the pod",
            ))
        }
        _ => None,
    }
}

/// Returns the scheduler's message about the nodes, without its remark that removing other pods would not help.
fn without_preemption(said: &str) -> &str {
    let ends = ["no new claims to deallocate", "preemption:"].into_iter().filter_map(|words| said.find(words));
    said[..ends.min().unwrap_or(said.len())].trim_end_matches([' ', ',', '.'])
}

/// Chooses the remedy for a message of the Kubernetes scheduler, which found no node for a pod.
fn unschedulable(said: &str) -> &'static str {
    let has = |words: &str| said.contains(words);
    if has("Insufficient") {
        "ask for fewer `cpus` or less `memory`, or free CPUs or memory of a node: `kubectl describe nodes` shows what \
         is in use"
    } else if has("NodeAffinity") || has("node affinity") || has("node selector") {
        "`kubectl get nodes --show-labels` lists the existing nodes"
    } else if has("taint") {
        "choose nodes that accept the pod: `kubectl describe nodes` shows the taints of the nodes"
    } else {
        "`kubectl describe nodes` shows the resources of the nodes"
    }
}

/// Chooses the remedy for a pod that a kubelet refused with this reason.
fn refused_by_node(reason: &str) -> &'static str {
    match reason {
        "OutOfcpu" | "OutOfmemory" | "OutOfpods" | "UnexpectedAdmissionError" | "SMTAlignmentError" => {
            "ask for fewer `cpus` or less `memory`, or name another node"
        }
        _ => "check whether the image was made by `tailbound image` of this release",
    }
}
