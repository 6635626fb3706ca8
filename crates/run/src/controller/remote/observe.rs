//! What lies between the pods of a trial and the wire, and what their nodes take and carry while ends measure.
//!
//! A pod sees its own interfaces. What it is joined to is seen by an observer, a further pod in the namespaces of the node,
//! where the study asks for one. It is asked before the window and after it, never in it.

use super::{Host, Hosts, pod};
use crate::controller::RunError;
use crate::controller::lab::Standing;
use std::io;
use std::sync::Arc;
use tailbound_host::journal::Journal;
use tailbound_lab::{Begin, Far, way};
use tailbound_model::*;

impl Hosts {
    /// The observer of the node of a pod, if the study asks for one: that of another pod there, or a new one.
    ///
    /// # Errors
    /// The cluster does not want such a pod, or it does not come to run.
    pub(super) fn observer(
        &mut self,
        spec: &PodSpec,
        pod: &Host,
        (run_id, journal): (&str, &Journal),
    ) -> Result<Option<Arc<Host>>, RunError> {
        let Some(node) = pod.node.as_deref().filter(|_| spec.observe) else { return Ok(None) };
        for lost in self.observers.extract_if(.., |host| !host.answers()) {
            lost.leave(journal);
        }
        let cluster = |spec: &PodSpec| (spec.kubeconfig.clone(), spec.context.clone(), spec.namespace.clone());
        let same = |host: &&Arc<Host>| {
            let of = if let PlaceSpec::Pod(of) = &host.place { cluster(of) == cluster(spec) } else { false };
            of && host.node.as_deref() == Some(node)
        };
        if let Some(there) = self.observers.iter().find(same) {
            return Ok(Some(there.clone()));
        }
        self.made += 1;
        let token = format!("{run_id}-{}", self.made);
        let host = Arc::new(pod::observe(spec, (run_id, journal), (token, node))?);
        self.observers.push(host.clone());
        Ok(Some(host))
    }
}

/// The nodes of a trial.
pub(in crate::controller) struct Nodes(Vec<Watched>);

struct Watched {
    seen: NodeSeen,
    observer: Option<Arc<Host>>,
    before: Option<NodeCounts>,
}

impl Nodes {
    /// Looks at what the pods of a trial are joined to.
    pub fn look(standing: &Standing) -> Nodes {
        let mut nodes: Vec<Watched> = Vec::new();
        for place in 0..standing.lab.places() {
            let Some((host, node)) = standing.host_at(place).and_then(|h| Some((h, h.node.as_ref()?))) else {
                continue;
            };
            let at = nodes.iter().position(|n| n.seen.node == *node).unwrap_or_else(|| {
                let seen = NodeSeen { node: node.clone(), ..NodeSeen::default() };
                nodes.push(Watched { seen, observer: None, before: None });
                nodes.len() - 1
            });
            if let (None, Some(observer)) = (&nodes[at].observer, &host.observer) {
                nodes[at].seen.interface = interface(observer);
                nodes[at].observer = Some(observer.clone());
            }
            let way = way_of(standing, place, host, nodes[at].seen.interface.as_deref());
            nodes[at].seen.ways.push(way);
        }
        Nodes(nodes)
    }

    /// Just before ends measure.
    pub fn begin(&mut self) {
        for node in &mut self.0 {
            node.before = node.observer.as_ref().and_then(counts);
        }
    }

    /// Just after they have measured.
    pub fn end(self) -> Vec<NodeSeen> {
        let seen = |node: Watched| {
            let both = node.before.as_ref().zip(node.observer.as_ref().and_then(counts));
            NodeSeen { cost: both.map(|(before, after)| NodeCost::between(before, &after)), ..node.seen }
        };
        self.0.into_iter().map(seen).collect()
    }
}

/// The interface with the address that the cluster tells of the node.
fn interface(observer: &Arc<Host>) -> Option<String> {
    let address = Far::address(&**observer)?;
    let Ok(Told::Interfaces(all)) = observer.ask(Ask::Interfaces) else { return None };
    all.into_iter().find(|i| i.addresses.iter().any(|(own, _)| *own == address)).map(|i| i.name)
}

fn counts(observer: &Arc<Host>) -> Option<NodeCounts> {
    match observer.ask(Ask::Node) {
        Ok(Told::Node(counts)) => Some(counts),
        _ => None,
    }
}

fn links(host: &Host, to: Vec<std::net::IpAddr>) -> io::Result<LinksSeen> {
    match host.ask(Ask::Links(to))? {
        Told::Links(seen) => Ok(seen),
        Told::Failed(why, _) => Err(io::Error::other(format!("{}: {why}", host.name()))),
        other => Err(io::Error::other(format!("{} said {other:?} in place of its interfaces", host.name()))),
    }
}

fn way_of(standing: &Standing, place: usize, host: &Host, uplink: Option<&str>) -> NodeWay {
    let PlaceSpec::Pod(spec) = &host.place else { return NodeWay::default() };
    let mut seen = NodeWay { end: standing.spec.name(place).to_owned(), cpus_asked: spec.cpus, ..NodeWay::default() };
    let other = usize::from(standing.spec.sends(place));
    let other_node = standing.host_at(other).and_then(|h| h.observer.as_ref()).and_then(|o| Far::address(&**o));
    let to = [Some(standing.lab.end(other).address), other_node].into_iter().flatten().collect();
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
    let begin = if spec.host_network { Begin::OnNode } else { Begin::InPod(&here) };
    let node = node.or_else(|| spec.host_network.then(|| here.clone()));
    (seen.hops, seen.open) = way(begin, &standing.lab.end(place).interface, node.as_ref());
    let last = seen.hops.last().map(|hop| hop.link.name.as_str());
    if let (None, Some(last), Some(uplink)) = (&seen.open, last, uplink)
        && last != uplink
        && standing.host_at(other).is_none_or(|h| h.node != host.node)
    {
        seen.open = Some(format!("which way leads from {last} to {uplink} the routes do not tell"));
    }
    seen
}
