//! The options of the function `open` of the `udp` driver.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use tailbound_abi::side::{Outcome, Pair, fail};
use tailbound_abi::{TB_EINVAL, TB_EIO, TB_EUNSUPPORTED};

use crate::net;
use crate::wire::{candidate_port, group};

/// Size of the receive buffer in bytes, if the study gives no size: the kernel's default has room for only three
/// datagrams of 60 kB. The kernel grants at most net.core.rmem_max; the answer to `transport` contains the granted
/// size.
pub const DEFAULT_RCVBUF_BYTES: i32 = 4 << 20;

/// The options of the function `open` of the `udp` driver, parsed.
#[derive(Clone, Debug)]
pub struct Options {
    pub domain: u32,
    pub address: IpAddr,
    pub peers: Vec<IpAddr>,
    pub interface: Option<String>,
    pub rcvbuf_bytes: Option<i32>,
    pub sndbuf_bytes: Option<i32>,
    /// Whether received datagrams have a timestamp of the kernel.
    pub timestamps: bool,
    /// Whether sent datagrams have stamps of their stages, and whether the network card gives one too.
    pub stages: Option<bool>,
    pub ttl: Option<i32>,
    /// Priority of the packets of the driver's sockets (SO_PRIORITY).
    pub priority: Option<i32>,
    /// Whether messages have launch times (SO_TXTIME), and whether these are deadlines.
    pub launch: Option<bool>,
    /// Whether one datagram goes to all readers, sent to a multicast group that follows from domain and topic.
    pub multicast: bool,
}

fn ip(key: &str, value: &str) -> Outcome<IpAddr> {
    value.parse().or_else(|_| fail(TB_EINVAL, format!("{key}: `{value}` is not an IP address")))
}

/// Reads the addresses of the peers; a name means all addresses that the name has now.
fn peers(pair: &Pair) -> Outcome<Vec<IpAddr>> {
    let of = |peer: &str| match peer.parse() {
        Ok(address) => Ok(vec![address]),
        Err(_) => match (peer, 0).to_socket_addrs() {
            Ok(found) => Ok(found.map(|a| a.ip()).filter(IpAddr::is_ipv4).collect()),
            Err(e) => {
                fail(TB_EINVAL, format!("peers: `{peer}` is not an IP address, and the name has no address: {e}"))
            }
        },
    };
    pair.list().map(of).collect::<Outcome<Vec<_>>>().map(|all| all.concat())
}

impl Options {
    /// Reads the options of `open`; the text of every failure names the key of the option.
    pub fn parse(pairs: &[Pair]) -> Outcome<Options> {
        let (mut address, mut asks_by_multicast) = (None, false);
        let mut o = Options {
            domain: 77,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            peers: Vec::new(),
            interface: None,
            rcvbuf_bytes: None,
            sndbuf_bytes: None,
            timestamps: false,
            stages: None,
            ttl: None,
            priority: None,
            launch: None,
            multicast: false,
        };
        for pair in pairs {
            match pair.key {
                "domain" => o.domain = pair.number(TB_EINVAL, 0..=u32::MAX)?,
                "address" => address = Some(ip(pair.key, pair.value.trim())?),
                "peers" => o.peers = peers(pair)?,
                "interface" => o.interface = pair.text().map(str::to_owned),
                "rcvbuf" => o.rcvbuf_bytes = Some(pair.number(TB_EINVAL, 0..=i32::MAX)?),
                "sndbuf" => o.sndbuf_bytes = Some(pair.number(TB_EINVAL, 0..=i32::MAX)?),
                "timestamps" => {
                    let chosen = pair.word(TB_EINVAL, &["off", "on", "stages", "hardware"])?;
                    (o.timestamps, o.stages) = (chosen > 0, (chosen > 1).then_some(chosen == 3));
                }
                "ttl" => o.ttl = Some(pair.number(TB_EINVAL, 0..=255)?),
                "priority" => o.priority = Some(pair.number(TB_EINVAL, 0..=15)?),
                "launch" => {
                    let chosen = pair.word(TB_EINVAL, &["off", "strict", "deadline"])?;
                    o.launch = (chosen > 0).then_some(chosen == 2);
                }
                "data" => o.multicast = pair.word(TB_EINVAL, &["unicast", "multicast"])? == 1,
                "unacked_limit" => {
                    return Err(pair.bad(TB_EUNSUPPORTED, "with the udp driver nothing is acknowledged"));
                }
                // Every end point has its own sockets, and there are no participants to share them.
                "participants" => drop(pair.number(TB_EINVAL, 1..=2)?),
                // If the path does not carry multicast, nobody will answer.
                "multicast" => asks_by_multicast = pair.word(TB_EINVAL, &["off", "on"])? == 1,
                "discovery_server" | "transport" | "naming" | "config" => {
                    return Err(pair.bad(TB_EUNSUPPORTED, "the udp driver does not support this option"));
                }
                _ => return Err(pair.bad(TB_EINVAL, "the udp driver has no such option")),
            }
        }
        if asks_by_multicast && o.peers.is_empty() && !o.multicast {
            return fail(
                TB_EINVAL,
                "multicast=on: the udp driver searches peers by multicast only with data=multicast; give peers",
            );
        }
        o.settle(address)
    }

