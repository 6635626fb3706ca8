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
}

impl Transport {
    pub fn word(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
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
            express: false,
            congestion: None,
            shared_memory: false,
            buffer_size: BUFFERED,
        };
        let mut transport = None;
        for pair in pairs {
            match pair.key {
                "domain" => o.domain = pair.number(TB_EINVAL, 0..=MAX_DOMAIN)?,
                "address" => o.address = address(pair, pair.value)?,
                "peers" => o.peers = pair.list().map(|text| address(pair, text)).collect::<Outcome<_>>()?,
                "port" => o.port = pair.number(TB_EINVAL, 1..=u16::MAX)?,
                "transport" => transport = Some((pair, word(pair)?)),
                "router" => o.router = Some(router(pair)?.to_owned()),
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
        } else if o.router.as_ref().is_some_and(|router| router.starts_with("udp/")) {
            o.transport = Transport::Udp;
        }
        if o.port == 0 {
            o.port = FIRST_PORT + o.domain;
        }
        Ok(o)
    }
}

fn word(pair: &Pair) -> Outcome<Transport> {
    match pair.value {
        "tcp" => Ok(Transport::Tcp),
        "udp" => Ok(Transport::Udp),
        "quic" | "tls" => {
            let why = "the driver is built without quic and tls, which need certificates for each end: use tcp or udp";
            Err(pair.bad(TB_EUNSUPPORTED, why))
        }
        _ => Err(pair.bad(TB_EUNSUPPORTED, "the driver has the transports tcp and udp of zenoh")),
    }
}

fn address(pair: &Pair, text: &str) -> Outcome<IpAddr> {
    text.trim().parse().map_err(|_| pair.bad(TB_EINVAL, "an IP address is expected"))
}

/// Checks the form of the address of a router: `tcp/HOST:PORT` or `udp/HOST:PORT`.
fn router<'a>(pair: &Pair<'a>) -> Outcome<&'a str> {
    let wrong = || pair.bad(TB_EINVAL, "expected tcp/HOST:PORT or udp/HOST:PORT, as zenohd prints its addresses");
    let (transport, place) = pair.value.split_once('/').ok_or_else(wrong)?;
    let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
    match (transport, host.is_empty(), port.parse::<u16>()) {
        ("tcp" | "udp", false, Ok(1..)) => Ok(pair.value),
        ("quic" | "tls", ..) => {
            Err(pair.bad(TB_EUNSUPPORTED, "the driver is built without quic and tls, which need certificates"))
        }
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
    }

    #[test]
    fn faults_name_their_option() {
        for (key, value) in
            [("router", "tcp/7447"), ("router", "quic/a:1"), ("transport", "quic"), ("peers", "host"), ("x", "1")]
        {
            let fail = parsed(&[(key, value)]).err().unwrap();
            assert!(fail.text.starts_with(&format!("{key}={value}: ")), "{}", fail.text);
        }
    }
}
