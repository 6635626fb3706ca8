//! Attributes of a network interface from an answer to RTM_GETLINK (rtnetlink(7)).

use crate::netlink;
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
}

/// Names of the operational states of an interface, indexed by number (RFC 2863, linux/if.h).
const STATES: [&str; 7] = ["unknown", "not present", "down", "lower layer down", "testing", "dormant", "up"];

const IFLA_INFO_KIND: u16 = 1;

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
            libc::IFLA_LINKINFO => {
                link.kind = netlink::attributes(value).find(|(kind, _)| *kind == IFLA_INFO_KIND).map(|(_, v)| text(v));
            }
            _ => {}
        }
    }
    link
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}
