//! Describes the network path through a cluster node as text.

use tailbound_document::HopReport;
use tailbound_model::NodeWay;

/// Describes the path from a pod to the wire as text, for example `pod eth0 (veth, MTU 1450) - veth5a (veth) - cni0
/// (bridge) - flannel.1 (vxlan 1, UDP 8472) - eth0 (MTU 1500); CPU 0 ...`.
pub(crate) fn way(hops: &[HopReport], way: &NodeWay) -> String {
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
    let open = way.open.as_ref().map_or(String::new(), |why| format!("; the rest of the path is not known: {why}"));
    let cpus = cpus(way).map_or(String::new(), |text| format!("; {text}"));
    format!("{}{open}{cpus}", parts.join(" - "))
}

/// Describes the CPUs that a pod has, compared with the number that the pod requested.
fn cpus(way: &NodeWay) -> Option<String> {
    let own = way.cpus.as_ref()?;
    let which = if own.0.len() == 1 { format!("CPU {own}") } else { format!("CPUs {own}") };
    if way.cpus_asked == 0 {
        return Some(format!("{which}, shared: the pod asked for no CPU of its own"));
    }
    let as_asked = own.0.len() == way.cpus_asked as usize;
    Some(match &way.cpus_of_others {
        Some(others) if as_asked && own.0.is_disjoint(&others.0) => {
            format!("{which} for itself: the CPU manager is static")
        }
        Some(_) => {
            format!("{which}, some shared with other pods ({} asked for): no static CPU manager", way.cpus_asked)
        }
        None if as_asked => format!("{which}, as many as asked for"),
        None => format!("{which}, and {} asked for: no static CPU manager", way.cpus_asked),
    })
}

#[cfg(test)]
mod tests {
    use super::cpus;
    use crate::nodes::way;
    use tailbound_model::{CpuList, Hop, Link, NodeWay, Tunnel};

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
            "pod eth0 (veth, MTU 1450); the rest of the path is not known: nobody has looked at the node"
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
            "CPUs 0-1, some shared with other pods (2 asked for): no static CPU manager"
        );
    }
}
