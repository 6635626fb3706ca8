//! Nodes in words.

use super::{HopReport, NodeCostReport, NodeProgramReport};
use crate::document::Report;
use crate::number::{count, three_digits};
use std::collections::BTreeSet;
use tailbound_model::NodeWay;

/// `pod eth0 (veth, MTU 1450) - veth5a (veth) - cni0 (bridge) - flannel.1 (vxlan 1, UDP 8472) - eth0 (MTU 1500); CPU 0 ...`.
pub(super) fn way(hops: &[HopReport], way: &NodeWay) -> String {
    let mut mtu = 0;
    let mut parts = Vec::new();
    for hop in hops {
        let mut about = Vec::new();
        let id = hop.tunnel_id.map_or(String::new(), |id| format!(" {id}"));
        about.extend(hop.kind.as_ref().map(|kind| format!("{kind}{id}")));
        about.extend(hop.mode.as_ref().map(|mode| format!("mode {mode}")));
        about.extend(hop.tunnel_port.map(|port| format!("UDP {port}")));
        if hop.mtu != mtu {
            about.push(format!("MTU {}", hop.mtu));
            mtu = hop.mtu;
        }
        about.extend(hop.programs.iter().cloned());
        let pod = if hop.in_pod { "pod " } else { "" };
        let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        parts.push(format!("{pod}{}{about}", hop.name));
    }
    let open = way.open.as_ref().map_or(String::new(), |why| format!("; further on it is not known: {why}"));
    let cpus = cpus(way).map_or(String::new(), |text| format!("; {text}"));
    format!("{}{open}{cpus}", parts.join(" - "))
}

/// What the pod was given of the CPUs, held against what it asked for.
fn cpus(way: &NodeWay) -> Option<String> {
    let own = way.cpus.as_ref()?;
    let which = if own.0.len() == 1 { format!("CPU {own}") } else { format!("CPUs {own}") };
    if way.cpus_asked == 0 {
        return Some(format!("{which}, shared: it asked for none of its own"));
    }
    let as_asked = own.0.len() == way.cpus_asked as usize;
    Some(match &way.cpus_of_others {
        Some(others) if as_asked && own.0.is_disjoint(&others.0) => {
            format!("{which} for itself: the CPU manager is static")
        }
        Some(_) => format!("{which}, of which others have some ({} asked for): no static CPU manager", way.cpus_asked),
        None if as_asked => format!("{which}, as many as asked for"),
        None => format!("{which}, and {} asked for: no static CPU manager", way.cpus_asked),
    })
}

/// Lines for the terminal, Markdown and the page: which node, and what of it.
pub(crate) fn lines(report: &Report) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for node in &report.nodes {
        lines.extend(node.ways.iter().map(|way| (format!("{} ({})", node.node, way.end), way.text.clone())));
        lines.extend(node.cost.as_ref().map(|cost| (format!("{} while measuring", node.node), cost_words(cost))));
    }
    // Trials with other conditions may tell the same of a node.
    let mut told = BTreeSet::new();
    lines.retain(|line| told.insert(line.clone()));
    let mut unseen: Vec<&str> = report.nodes.iter().filter(|n| n.cost.is_none()).map(|n| n.node.as_str()).collect();
    unseen.sort_unstable();
    unseen.dedup();
    if !unseen.is_empty() {
        let text = "not known; where the study says `pod: { observe: on }`, the node is looked at".to_owned();
        lines.push((format!("{} while measuring", unseen.join(", ")), text));
    }
    lines
}

/// `kubelet 2.1 %, 3 shims 0.40 % of a CPU; eth0 sent 1,200 B and received 1,100 B in 2.0 s`.
fn cost_words(cost: &NodeCostReport) -> String {
    let program = |(name, p): (&String, &NodeProgramReport)| {
        let name = if p.processes > 1 { format!("{} {name}s", p.processes) } else { name.clone() };
        format!("{name} {} %", three_digits(100.0 * p.cpu_share))
    };
    let programs: Vec<String> = cost.programs.iter().map(program).collect();
    let programs = match programs.is_empty() {
        true => "none of the cluster's own programs is seen".to_owned(),
        false => format!("{} of a CPU", programs.join(", ")),
    };
    let octets = |n: Option<i64>| count(n.unwrap_or(0).unsigned_abs());
    let carried = cost.interface.as_ref().map_or(String::new(), |name| {
        format!("; {name} sent {} B and received {} B", octets(cost.sent_octets), octets(cost.received_octets))
    });
    format!("{programs}{carried} in {:.1} s", cost.span_ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::super::{cost, way};
    use super::{cost_words, cpus};
    use tailbound_model::{CpuList, Hop, Link, NodeCost, NodeProgram, NodeSeen, NodeWay, Traffic, Tunnel};

    fn hop(in_pod: bool, name: &str, kind: &str, mtu: u32) -> Hop {
        let link = Link {
            name: name.into(),
            kind: Some(kind.into()).filter(|k: &String| !k.is_empty()),
            mtu,
            ..Link::default()
        };
        Hop { in_pod, link }
    }

    fn list(text: &str) -> Option<CpuList> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_way_is_told_from_the_pod_outwards() {
        let mut vxlan = hop(false, "flannel.1", "vxlan", 1450);
        vxlan.link.tunnel = Some(Tunnel { id: Some(1), port: Some(8472), local: None });
        let mut card = hop(false, "eth0", "", 1500);
        card.link.programs = vec!["xdp (driver) id 7".into()];
        let seen = NodeWay {
            hops: vec![
                hop(true, "eth0", "veth", 1450),
                hop(false, "veth5a", "veth", 1450),
                hop(false, "cni0", "bridge", 1450),
                vxlan,
                card,
            ],
            cpus: list("0"),
            cpus_asked: 1,
            cpus_of_others: list("1"),
            ..NodeWay::default()
        };
        assert_eq!(
            way(&seen).text,
            "pod eth0 (veth, MTU 1450) - veth5a (veth) - cni0 (bridge) - flannel.1 (vxlan 1, UDP 8472) - eth0 (MTU 1500, \
             xdp (driver) id 7); CPU 0 for itself: the CPU manager is static"
        );
        let open = NodeWay {
            open: Some("nobody has looked at the node".into()),
            hops: seen.hops[..1].to_vec(),
            ..NodeWay::default()
        };
        assert_eq!(
            way(&open).text,
            "pod eth0 (veth, MTU 1450); further on it is not known: nobody has looked at the node"
        );
    }

    #[test]
    fn cpus_are_held_against_what_was_asked_for() {
        let told = |own, asked, others| {
            cpus(&NodeWay { cpus: list(own), cpus_asked: asked, cpus_of_others: others, ..NodeWay::default() }).unwrap()
        };
        assert_eq!(told("0-3", 1, None), "CPUs 0-3, and 1 asked for: no static CPU manager");
        assert_eq!(told("2", 1, None), "CPU 2, as many as asked for");
        assert_eq!(
            told("0-1", 2, list("0-1")),
            "CPUs 0-1, of which others have some (2 asked for): no static CPU manager"
        );
    }

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
        assert_eq!(
            cost_words(&cost),
            "kubelet 2 %, 3 shims 0.100 % of a CPU; eth0 sent 1,400 B and received 2,600 B in 2.0 s"
        );
    }
}
