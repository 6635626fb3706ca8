//! Keys of a pod of a Kubernetes cluster as a place.

use super::Size;
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A pod of a Kubernetes cluster that is created for the run.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PodKeys {
    /// Name of the pod. Ends whose pods have the same name and equal keys share one pod. Default: the name of the end.
    pub name: Option<At<String>>,
    /// Absolute path of a kubeconfig file. Default: `$KUBECONFIG`, then `~/.kube/config`; inside a cluster, the account
    /// of the pod in which Tailbound runs.
    pub kubeconfig: Option<At<String>>,
    /// Context of the kubeconfig file. Default: the current context of the file.
    pub context: Option<At<String>>,
    /// Kubernetes namespace of the pod. Default: the namespace of the kubeconfig context.
    pub namespace: Option<At<String>>,
    /// Node on which the pod may run. Default: the cluster's scheduler chooses.
    pub node: Option<NodeKeys>,
    /// Whether the pod has its own network or uses the network of its node. Default: `pod`.
    pub network: Option<NetworkChoice>,
    /// Whether an additional pod observes the node just before and just after each trial: the interfaces between the
    /// pod and the wire, the interfaces' traffic, and the CPU time of kubelet and container runtime. The additional pod
    /// needs hostNetwork and hostPID. Default: `off`.
    pub observe: Option<ObserveChoice>,
    /// Container image with Tailbound. Default: `localhost/tailbound:` and this release, which is the name that
    /// `tailbound image` uses.
    pub image: Option<At<String>>,
    /// When the node pulls the container image of the pod. Default: `if-not-present`.
    pub pull: Option<PullChoice>,
    /// Number of whole CPUs of the pod, as request and limit. On a node with the static CPU manager the pod has these
    /// CPUs exclusively. With 0 the pod requests no CPU and uses the shared CPUs. Default: 1.
    pub cpus: Option<At<u32>>,
    /// Memory of the pod, as request and limit; the samples need a part of this memory. Default: `512 MiB`.
    pub memory: Option<At<Size>>,
    /// Linux capabilities of the pod, such as `SYS_NICE` and `IPC_LOCK`. Default: none.
    pub capabilities: Option<Vec<At<String>>>,
    /// Kubernetes runtime class of the pod.
    pub runtime_class: Option<At<String>>,
    /// Service account of the pod; the token of the account is not mounted. Default: the default service account of the
    /// namespace.
    pub service_account: Option<At<String>>,
    /// Labels of the pod in addition to Tailbound's own labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations of the pod, passed on unchanged: additional networks and other settings of a cluster.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// How the cluster node on which a pod runs is chosen.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NodeKeys {
    /// The pod runs on the cluster node with this name.
    Name(At<String>),
    /// The pod runs on a node that has these labels.
    Labels(BTreeMap<String, String>),
    /// The pod runs on a node other than the node of the ping end.
    Other,
    /// Pods that are created together are spread evenly: the numbers of pods on two nodes differ by at most one.
    Spread,
}

/// Kind of network that a pod uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NetworkChoice {
    /// The pod has its own network, created by the cluster's network plugin.
    Pod,
    /// The pod uses the network of its cluster node.
    Host,
}

/// Whether an additional pod observes the node of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ObserveChoice {
    /// An additional pod observes the node from the namespaces of the node.
    On,
    /// No additional pod observes the node; the report shows only what the measuring pod itself can read.
    Off,
}

/// When a cluster node pulls the container image of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PullChoice {
    /// The node pulls the image only if the node has no image with this name.
    IfNotPresent,
    /// The node pulls the container image for every pod.
    Always,
    /// The node never pulls the image: the image must be on the node already.
    Never,
}
