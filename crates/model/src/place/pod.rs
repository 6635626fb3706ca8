//! A pod of a Kubernetes cluster as a place, that is, as a location where an end runs.

use crate::Fact;
use crate::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// A pod that is created for the run and removed after the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PodSpec {
    /// Name of the pod; by default the name of the end. Ends whose pods have the same name and equal settings share one
    /// pod.
    pub name: String,
    /// Kubeconfig file, with the cluster's address and the user's credentials. If absent: `$KUBECONFIG`, then
    /// `~/.kube/config`, or inside a cluster the account of the pod in which Tailbound runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
    /// Context in the kubeconfig file; if absent, the file's current context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Kubernetes namespace of the pod; if absent, the namespace of the kubeconfig context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Node on which the pod may run; if absent, the cluster's scheduler chooses a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeChoice>,
    /// True if the pod uses the network of its node.
    #[serde(default)]
    pub host_network: bool,
    /// True if an additional pod observes the node while the ends measure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observe: bool,
    /// Container image that contains Tailbound; if absent, `localhost/tailbound:RELEASE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// When the Kubernetes node pulls the container image.
    #[serde(default)]
    pub pull: Pull,
    /// Number of whole CPUs of the pod, as request and limit. With `memory_mib` the pod is Guaranteed, and a node with
    /// the static CPU manager gives the pod exclusive CPUs. With 0 the pod requests no CPU and uses the shared CPUs.
    pub cpus: u32,
    /// Memory of the pod in MiB, as request and limit.
    pub memory_mib: u32,
    /// Capabilities of the pod, without `CAP_`. The pod has no other capabilities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Kubernetes runtime class of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_class: Option<String>,
    /// Service account of the pod; if absent, the namespace's default account, whose token is not mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// Labels of the pod in addition to Tailbound's own labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pod, passed on unchanged: Multus networks and other settings of a cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// How the Kubernetes node on which a pod runs is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeChoice {
    /// The pod runs on the node with this name; the cluster's scheduler still decides whether the pod fits.
    Name(String),
    /// The pod runs on a node that has these labels.
    Labels(BTreeMap<String, String>),
    /// The pod runs on a node other than the node of the other end's pod.
    Other,
    /// Pods that are created together are spread evenly: the numbers of pods on two nodes differ by at most one.
    Spread,
}

/// When a Kubernetes node pulls a container image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pull {
    /// The node pulls the image only if the node has no image with this name.
    #[default]
    IfNotPresent,
    /// The Kubernetes node pulls the container image for every pod.
    Always,
    /// The node never pulls the image: the image must be on the node already.
    Never,
}

/// A request from one Tailbound process to another: create these pods together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodOrder {
    /// Specification of each pod that is to be created.
    pub spec: PodSpec,
    /// Number of pods to be created.
    pub count: usize,
    /// Identity of the run and a number: the label of all pods of the request, and a part of the pods' names.
    pub token: String,
    /// Identity of the run: a label of all pods of the run.
    pub run: String,
    /// Name of the node of the other end, for [`NodeChoice::Other`].
    #[serde(default)]
    pub other_node: Option<String>,
    /// True if the pod observes its node and does not measure.
    #[serde(default)]
    pub observer: bool,
}

/// A request from one Tailbound process to another: create a DNS name for all pods of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameOrder {
    /// Specification of a pod of the run; it selects the cluster to use.
    pub spec: PodSpec,
    /// Identity of the run and a number: the label, and a part of the name, of the created object.
    pub token: String,
    /// Name of the pod that owns the created object: if the pod is removed, the cluster removes the object.
    pub owner: String,
    /// Identity of the run: the label by which the run's pods are found.
    pub run: String,
}

/// A request from one Tailbound process to another: create a discovery server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerOrder {
    /// Specification of a pod of the run; it selects the cluster and the image to use.
    pub spec: PodSpec,
    /// Identity of the run and a number: the label, and a part of the name, of the created object.
    pub token: String,
    /// Name of the pod that owns the discovery server: if the pod is removed, the cluster removes the server.
    pub owner: String,
    /// Name of the driver whose ends use the discovery server.
    pub driver: String,
}

/// Answer of the Tailbound process that asked a cluster to create pods, a service or a discovery server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterAnswer<T = Vec<PodMade>> {
    /// The requested pods, service or discovery server exist and run.
    Made(T),
    /// The Kubernetes cluster could not be reached, and nothing was created.
    OutOfReach(Problem),
    /// The cluster was reached, but a requested pod, service or discovery server does not run.
    Failed(Problem),
}

/// A pod that Tailbound created and that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PodMade {
    /// Name of the pod.
    pub name: String,
    /// Kubernetes namespace of the pod.
    pub namespace: String,
    /// Name of the Kubernetes node on which the pod runs.
    pub node: String,
    /// IP address of the pod, as the cluster reports it.
    pub address: IpAddr,
    /// Facts that the cluster reports about the pod, its node and its network.
    pub facts: Vec<Fact>,
    /// Remarks about the pod that the user reads before the measurement, as sentences.
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
