//! Reads how the pods of a trial are connected to the network, and what their cluster nodes use and carry during the
//! measurement.
//!
//! A pod can read only its own interfaces. An observer, a further pod in the namespaces of the node, can read the
//! interfaces of the node to which the pod is connected. The controller asks the observer before and after the messages
//! of a trial are sent, never while they are sent.

use super::active_lab::ActiveLab;
use super::places::Host;
use std::io;
use std::sync::Arc;
use tailbound_lab::{Far, HopsStart, hops};
use tailbound_model::*;

/// The cluster nodes on which the pods of a trial run.
pub(super) struct Nodes(Vec<Node>);

struct Node {
    seen: NodeSeen,
    observer: Option<Arc<Host>>,
    before: Option<NodeCounts>,
}

impl Nodes {
    /// Reads on the cluster nodes how the pods of a trial are connected.
    pub fn look(lab: &ActiveLab) -> Nodes {
        let mut nodes: Vec<Node> = Vec::new();
        for place in 0..lab.lab.places() {
            let Some((host, node)) = lab.host_at(place).and_then(|h| Some((h, h.node.as_ref()?))) else {
                continue;
            };
            let at = nodes.iter().position(|n| n.seen.node == *node).unwrap_or_else(|| {
                let seen = NodeSeen { node: node.clone(), ..NodeSeen::default() };
                nodes.push(Node { seen, observer: None, before: None });
                nodes.len() - 1
            });
            if let (None, Some(observer)) = (&nodes[at].observer, &host.observer) {
                nodes[at].seen.interface = interface(observer);
                nodes[at].observer = Some(observer.clone());
            }
            let way = way_of(lab, place, host, nodes[at].seen.interface.as_deref());
            nodes[at].seen.ways.push(way);
        }
        Nodes(nodes)
    }

    /// Reads the counters of the cluster nodes just before the ends measure.
    pub fn begin(&mut self) {
        for node in &mut self.0 {
            node.before = node.observer.as_ref().and_then(counts);
        }
    }

    /// Reads the counters of the cluster nodes just after the ends have measured. Returns the results for the record.
    pub fn end(self) -> Vec<NodeSeen> {
        let seen = |node: Node| {
            let both = node.before.as_ref().zip(node.observer.as_ref().and_then(counts));
            NodeSeen { cost: both.map(|(before, after)| NodeCost::between(before, &after)), ..node.seen }
        };
        self.0.into_iter().map(seen).collect()
    }
}

/// Name of the interface with the address that the cluster reports for the node.
fn interface(observer: &Arc<Host>) -> Option<String> {
    let address = Far::address(&**observer)?;
    let Ok(Answer::Interfaces(all)) = observer.ask(Ask::Interfaces) else { return None };
    all.into_iter().find(|i| i.addresses.iter().any(|(own, _)| *own == address)).map(|i| i.name)
}

fn counts(observer: &Arc<Host>) -> Option<NodeCounts> {
    match observer.ask(Ask::Node) {
        Ok(Answer::Node(counts)) => Some(counts),
        _ => None,
    }
}

fn links(host: &Host, to: Vec<std::net::IpAddr>) -> io::Result<LinksSeen> {
    match host.ask(Ask::Links(to))? {
        Answer::Links(seen) => Ok(seen),
        Answer::Failed(why, _) => Err(io::Error::other(format!("{}: {why}", host.name()))),
        other => Err(io::Error::other(format!("{} sent {other:?} instead of a list of interfaces", host.name()))),
    }
}

fn way_of(lab: &ActiveLab, place: usize, host: &Host, uplink: Option<&str>) -> NodeWay {
    let PlaceSpec::Pod(spec) = &host.place else { return NodeWay::default() };
    let mut seen = NodeWay { end: lab.spec.name(place).to_owned(), cpus_asked: spec.cpus, ..NodeWay::default() };
    let other = usize::from(lab.spec.sends(place));
    let other_node = lab.host_at(other).and_then(|h| h.observer.as_ref()).and_then(|o| Far::address(&**o));
    let to = [Some(lab.lab.end(other).address), other_node].into_iter().flatten().collect();
    let here = match links(host, Vec::new()) {
        Ok(here) => here,
        Err(e) => return NodeWay { open: Some(e.to_string()), ..seen },
    };
    let node = match host.observer.as_ref().map(|observer| links(observer, to)).transpose() {
        Ok(node) => node,
        Err(e) => return NodeWay { open: Some(e.to_string()), ..seen },
    };
    seen.cpus = here.cpus.clone();
    seen.cpus_of_others = node.as_ref().and_then(|n| n.cpus.clone());
    let begin = if spec.host_network { HopsStart::OnNode } else { HopsStart::InPod(&here) };
    let node = node.or_else(|| spec.host_network.then(|| here.clone()));
    (seen.hops, seen.open) = hops(begin, &lab.lab.end(place).interface, node.as_ref());
    let last = seen.hops.last().map(|hop| hop.link.name.as_str());
    if let (None, Some(last), Some(uplink)) = (&seen.open, last, uplink)
        && last != uplink
        && lab.host_at(other).is_none_or(|h| h.node != host.node)
    {
        seen.open = Some(format!("the routes do not show which path leads from {last} to {uplink}"));
    }
    seen
}
