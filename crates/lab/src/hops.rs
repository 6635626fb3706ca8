//! Finds the interfaces that packets pass on their way from an interface of a pod through its node.
//!
//! Input: the interfaces of the pod, and the interfaces and routes of the node. Output: the interfaces in order, and
//! the reason if the next interface is not known. An eBPF program (XDP or tc) on an interface can send packets to
//! another interface than the routes do, so the result names the eBPF programs on each interface.

use tailbound_model::{Hop, Link, LinksSeen};

/// Kinds of interfaces that exist in pairs, where each interface sends what the other receives.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];
/// Kinds of interfaces that lie on top of another interface and name that interface.
const LAYERS: [&str; 7] = ["vxlan", "geneve", "vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"];
/// Kinds of tunnels. If a tunnel does not name the interface that packets reach next, the route to the other node shows
/// this interface.
const TUNNELS: [&str; 8] = ["vxlan", "geneve", "ipip", "sit", "gre", "gretap", "ip6tnl", "wireguard"];
/// Maximum number of interfaces in the result of [`hops`].
const MOST: usize = 12;

/// The first interface of the route that packets take through a Kubernetes node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HopsStart<'a> {
    /// The route begins at an interface of a pod that has its own network namespace.
    InPod(&'a LinksSeen),
    /// The route begins at an interface of the Kubernetes node itself.
    OnNode,
}

/// Returns the interfaces that packets pass from `interface` on, and the reason if the next interface is not known.
/// `node` must contain two routes: to the other pod, and to the other node.
pub fn hops(start: HopsStart<'_>, interface: &str, node: Option<&LinksSeen>) -> (Vec<Hop>, Option<String>) {
    let mut hops: Vec<Hop> = Vec::new();
    let missing = || Some(format!("there is no interface {interface}"));
    let (next, node) = match (start, node) {
        (HopsStart::OnNode, None) => return (hops, Some("the interfaces of the node were not read".into())),
        (HopsStart::OnNode, Some(node)) => match node.links.iter().find(|l| l.name == interface) {
            Some(link) => (link, node),
            None => return (hops, missing()),
        },
        (HopsStart::InPod(pod), node) => {
            let Some(first) = pod.links.iter().find(|l| l.name == interface) else { return (hops, missing()) };
            hops.push(Hop { in_pod: true, link: first.clone() });
            let Some(node) = node else { return (hops, Some("the interfaces of the node were not read".into())) };
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
            // If the route leads back to the bridge, packets leave by the only port that is not the port of a pod.
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

/// Finds the interface of the node to which an interface of a pod is joined. The two interfaces of a pair name each
/// other by index, so an equal index in a third namespace is not accepted.
fn other_half<'a>(first: &Link, node: &'a LinksSeen) -> Option<&'a Link> {
    let found = node.links.iter().find(|l| first.elsewhere && Some(l.index) == first.below)?;
    let fits = !is(first, &PAIRS) || found.kind == first.kind && found.elsewhere && found.below == Some(first.index);
    fits.then_some(found)
}

fn one<'a>(mut links: impl Iterator<Item = &'a Link>) -> Option<&'a Link> {
    links.next().filter(|_| links.next().is_none())
}
