//! Attributes of a network interface from an answer to RTM_GETLINK (rtnetlink(7)).

use crate::netlink;
use nix::net::if_::{if_indextoname, if_nameindex};
use std::io;

#[derive(Debug, Default)]
pub(super) struct Link {
    pub index: u32,
    pub mtu: u32,
    pub up: bool,
    pub state: String,
    pub kind: Option<String>,
    pub qdisc: Option<String>,
    pub tx_queues: Option<u32>,
    pub rx_queues: Option<u32>,
    /// Index of the interface below, in the network namespace of that interface.
    below: Option<u32>,
    /// Index of the bridge or bond to which the interface belongs.
    master: Option<u32>,
    /// Whether the interface below is in another network namespace, whose indices are its own.
    is_apart: bool,
}

/// Names of the operational states of an interface, indexed by number (RFC 2863, linux/if.h).
const STATES: [&str; 7] = ["unknown", "not present", "down", "lower layer down", "testing", "dormant", "up"];

const IFLA_INFO_KIND: u16 = 1;

/// Largest number of interfaces below another one that are looked at. The kernel permits 8 (MAX_NEST_DEV of linux/netdevice.h).
const MOST_BELOW: usize = 8;

pub(super) fn query(name: &str) -> io::Result<Link> {
    let index = nix::net::if_::if_nametoindex(name)
        .map_err(|e| io::Error::new(io::Error::from(e).kind(), format!("interface {name} does not exist here: {e}")))?;
    let answer = netlink::request(libc::RTM_GETLINK, &netlink::IfInfo::of(index))?;
    Ok(parse(index, &answer))
}

/// Parses an answer to RTM_GETLINK, which is an ifinfomsg followed by attributes.
fn parse(index: u32, answer: &[u8]) -> Link {
    let mut link = Link { index, state: STATES[0].to_owned(), ..Link::default() };
    let Some((head, attributes)) = answer.split_at_checked(16) else { return link };
    let flags = u32::from_ne_bytes([head[8], head[9], head[10], head[11]]);
    link.up = flags & libc::IFF_UP as u32 != 0 && flags & libc::IFF_RUNNING as u32 != 0;
    for (kind, value) in netlink::attributes(attributes) {
        let number = || value.get(..4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        match kind {
            libc::IFLA_MTU => link.mtu = number().unwrap_or_default(),
            libc::IFLA_OPERSTATE => {
                let state = value.first().and_then(|&n| STATES.get(n as usize));
                link.state = state.unwrap_or(&STATES[0]).to_string();
            }
            libc::IFLA_QDISC => link.qdisc = Some(text(value)),
            libc::IFLA_NUM_TX_QUEUES => link.tx_queues = number(),
            libc::IFLA_NUM_RX_QUEUES => link.rx_queues = number(),
            libc::IFLA_LINK => link.below = number(),
            libc::IFLA_MASTER => link.master = number(),
            libc::IFLA_LINK_NETNSID => link.is_apart = true,
            libc::IFLA_LINKINFO => {
                link.kind = netlink::attributes(value).find(|(kind, _)| *kind == IFLA_INFO_KIND).map(|(_, v)| text(v));
            }
            _ => {}
        }
    }
    link
}

/// The interfaces below `first`, the next one first, as far as each is a VLAN or macvlan of an interface of the same network
/// namespace: names and kinds.
pub(super) fn below(first: &Link) -> Vec<(String, Option<String>)> {
    let mut all = Vec::new();
    let mut next = first.carrier();
    while let Some(name) = next.filter(|_| all.len() < MOST_BELOW).and_then(|index| if_indextoname(index).ok()) {
        let Ok(name) = name.into_string() else { break };
        let Ok(link) = query(&name) else { break };
        next = link.carrier();
        all.push((name, link.kind));
    }
    all
}

/// The interfaces of the same network namespace whose packets leave by this one: the bridge or bond to which it belongs, VLANs and
/// macvlans on it, and the interfaces above them.
pub(super) fn above(name: &str) -> Vec<String> {
    let Ok(first) = query(name) else { return Vec::new() };
    let names = if_nameindex().into_iter().flat_map(|all| {
        let name = |of: &nix::net::if_::Interface| of.name().to_str().ok().map(str::to_owned);
        all.iter().filter_map(name).collect::<Vec<_>>()
    });
    let mut others: Vec<(String, Link)> =
        names.filter(|other| other != name).filter_map(|name| query(&name).ok().map(|link| (name, link))).collect();
    let mut all = Vec::new();
    let mut next = vec![first];
    while let Some(under) = next.pop() {
        let is_above = |link: &Link| under.master == Some(link.index) || link.carrier() == Some(under.index);
        let (found, rest) = others.into_iter().partition(|(_, link)| is_above(link));
        others = rest;
        for (name, link) in found {
            all.push(name);
            next.push(link);
        }
    }
    all
}

impl Link {
    /// Index of the interface by which this one sends its packets as they are.
    fn carrier(&self) -> Option<u32> {
        let is_thin = matches!(self.kind.as_deref(), Some("vlan" | "macvlan"));
        self.below.filter(|_| is_thin && !self.is_apart)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}
