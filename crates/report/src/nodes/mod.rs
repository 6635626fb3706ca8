//! The nodes of a cluster: what lies between its pods and the wire, and what its own programs took while ends measured.

mod words;

pub(crate) use words::lines;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{CpuList, Hop, NodeCost, NodeSeen, NodeWay};
use tailbound_record::Manifest;

/// A node, over the trials whose ends on it reached the wire in the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeReport {
    /// Those trials.
    pub trials: Vec<usize>,
    /// Its name.
    pub node: String,
    /// The ways of the ends on it.
    pub ways: Vec<NodeWayReport>,
    /// While ends measured, over these trials; absent = nobody observed the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NodeCostReport>,
}

/// The way from an end to the interface of its node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeWayReport {
    /// The end.
    pub end: String,
    /// The way in words; the names of pairs are those of the first trial.
    pub text: String,
    /// From the pod outwards; the names of pairs are those of the first trial.
    pub hops: Vec<HopReport>,
    /// Why it is not known any further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// CPUs that the pod's control group was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// How many whole CPUs were asked for.
    pub cpus_asked: u32,
    /// CPUs of pods that have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_of_others: Option<String>,
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopReport {
    /// It is in the pod's own network namespace.
    pub in_pod: bool,
    /// Name.
    pub name: String,
    /// Kind of a virtual one, such as `veth`; absent = a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Mode of a macvlan or ipvlan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// MTU in octets.
    pub mtu: u32,
    /// Identity of the network of a tunnel (VNI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel_id: Option<u32>,
    /// UDP port that a tunnel sends to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel_port: Option<u16>,
    /// eBPF programs at it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

/// What a node took and carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeCostReport {
    /// How long it was looked at, all trials together.
    pub span_ns: i64,
    /// CPU time of the cluster's own programs, as shares of one CPU.
    pub programs: BTreeMap<String, NodeProgramReport>,
    /// The interface with the node's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Octets that it sent, all trials together; control octets included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_octets: Option<i64>,
    /// Octets that it received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_octets: Option<i64>,
}

/// A program of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeProgramReport {
    /// Processes of it, at most.
    pub processes: u32,
    /// CPU time, as a share of one CPU.
    pub cpu_share: f64,
}

/// The nodes of a record; trials that found the same share an entry.
pub(crate) fn of(manifest: &Manifest) -> Vec<NodeReport> {
    let mut groups: Vec<(Vec<usize>, Vec<&NodeSeen>)> = Vec::new();
    for trial in &manifest.trials {
        for seen in &trial.nodes {
            match groups.iter_mut().find(|(_, all)| alike(all[0], seen)) {
                Some((trials, all)) => {
                    trials.push(trial.id);
                    all.push(seen);
                }
                None => groups.push((vec![trial.id], vec![seen])),
            }
        }
    }
    let mut reports: Vec<NodeReport> = groups
        .into_iter()
        .map(|(trials, all)| NodeReport {
            trials,
            node: all[0].node.clone(),
            ways: all[0].ways.iter().map(way).collect(),
            cost: cost(&all),
        })
        .collect();
    reports.sort_by(|a, b| (&a.node, a.trials[0]).cmp(&(&b.node, b.trials[0])));
    reports
}

/// Pods come and go, and with them the names of their pairs and the indexes of interfaces.
fn alike(a: &NodeSeen, b: &NodeSeen) -> bool {
    let hop = |h: &Hop| {
        let name = (h.link.kind.as_deref() != Some("veth")).then(|| h.link.name.clone());
        (h.in_pod, name, h.link.kind.clone(), h.link.mtu, h.link.tunnel.clone(), h.link.programs.len())
    };
    let way = |w: &NodeWay| {
        let hops: Vec<_> = w.hops.iter().map(hop).collect();
        (w.end.clone(), hops, w.open.is_some(), w.cpus.clone(), w.cpus_asked, w.cpus_of_others.clone())
    };
    let ways = |n: &NodeSeen| n.ways.iter().map(way).collect::<Vec<_>>();
    a.node == b.node && a.cost.is_some() == b.cost.is_some() && ways(a) == ways(b)
}

fn way(way: &NodeWay) -> NodeWayReport {
    let hop = |h: &Hop| HopReport {
        in_pod: h.in_pod,
        name: h.link.name.clone(),
        kind: h.link.kind.clone(),
        mode: h.link.mode.clone(),
        mtu: h.link.mtu,
        tunnel_id: h.link.tunnel.as_ref().and_then(|t| t.id),
        tunnel_port: h.link.tunnel.as_ref().and_then(|t| t.port),
        programs: h.link.programs.clone(),
    };
    let hops: Vec<HopReport> = way.hops.iter().map(hop).collect();
    let text = |list: &Option<CpuList>| list.as_ref().map(ToString::to_string);
    NodeWayReport {
        end: way.end.clone(),
        text: words::way(&hops, way),
        hops,
        open: way.open.clone(),
        cpus: text(&way.cpus),
        cpus_asked: way.cpus_asked,
        cpus_of_others: text(&way.cpus_of_others),
    }
}

fn cost(all: &[&NodeSeen]) -> Option<NodeCostReport> {
    let costs: Vec<&NodeCost> = all.iter().filter_map(|n| n.cost.as_ref()).collect();
    let span_ns: i64 = costs.iter().map(|c| c.span_ns).sum();
    if span_ns <= 0 {
        return None;
    }
    let mut programs: BTreeMap<String, NodeProgramReport> = BTreeMap::new();
    for program in costs.iter().flat_map(|c| &c.programs) {
        let sum = programs.entry(program.program.clone()).or_insert(NodeProgramReport { processes: 0, cpu_share: 0.0 });
        sum.processes = sum.processes.max(program.processes);
        sum.cpu_share += program.cpu_ns as f64 / span_ns as f64;
    }
    let interface = all[0].interface.clone();
    let carried = |pick: fn(&tailbound_model::Traffic) -> i64| {
        let name = interface.as_ref()?;
        Some(costs.iter().filter_map(|c| c.interfaces.get(name)).map(pick).sum())
    };
    let (sent_octets, received_octets) = (carried(|t| t.tx_bytes), carried(|t| t.rx_bytes));
    Some(NodeCostReport { span_ns, programs, interface, sent_octets, received_octets })
}