    fn settle(mut self, address: Option<IpAddr>) -> Outcome<Options> {
        if let Some(name) = &self.interface
            && net::interface_index(name) == 0
        {
            return fail(TB_EIO, format!("interface: there is no interface `{name}` in this network namespace"));
        }
        self.address = match (address, &self.interface) {
            (Some(address), _) => address,
            (None, None) => self.address,
            (None, Some(name)) => match net::interface_address(name) {
                Some(address) => address,
                None => {
                    return fail(TB_EIO, format!("interface: `{name}` has no IPv4 address; give `address` as well"));
                }
            },
        };
        if self.ttl == Some(0) && !self.multicast {
            return fail(TB_EINVAL, "ttl=0: data=unicast needs a ttl of at least 1; 0 is for data=multicast only");
        }
        if self.multicast && !self.address.is_ipv4() {
            return fail(
                TB_EUNSUPPORTED,
                "data=multicast: the udp driver supports multicast groups of IPv4 only; give an IPv4 address",
            );
        }
        if self.peers.is_empty() {
            self.peers.push(self.address);
        }
        match self.peers.iter().find(|p| p.is_ipv4() != self.address.is_ipv4()) {
            Some(peer) => {
                fail(TB_EINVAL, format!("peers: {peer} and address {} must both be IPv4 or both be IPv6", self.address))
            }
            None => Ok(self),
        }
    }

    /// Addresses at which a writer asks for readers of a topic: candidate ports of its peers, or the multicast group.
    pub fn asked(&self, topic: u64, candidates: u32) -> Vec<SocketAddr> {
        if self.multicast {
            return vec![group(topic)];
        }
        let ports = |peer| (0..candidates).map(move |i| self.at(peer, candidate_port(topic, i)));
        self.peers.iter().flat_map(|peer| ports(*peer)).collect()
    }

    /// Makes a socket address, with the interface as scope if IPv6 needs a scope.
    pub fn at(&self, ip: IpAddr, port: u16) -> SocketAddr {
        match ip {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => {
                let scope = self.interface.as_deref().map_or(0, net::interface_index);
                SocketAddr::V6(SocketAddrV6::new(v6, port, 0, scope))
            }
            ip => SocketAddr::new(ip, port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Outcome<Options> {
        Options::parse(&pairs.iter().map(|&(key, value)| Pair { key, value }).collect::<Vec<_>>())
    }

    #[test]
    fn errors_name_the_option() {
        for (key, value) in [
            ("domain", "x"),
            ("peers", "10.0.0.1,no..name"),
            ("ttl", "256"),
            ("priority", "16"),
            ("launch", "soon"),
            ("timestamps", "1"),
            ("zz", "1"),
        ] {
            let text = parse(&[(key, value)]).map(drop).unwrap_err().text;
            assert!(text.starts_with(key), "{text}");
        }
        let mixed = parse(&[("address", "::1"), ("peers", "127.0.0.1")]).map(drop).unwrap_err();
        assert!(mixed.text.contains("must both be IPv4 or both be IPv6"), "{}", mixed.text);
    }

    #[test]
    fn a_name_among_peers_stands_for_its_addresses() {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let peers = parse(&[("peers", "10.0.0.1,localhost")]).unwrap().peers;
        assert!(peers.len() >= 2 && peers[1..].iter().all(|p| *p == local), "{peers:?}");
    }

    #[test]
    fn an_interface_gives_the_address() {
        assert_eq!(parse(&[("interface", "lo")]).unwrap().address, IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
}
