//! A place in a Kubernetes cluster.

use super::Size;
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A pod that is made for the run.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PodKeys {
    /// Ends whose pods have one name, and are otherwise equal, share one pod. Default: the name of the end.
    pub name: Option<At<String>>,
    /// Absolute path of a kubeconfig. Default: `$KUBECONFIG`, `~/.kube/config`; inside a cluster the account of the pod.
    pub kubeconfig: Option<At<String>>,
    /// Context of the kubeconfig. Default: its current one.
    pub context: Option<At<String>>,
    /// Namespace of the cluster. Default: that of the context.
    pub namespace: Option<At<String>>,
    /// Where it may run. Default: where the scheduler puts it.
    pub node: Option<NodeKeys>,
    /// Whether it has a network of its own. Default: `pod`.
    pub network: Option<NetworkChoice>,
    /// Whether a further pod looks at its node just before and just after each trial: which interfaces lead to the wire,
    /// what they carried, what kubelet and container runtime took. It needs hostNetwork and hostPID. Default: `off`.
    pub observe: Option<ObserveChoice>,
    /// Image with Tailbound. Default: `localhost/tailbound:` and this release, as `tailbound image` names it.
    pub image: Option<At<String>>,
    /// When its node fetches the image. Default: `if-not-present`.
    pub pull: Option<PullChoice>,
    /// Whole CPUs, as request and limit: where the CPU manager is static they are its own. With 0 it asks for none, and
    /// shares those that others leave. Default: 1.
    pub cpus: Option<At<u32>>,
    /// Memory, as request and limit; samples are kept in it. Default: `512 MiB`.
    pub memory: Option<At<Size>>,
    /// Linux capabilities, such as `SYS_NICE` and `IPC_LOCK`. Default: none.
    pub capabilities: Option<Vec<At<String>>>,
    /// Runtime class.
    pub runtime_class: Option<At<String>>,
    /// Service account of the pod; its token is not mounted. Default: that of the namespace.
    pub service_account: Option<At<String>>,
    /// Labels beside Tailbound's own.
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations, passed on as they are: further networks and what else a cluster takes.
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The node of a pod.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NodeKeys {
    /// This one.
    Name(At<String>),
    /// One that has these labels.
    Labels(BTreeMap<String, String>),
    /// Another one than that of the ping end.
    Other,
    /// Pods that are made together lie evenly on the nodes: their numbers differ by one at most.
    Spread,
}

/// The network of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NetworkChoice {
    /// One of its own, as the cluster's plugin makes it.
    Pod,
    /// That of its node.
    Host,
}

/// Who looks at the node of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ObserveChoice {
    /// A further pod there, in the namespaces of the node.
    On,
    /// Nobody: what the pod itself sees is told.
    Off,
}

/// When a node fetches an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PullChoice {
    /// When it has none of that name.
    IfNotPresent,
    /// For every pod.
    Always,
    /// Never: somebody gave it to the node.
    Never,
}
