//! Reports the nodes of a cluster: the interfaces between pods and the wire, and the CPU time of the cluster's own
//! programs during the measurement.

use crate::node_words;
use std::collections::BTreeMap;
use tailbound_document::{HopReport, NodeCostReport, NodeProgramReport, NodeReport, NodeWayReport};
use tailbound_model::{CpuList, Hop, NodeCost, NodeSeen, NodeWay};
use tailbound_record::Manifest;

/// Reports the cluster nodes of a record; trials with equal observations share an entry.
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

/// True if two observations of a node are equal, apart from names of veth pairs and indexes of interfaces, which differ
/// with every pod.
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

pub(crate) fn way(way: &NodeWay) -> NodeWayReport {
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
        text: node_words::way(&hops, way),
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
    let (sent_bytes, received_bytes) = (carried(|t| t.tx_bytes), carried(|t| t.rx_bytes));
    Some(NodeCostReport { span_ns, programs, interface, sent_bytes, received_bytes })
}

#[cfg(test)]
mod tests {
    use super::cost;
    use tailbound_model::{NodeCost, NodeProgram, NodeSeen, Traffic};

    #[test]
    fn costs_of_trials_are_added_up_over_their_time() {
        let program = |program: &str, processes, cpu_ns| NodeProgram { program: program.into(), processes, cpu_ns };
        let seen = |shims, cpu_ns| NodeSeen {
            interface: Some("eth0".into()),
            cost: Some(NodeCost {
                span_ns: 1_000_000_000,
                programs: vec![program("kubelet", 1, cpu_ns), program("shim", shims, 1_000_000)],
                interfaces: [("eth0".into(), Traffic { tx_bytes: 700, rx_bytes: 1_300, ..Traffic::default() })].into(),
            }),
            ..NodeSeen::default()
        };
        let cost = cost(&[&seen(2, 10_000_000), &seen(3, 30_000_000)]).unwrap();
        let of = |name: &str| (cost.programs[name].processes, cost.programs[name].cpu_share);
        assert_eq!((of("kubelet"), of("shim")), ((1, 0.02), (3, 0.001)));
        assert_eq!(cost.span_ns, 2_000_000_000);
        assert_eq!(
            (cost.interface.as_deref(), cost.sent_bytes, cost.received_bytes),
            (Some("eth0"), Some(1_400), Some(2_600))
        );
    }
}
