//! The options of the function `open` of the `zenoh` driver.

use std::net::IpAddr;

use tailbound_abi::side::{Outcome, Pair};
use tailbound_abi::{TB_EINVAL, TB_EUNSUPPORTED};

/// Number of the domain if the options name no domain.
pub const DEFAULT_DOMAIN: u16 = 77;
/// Largest number of a domain, as of DDS domains.
pub const MAX_DOMAIN: u16 = 230;
/// Port of domain 0; the port of a domain is this number plus the number of the domain.
pub const FIRST_PORT: u16 = 17_400;
/// Largest number of messages in the queue of a reader with `history=keep-all`, if no number is given.
pub const BUFFERED: usize = 10_000;
const MOST_BUFFERED: usize = 1_000_000;

/// A transport of zenoh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
    /// Over UDP, encrypted, with a stream that repeats what was lost.
    Quic,
}

impl Transport {
    pub fn word(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
            Transport::Quic => "quic",
        }
    }
}

/// What a publisher does if its queue to a peer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    Block,
    Drop,
}

/// The options of the function `open`, parsed.
pub struct Options {
    pub domain: u16,
    pub address: IpAddr,
    pub peers: Vec<IpAddr>,
    pub port: u16,
    pub transport: Transport,
    /// Address of a router; `None` = between peers.
    pub router: Option<String>,
    /// Path of the certificate of the authority that signed the certificate of a router; `None` = the built-in one.
    pub authority: Option<String>,
    pub express: bool,
    /// `None` = it follows from the reliability.
    pub congestion: Option<Congestion>,
    pub shared_memory: bool,
    pub buffer_size: usize,
}

const ON_OFF: [&str; 2] = ["off", "on"];

impl Options {
    /// Reads the options of `open`; the text of every failure names the key of the option.
    pub fn parse(pairs: &[Pair]) -> Outcome<Self> {
        let mut o = Options {
            domain: DEFAULT_DOMAIN,
            address: IpAddr::from([127, 0, 0, 1]),
            peers: Vec::new(),
            port: 0,
            transport: Transport::Tcp,
            router: None,
            authority: None,
            express: false,
            congestion: None,
            shared_memory: false,
            buffer_size: BUFFERED,
        };
        let (mut transport, mut authority) = (None, None);
        for pair in pairs {
            match pair.key {
                "domain" => o.domain = pair.number(TB_EINVAL, 0..=MAX_DOMAIN)?,
                "address" => o.address = address(pair, pair.value)?,
                "peers" => o.peers = pair.list().map(|text| address(pair, text)).collect::<Outcome<_>>()?,
                "port" => o.port = pair.number(TB_EINVAL, 1..=u16::MAX)?,
                "transport" => transport = Some((pair, word(pair)?)),
                "router" => o.router = Some(router(pair)?.to_owned()),
                "authority" => authority = Some(pair),
                "express" => o.express = pair.word(TB_EINVAL, &ON_OFF)? == 1,
                "congestion_control" => {
                    o.congestion =
                        Some([Congestion::Block, Congestion::Drop][pair.word(TB_EINVAL, &["block", "drop"])?]);
                }
                "shared_memory" => o.shared_memory = pair.word(TB_EINVAL, &ON_OFF)? == 1,
                "buffer_size" => o.buffer_size = pair.number(TB_EINVAL, 1..=MOST_BUFFERED)?,
                "multicast" if pair.value == "off" => {}
                "multicast" => return Err(pair.bad(TB_EUNSUPPORTED, "the zenoh driver never scouts by multicast")),
                "unacked_limit" => {
                    let why =
                        "zenoh has no limit of unacknowledged messages: TCP and the queues of zenoh are the limit";
                    return Err(pair.bad(TB_EUNSUPPORTED, why));
                }
                _ => return Err(pair.bad(TB_EINVAL, "the zenoh driver has no such option")),
            }
        }
        if let Some((pair, transport)) = transport {
            o.transport = transport;
            if o.router.as_ref().is_some_and(|router| !router.starts_with(&format!("{}/", pair.value))) {
                return Err(pair.bad(TB_EINVAL, "contradicts the option router, which names the transport too"));
            }
        } else if let Some((word, _)) = o.router.as_ref().and_then(|router| router.split_once('/')) {
            o.transport = named(word).unwrap_or(o.transport);
        }
        if let Some(pair) = authority {
            if o.transport != Transport::Quic || o.router.is_none() {
                return Err(pair.bad(TB_EINVAL, "belongs to a router over quic: router=quic/HOST:PORT"));
            }
            o.authority = Some(pair.value.to_owned());
        }
        if o.port == 0 {
            o.port = FIRST_PORT + o.domain;
        }
        Ok(o)
    }
}

/// The transport with a name.
fn named(word: &str) -> Option<Transport> {
    [Transport::Tcp, Transport::Udp, Transport::Quic].into_iter().find(|transport| transport.word() == word)
}

fn word(pair: &Pair) -> Outcome<Transport> {
    let why = "the driver has the transports tcp, udp and quic of zenoh";
    named(pair.value).ok_or_else(|| pair.bad(TB_EUNSUPPORTED, why))
}

fn address(pair: &Pair, text: &str) -> Outcome<IpAddr> {
    text.trim().parse().map_err(|_| pair.bad(TB_EINVAL, "an IP address is expected"))
}

/// Checks the form of the address of a router: a transport, `/`, a host, `:` and a port.
fn router<'a>(pair: &Pair<'a>) -> Outcome<&'a str> {
    let why = "expected tcp/HOST:PORT, udp/HOST:PORT or quic/HOST:PORT, as zenohd prints its addresses";
    let wrong = || pair.bad(TB_EINVAL, why);
    let (transport, place) = pair.value.split_once('/').ok_or_else(wrong)?;
    let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
    match (named(transport), host.is_empty(), port.parse::<u16>()) {
        (Some(_), false, Ok(1..)) => Ok(pair.value),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(given: &[(&str, &str)]) -> Outcome<Options> {
        Options::parse(&given.iter().map(|&(key, value)| Pair { key, value }).collect::<Vec<_>>())
    }

    #[test]
    fn a_router_decides_about_the_transport() {
        let o = parsed(&[("router", "udp/10.0.0.1:7447")]).unwrap();
        assert_eq!((o.transport, o.port), (Transport::Udp, 17_477));
        assert!(parsed(&[("router", "udp/10.0.0.1:7447"), ("transport", "tcp")]).is_err());
        assert_eq!(parsed(&[("router", "tcp/r:7447"), ("transport", "tcp")]).unwrap().transport, Transport::Tcp);
        assert_eq!(parsed(&[("router", "quic/r:7447")]).unwrap().transport, Transport::Quic);
    }

    #[test]
    fn an_authority_belongs_to_a_router_over_quic() {
        let path = ("authority", "/ca.pem");
        assert_eq!(parsed(&[("router", "quic/r:7447"), path]).unwrap().authority.as_deref(), Some("/ca.pem"));
        for others in [[("router", "tcp/r:7447"), path], [("transport", "quic"), path]] {
            assert!(parsed(&others).is_err());
        }
    }

    #[test]
    fn faults_name_their_option() {
        for (key, value) in
            [("router", "tcp/7447"), ("router", "tls/a:1"), ("transport", "tls"), ("peers", "host"), ("x", "1")]
        {
            let fail = parsed(&[(key, value)]).err().unwrap();
            assert!(fail.text.starts_with(&format!("{key}={value}: ")), "{}", fail.text);
        }
    }
}
