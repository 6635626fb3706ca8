//! Kubernetes nodes: the interfaces from a pod to the network between the nodes, and the CPU time that the cluster's
//! own programs use on a node.

use crate::{CpuList, Traffic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A network interface of a pod or node, and the interface that packets reach next.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Link {
    /// Index of the network interface within its network namespace.
    pub index: u32,
    /// Name of the network interface.
    pub name: String,
    /// Kind of a virtual interface: `veth`, `bridge`, `vxlan`, `macvlan`, ...; absent for a physical device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// MTU of the network interface in bytes.
    pub mtu: u32,
    /// Index of the interface that packets reach next: the interface below this one, or the other end of a veth pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<u32>,
    /// True if the interface that packets reach next, whose index is `below`, is in another network namespace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
    /// Index of the bridge or bond of which this interface is a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<u32>,
    /// Mode of the interface, if it is a macvlan or ipvlan interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How the interface encapsulates packets; absent if it does not encapsulate them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
    /// eBPF programs on the interface, as the kernel reports them: `xdp (driver) id 7`, `tc ingress cil_from_container
    /// id 8`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

/// Encapsulation parameters of a VXLAN or Geneve tunnel interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tunnel {
    /// Network identifier (VNI) of the tunnel interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// UDP port to which the tunnel interface sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// IP address from which the tunnel interface sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<IpAddr>,
}

/// One of the cluster's own processes on a node, e.g. kubelet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProcess {
    /// Name of the program that the process runs: `kubelet`, `containerd`, `shim`, ...
    pub program: String,
    /// Process id in the PID namespace of the pod that observes the Kubernetes node.
    pub pid: i32,
    /// Start time of the process in clock ticks since boot.
    pub start_ticks: u64,
    /// CPU time of all threads of the process since the process started, ns.
    pub cpu_ns: i64,
}

/// Interfaces as one observer sees them: a pod sees its own interfaces, and an observer pod sees the interfaces of its
/// node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinksSeen {
    /// All network interfaces of the network namespace.
    pub links: Vec<Link>,
    /// For each requested address, the index of the interface to which the route leads.
    pub routes: Vec<Option<u32>>,
    /// CPUs of the control group of the pod that read the interfaces; absent if the CPUs cannot be read.
    pub cpus: Option<CpuList>,
}

/// Counters of CPU time and traffic of a node, read at one point in time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeCounts {
    /// Monotonic time at which the node's counters were read, ns.
    pub ns: i64,
    /// Traffic of the node's interfaces, by name of the interface.
    pub interfaces: BTreeMap<String, Traffic>,
    /// The cluster's processes on the node that the observer (a pod in the namespaces of the node) can see.
    pub processes: Vec<NodeProcess>,
}

/// One interface on the route from a pod through its node to the other nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// True if the interface is in the pod's network namespace.
    pub in_pod: bool,
    /// The network interface at this point of the route.
    #[serde(flatten)]
    pub link: Link,
}

/// The route from an end of a trial to the interface of its node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeWay {
    /// Name of the end that runs in the pod at which the route begins.
    pub end: String,
    /// The network interfaces of the route, from the pod outwards.
    pub hops: Vec<Hop>,
    /// Reason why the rest of the route is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// CPUs of the pod's control group; absent if they cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuList>,
    /// Number of whole CPUs that the study asks for in the pod's request.
    pub cpus_asked: u32,
    /// CPUs of the Kubernetes node that pods without exclusive CPUs share, as read by the observer, a pod that runs in
    /// the namespaces of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_of_others: Option<CpuList>,
}

/// CPU time of all processes of one program on a Kubernetes node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProgram {
    /// Name of the program, e.g. `kubelet`.
    pub program: String,
    /// Number of processes that ran the program on the node.
    pub processes: u32,
    /// CPU time of all processes of the program, ns.
    pub cpu_ns: i64,
}

/// What was observed of one Kubernetes node in one trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeSeen {
    /// Name of the Kubernetes node.
    pub node: String,
    /// The routes of the ends on this Kubernetes node to the node's interface.
    pub ways: Vec<NodeWay>,
    /// The interface with the node's address; absent if no observer ran on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// CPU time and traffic of the node during the measurement; absent if no observer ran on the node, or if the
    /// observation ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<NodeCost>,
}

/// CPU time and traffic of a node over a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeCost {
    /// Length of the time span in which CPU time and traffic were counted, ns.
    pub span_ns: i64,
    /// CPU time of each of the cluster's own programs on the node.
    pub programs: Vec<NodeProgram>,
    /// Traffic of the node's interfaces, by name, including control messages; interfaces without traffic are left out.
    pub interfaces: BTreeMap<String, Traffic>,
}

impl NodeCost {
    /// Computes CPU time and traffic between two readings of one node. The CPU time of a process that started between
    /// the readings is counted in full. The CPU time of a process that ended between the readings is not counted.
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
        // Process 20 has ended, and another process has its number.
        let after =
            at(5_000, 900, &[process("kubelet", 10, 1, 100), process("shim", 20, 6, 3), process("shim", 21, 2, 10)]);
        let cost = NodeCost::between(&before, &after);
        let program = |program: &str, processes, cpu_ns| NodeProgram { program: program.into(), processes, cpu_ns };
        assert_eq!(cost.span_ns, 4_000);
        assert_eq!(cost.programs, [program("kubelet", 1, 30), program("shim", 2, 4)]);
        assert_eq!(cost.interfaces, [("eth0".into(), traffic(4, 400))].into());
    }
}
