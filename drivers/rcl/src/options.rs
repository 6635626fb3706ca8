//! The options of the function `open` that both drivers of ROS 2 have.

use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

use tailbound_abi::TB_EINVAL;
use tailbound_abi::side::{Outcome, Pair};

/// Number of the DDS domain if the options name no domain.
pub const DEFAULT_DOMAIN: usize = 77;
/// Largest number of a domain whose UDP ports are below 65536.
pub const MAX_DOMAIN: usize = 230;
/// Largest number of contexts that one session may have.
pub const MAX_PARTICIPANTS: usize = 2;

/// The options of the function `open` that both drivers have, parsed.
pub struct Options {
    /// Number of the domain (ROS_DOMAIN_ID).
    pub domain: usize,
    /// Number of contexts, each with one node.
    pub participants: usize,
    /// Name of the first node; without one, a name of its own.
    pub node: Option<String>,
    /// Name of the middleware that ROS 2 shall load; without one, ROS 2 chooses it.
    pub rmw: Option<String>,
    /// Address of the interface that the middleware uses.
    pub address: Option<IpAddr>,
    /// Addresses of other hosts that are asked for their end points.
    pub peers: Vec<String>,
    /// Whether the middleware may use multicast; `None` = it decides.
    pub multicast: Option<bool>,
    /// Text for `CYCLONEDDS_URI`, in place of the network options.
    pub config: Option<String>,
}

impl Options {
    /// Reads the options of `open`; the text of every failure names the key of the option. `own` reads an option of one driver only,
    /// and returns whether the driver has it.
    pub fn parse(pairs: &[Pair], mut own: impl FnMut(&Pair) -> Outcome<bool>) -> Outcome<Self> {
        let mut o = Options {
            domain: DEFAULT_DOMAIN,
            participants: 1,
            node: None,
            rmw: None,
            address: None,
            peers: Vec::new(),
            multicast: None,
            config: None,
        };
        for pair in pairs {
            match pair.key {
                "domain" => o.domain = pair.number(TB_EINVAL, 0..=MAX_DOMAIN)?,
                "participants" => o.participants = pair.number(TB_EINVAL, 1..=MAX_PARTICIPANTS)?,
                "node" => o.node = Some(name(pair)?),
                "rmw" => o.rmw = pair.text().map(str::to_owned),
                "address" => o.address = pair.text().map(|text| address(pair, text)).transpose()?,
                "peers" => o.peers = pair.list().map(str::to_owned).collect(),
                "multicast" => o.multicast = Some(pair.word(TB_EINVAL, &["off", "on"])? == 1),
                "config" => o.config = Some(pair.value.to_owned()),
                _ if own(pair)? => {}
                _ => return Err(pair.bad(TB_EINVAL, "the driver has no such option")),
            }
        }
        Ok(o)
    }

    /// Name of the node of the context with this index. Two nodes with the same name would be one in the graph of ROS 2.
    pub fn node_of(&self, index: usize) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        match (&self.node, index) {
            (Some(name), 0) => name.clone(),
            (Some(name), index) => format!("{name}_{}", index + 1),
            (None, _) => format!("tailbound_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// Checks the name of a node: letters, digits and `_`, not a digit first. rcl would refuse it without naming the option.
fn name(pair: &Pair) -> Outcome<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match pair.value.chars().next() {
        Some(first) if !first.is_ascii_digit() && pair.value.chars().all(is_word) => Ok(pair.value.to_owned()),
        _ => Err(pair.bad(TB_EINVAL, "a name of a node has letters, digits and _, and does not begin with a digit")),
    }
}

/// Checks that an interface has the address.
fn address(pair: &Pair, text: &str) -> Outcome<IpAddr> {
    let address: IpAddr = text.parse().map_err(|_| pair.bad(TB_EINVAL, "an IP address is expected"))?;
    UdpSocket::bind((address, 0)).map_err(|e| pair.bad(TB_EINVAL, &format!("no interface has this address: {e}")))?;
    Ok(address)
}
