//! From an interface of a pod to that of its node: which interface leads to which.
//!
//! In: what was seen in the pod, and what an observer saw in the network namespace of the node. Out: the interfaces in
//! their order, and why the order ends where it does. Programs at an interface may send packets another way than the
//! routes do: they are told with it.

use tailbound_model::{Hop, Link, LinksSeen};

/// Kinds of which there are two halves.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];
/// Kinds that lie upon the interface that they name.
const LAYERS: [&str; 7] = ["vxlan", "geneve", "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"];
/// Kinds that wrap packets up; where they name no interface, the route to the other node leads on.
const TUNNELS: [&str; 8] = ["vxlan", "geneve", "ipip", "sit", "gre", "gretap", "ip6tnl", "wireguard"];
/// A way that is longer leads nowhere.
const MOST: usize = 12;

/// Where a way begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin<'a> {
    /// In a pod that has a network namespace of its own.
    InPod(&'a LinksSeen),
    /// In that of the node.
    OnNode,
}

/// The way from an interface, and why it is not known any further. The routes of the node: to the other pod, and to the
/// other node.
pub fn way(begin: Begin<'_>, interface: &str, node: Option<&LinksSeen>) -> (Vec<Hop>, Option<String>) {
    let mut hops: Vec<Hop> = Vec::new();
    let missing = || Some(format!("there is no interface {interface}"));
    let (next, node) = match (begin, node) {
        (Begin::OnNode, None) => return (hops, Some("nobody has looked".into())),
        (Begin::OnNode, Some(node)) => match node.links.iter().find(|l| l.name == interface) {
            Some(link) => (link, node),
            None => return (hops, missing()),
        },
        (Begin::InPod(pod), node) => {
            let Some(first) = pod.links.iter().find(|l| l.name == interface) else { return (hops, missing()) };
            hops.push(Hop { in_pod: true, link: first.clone() });
            let Some(node) = node else { return (hops, Some("nobody has looked at the node".into())) };
            let Some(next) = other_half(first, node) else {
                let text = format!("{interface} leads to no interface of the node's network namespace");
                return (hops, Some(text));
            };
            (next, node)
        }
    };
    let mut next = Some(next);
    let mut by_route = hops.last().is_some_and(|hop| is(&hop.link, &PAIRS));
    while let Some(link) = next.filter(|_| hops.len() < MOST) {
        hops.push(Hop { in_pod: false, link: link.clone() });
        let seen = |l: &&Link| !hops.iter().any(|hop| !hop.in_pod && hop.link.index == l.index);
        let at = |index: Option<u32>| node.links.iter().find(|l| Some(l.index) == index);
        let routed = |n: usize| at(node.routes.get(n).copied().flatten());
        next = if is(link, &["bridge"]) || by_route && link.master.is_none() {
            // A bridge that the route leads back to joins its ports: the way out is the one that is no pod's.
            let ports = || node.links.iter().filter(|l| l.master == Some(link.index) && !is(l, &PAIRS));
            by_route = false;
            routed(0).filter(seen).or_else(|| one(ports()))
        } else if by_route {
            at(link.master).filter(seen)
        } else if is(link, &LAYERS) && link.below.is_some() && !link.elsewhere {
            at(link.below).filter(seen)
        } else if is(link, &TUNNELS) {
            routed(1).filter(seen)
        } else {
            None
        };
    }
    (hops, None)
}

fn is(link: &Link, kinds: &[&str]) -> bool {
    link.kind.as_deref().is_some_and(|kind| kinds.contains(&kind))
}

/// What an interface of a pod names on its node. Two halves name each other: the same index in a third namespace does
/// not.
fn other_half<'a>(first: &Link, node: &'a LinksSeen) -> Option<&'a Link> {
    let found = node.links.iter().find(|l| first.elsewhere && Some(l.index) == first.below)?;
    let fits = !is(first, &PAIRS) || found.kind == first.kind && found.elsewhere && found.below == Some(first.index);
    fits.then_some(found)
}

fn one<'a>(mut links: impl Iterator<Item = &'a Link>) -> Option<&'a Link> {
    links.next().filter(|_| links.next().is_none())
}
