//! What lies between a pod and the wire, and what the programs of its node take beside it.

use crate::{CpuList, Traffic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// An interface, with what leads from it to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Link {
    /// Index within its network namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Kind of a virtual one: `veth`, `bridge`, `vxlan`, `macvlan`, ...; absent = a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// MTU in octets.
    pub mtu: u32,
    /// Index of the one below it, or of its other half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<u32>,
    /// That index counts in another network namespace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// Index of the bridge or bond that it is a port of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<u32>,
    /// Mode of a macvlan or ipvlan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How it wraps packets up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
    /// eBPF programs at it, as the kernel tells them: `xdp (driver) id 7`, `tc ingress cil_from_container id 8`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

/// Encapsulation of VXLAN and Geneve.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tunnel {
    /// Identity of its network (VNI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// UDP port that it sends to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The address that it sends from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<IpAddr>,
}

/// A process of a node, by what it is for the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProcess {
    /// The program: `kubelet`, `containerd`, `shim`, ...
    pub program: String,
    /// Process id, in the process namespace of who looked.
    pub pid: i32,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
    /// CPU time of all its threads since it was started, ns.
    pub cpu_ns: i64,
}

/// Interfaces as seen from one place: a pod sees its own, an observer those of its node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinksSeen {
    /// All of the network namespace.
    pub links: Vec<Link>,
    /// For each address that was asked for, the index of the interface that leads there.
    pub routes: Vec<Option<u32>>,
    /// CPUs of the control group of who looked; absent = it does not tell.
    pub cpus: Option<CpuList>,
}

/// What a node has taken and carried until now.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeCounts {
    /// Monotonic time, ns.
    pub ns: i64,
    /// What its interfaces have carried, by name.
    pub interfaces: BTreeMap<String, Traffic>,
    /// The processes that a cluster has on its nodes, as far as they are seen.
    pub processes: Vec<NodeProcess>,
}

/// An interface on the way from a pod to the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// It is in the pod's own network namespace.
    pub in_pod: bool,
    /// What it is.
    #[serde(flatten)]
    pub link: Link,
}

/// The way from the end of a trial to the interface of its node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeWay {
    /// The end.
    pub end: String,
    /// From the pod outwards.
    pub hops: Vec<Hop>,
    /// Why it is not known any further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// CPUs that the pod's control group was given; absent = it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuList>,
    /// How many whole CPUs were asked for.
    pub cpus_asked: u32,
    /// CPUs of pods that have none of their own, as the observer was given them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_of_others: Option<CpuList>,
}

/// What a program of the node took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProgram {
    /// The program.
    pub program: String,
    /// Processes of it.
    pub processes: u32,
    /// CPU time of them, ns.
    pub cpu_ns: i64,
}

/// One node of one trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeSeen {
    /// Its name.
    pub node: String,
    /// The ways of the ends on it.
    pub ways: Vec<NodeWay>,
    /// The interface that has the address of the node; absent = nobody observed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// While the ends measured, from just before to just after; absent = nobody observed the node, or could any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NodeCost>,
}

/// What a node took and carried over a span.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeCost {
    /// Its length, ns.
    pub span_ns: i64,
    /// CPU time of the cluster's own programs.
    pub programs: Vec<NodeProgram>,
    /// What the node's interfaces carried, by name, as far as they carried anything; control octets included.
    pub interfaces: BTreeMap<String, Traffic>,
}

impl NodeCost {
    /// What was added between two looks at one node. A process that was started in between counts whole; what one that
    /// ended in between took after the first look is not known.
    pub fn between(before: &NodeCounts, after: &NodeCounts) -> NodeCost {
        let mut programs: Vec<NodeProgram> = Vec::new();
        for now in &after.processes {
            let same = |p: &&NodeProcess| (p.pid, p.start_ticks) == (now.pid, now.start_ticks);
            let cpu_ns = now.cpu_ns - before.processes.iter().find(same).map_or(0, |then| then.cpu_ns);
            match programs.iter_mut().find(|p| p.program == now.program) {
                Some(sum) => (sum.processes, sum.cpu_ns) = (sum.processes + 1, sum.cpu_ns + cpu_ns),
                None => programs.push(NodeProgram { program: now.program.clone(), processes: 1, cpu_ns }),
            }
        }
        programs.sort_by(|a, b| a.program.cmp(&b.program));
        let carried = |(name, now): (&String, &Traffic)| {
            (name.clone(), now.since(before.interfaces.get(name).copied().unwrap_or_default()))
        };
        let mut interfaces: BTreeMap<String, Traffic> = after.interfaces.iter().map(carried).collect();
        interfaces.retain(|_, carried| carried.tx_packets + carried.rx_packets > 0);
        NodeCost { span_ns: after.ns - before.ns, programs, interfaces }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(program: &str, pid: i32, start_ticks: u64, cpu_ns: i64) -> NodeProcess {
        NodeProcess { program: program.into(), pid, start_ticks, cpu_ns }
    }

    #[test]
    fn the_cost_is_that_of_the_same_processes_and_of_new_ones() {
        let traffic = |tx_packets, tx_bytes| Traffic { tx_packets, tx_bytes, ..Traffic::default() };
        let at = |ns, tx_bytes, processes: &[NodeProcess]| NodeCounts {
            ns,
            interfaces: [("eth0".into(), traffic(tx_bytes / 100, tx_bytes)), ("idle".into(), traffic(7, 700))].into(),
            processes: processes.to_vec(),
        };
        let before =
            at(1_000, 500, &[process("kubelet", 10, 1, 70), process("shim", 20, 2, 5), process("shim", 21, 2, 9)]);
        // 20 has ended, and another process has its number.
        let after =
            at(5_000, 900, &[process("kubelet", 10, 1, 100), process("shim", 20, 6, 3), process("shim", 21, 2, 10)]);
        let cost = NodeCost::between(&before, &after);
        let program = |program: &str, processes, cpu_ns| NodeProgram { program: program.into(), processes, cpu_ns };
        assert_eq!(cost.span_ns, 4_000);
        assert_eq!(cost.programs, [program("kubelet", 1, 30), program("shim", 2, 4)]);
        assert_eq!(cost.interfaces, [("eth0".into(), traffic(4, 400))].into());
    }
}
