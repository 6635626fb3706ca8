//! A place in a Kubernetes cluster.

use crate::Fact;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// A pod that is made for the run, and removed after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PodSpec {
    /// Ends whose pod has the same name and is otherwise equal share it; by default the name of the end.
    pub name: String,
    /// File of the cluster's address and the user's rights; absent = `$KUBECONFIG`, `~/.kube/config`, or inside a
    /// cluster the pod's own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
    /// Context of that file; absent = its current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Namespace; absent = that of the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Where it may run; absent = where the scheduler puts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeChoice>,
    /// It has the network of its node, and none of its own.
    #[serde(default)]
    pub host_network: bool,
    /// A further pod looks at its node while ends measure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe: bool,
    /// Image with Tailbound; absent = `localhost/tailbound:RELEASE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When the node fetches the image.
    #[serde(default)]
    pub pull: Pull,
    /// Whole CPUs, as request and limit: with `memory_mib` the pod is Guaranteed, and a node with the static CPU manager
    /// gives it CPUs of its own. 0 = it asks for none, and shares those that others leave.
    pub cpus: u32,
    /// Memory, MiB, as request and limit.
    pub memory_mib: u32,
    /// Its capabilities, without `CAP_`; it has no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Runtime class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class: Option<String>,
    /// Service account; absent = the namespace's default, whose token is not mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// Labels beside Tailbound's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations, passed through: Multus networks and what else a cluster takes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The node of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeChoice {
    /// By name; its scheduler is asked all the same.
    Name(String),
    /// One that has these labels.
    Labels(BTreeMap<String, String>),
    /// Another one than the pod of the other end.
    Other,
    /// As many of the pods that are made together on each node, but for one.
    Spread,
}

/// When a node fetches an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pull {
    /// If it has none of that name.
    #[default]
    IfNotPresent,
    /// For every pod.
    Always,
    /// Never: it was given to the node.
    Never,
}

/// Pods to be made together, as one process of Tailbound tells another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodOrder {
    /// What each is to be.
    pub spec: PodSpec,
    /// How many.
    pub count: usize,
    /// Identity of the run and a number: a label of all of them, and part of their names.
    pub token: String,
    /// Identity of the run: a label that its other pods have too.
    pub run: String,
    /// The node of the other end, for [`NodeChoice::Other`].
    #[serde(default)]
    pub other_node: Option<String>,
    /// It is to look at its node, and not to measure.
    #[serde(default)]
    pub observer: bool,
}

/// A name to be made for all pods of a run, as one process of Tailbound tells another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameOrder {
    /// A pod of the run: the cluster is the same.
    pub spec: PodSpec,
    /// Identity of the run and a number: a label, and part of the name.
    pub token: String,
    /// The pod with which the cluster removes it, should nobody else.
    pub owner: String,
    /// The label of the pods.
    pub run: String,
}

/// A discovery server to be made, as one process of Tailbound tells another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerOrder {
    /// A pod of the run: cluster and image are the same.
    pub spec: PodSpec,
    /// Identity of the run and a number: a label, and part of the name.
    pub token: String,
    /// The pod with which the cluster removes it, should nobody else.
    pub owner: String,
    /// The driver whose ends it brings together.
    pub driver: String,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodTold<T = Vec<PodMade>> {
    /// It is there, and runs.
    Made(T),
    /// The cluster could not be spoken with: what, and what to do. Nothing was made.
    OutOfReach(String, String),
    /// It does not run: what, and what to do.
    Failed(String, String),
}

/// A pod that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PodMade {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its node.
    pub node: String,
    /// The address that the cluster tells of it.
    pub address: IpAddr,
    /// What the cluster tells of it, its node and its network.
    pub facts: Vec<Fact>,
    /// What to know before measuring, as sentences.
    #[serde(default)]
    pub remarks: Vec<String>,
}

impl fmt::Display for PodSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pod {}", self.name)?;
        match &self.node {
            None => {}
            Some(NodeChoice::Name(node)) => write!(f, " on {node}")?,
            Some(NodeChoice::Labels(labels)) => {
                let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                write!(f, " on a node with {}", labels.join(","))?;
            }
            Some(NodeChoice::Other) => f.write_str(" on another node")?,
            Some(NodeChoice::Spread) => f.write_str(" spread over nodes")?,
        }
        if self.host_network { f.write_str(" (host network)") } else { Ok(()) }
    }
}
