//! Report of Kubernetes nodes: the interfaces between pods and the wire, and the CPU time of the cluster's own programs
//! during the measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A Kubernetes node, for those trials in which its ends reached the network by the same route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeReport {
    /// Ids of the trials in which the ends of the node used these routes.
    pub trials: Vec<usize>,
    /// Name of the Kubernetes node.
    pub node: String,
    /// Routes of the ends on the node to the interface of the node.
    pub ways: Vec<NodeWayReport>,
    /// CPU time and traffic of the node during the measurement, in these trials; absent if the node was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NodeCostReport>,
}

/// The route from an end to the interface of its node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeWayReport {
    /// Name of the end at which the route begins.
    pub end: String,
    /// The route in words; names of veth interfaces are the names of the first trial.
    pub text: String,
    /// Interfaces of the route, from the pod outwards; names of veth interfaces are the names of the first trial.
    pub hops: Vec<HopReport>,
    /// Reason why the rest of the route from the pod to the node's interface is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// CPUs that the control group of the end's pod may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Number of whole CPUs that the end's pod requested.
    pub cpus_asked: u32,
    /// CPUs of the node that pods without exclusive CPUs share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_of_others: Option<String>,
}

/// One interface of the route from a pod to the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopReport {
    /// True if the interface is in the network namespace of the pod.
    pub in_pod: bool,
    /// Name of the network interface on the route.
    pub name: String,
    /// Kind of a virtual interface, such as `veth`; absent for a physical device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Mode of the interface, if it is a macvlan or ipvlan interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// MTU of the network interface on the route, in bytes.
    pub mtu: u32,
    /// Network identifier (VNI) of the interface, if it is a tunnel interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel_id: Option<u32>,
    /// UDP port to which the interface sends, if it is a tunnel interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel_port: Option<u16>,
    /// eBPF programs that are attached to the network interface on the route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

/// CPU time and traffic of a Kubernetes node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeCostReport {
    /// Duration for which the node was observed, summed over the trials, ns.
    pub span_ns: i64,
    /// CPU time of the Kubernetes cluster's own programs on the node, by name of the program.
    pub programs: BTreeMap<String, NodeProgramReport>,
    /// Name of the network interface that has the node's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Number of bytes that the node's interface sent in all trials, including Tailbound's control traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "sent_octets")]
    pub sent_bytes: Option<i64>,
    /// Number of bytes that the node's interface received in all trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "received_octets")]
    pub received_bytes: Option<i64>,
}

/// CPU time of one of the cluster's own programs on a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeProgramReport {
    /// Largest number of processes of the program in any trial.
    pub processes: u32,
    /// CPU time of the program, as a share of one CPU.
    pub cpu_share: f64,
}
