//! The options of the function `open` of the `ros2` driver.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

use ros2_client::NodeName;
use ros2_client::dds::rustdds::DomainParticipantBuilder;
use tailbound_abi::side::{Fail, Outcome, Pair};
use tailbound_abi::{TB_EINVAL, TB_EUNSUPPORTED};

/// Number of the DDS domain if the options name no domain.
pub const DEFAULT_DOMAIN: u16 = 77;
/// Largest number of DDS participants that one session may have.
pub const MAX_PARTICIPANTS: usize = 2;
/// Largest number of a DDS domain whose UDP ports are below 65536.
pub const MAX_DOMAIN: u16 = 230;

/// The options of the function `open` of the `ros2` driver, parsed.
pub struct Options {
    pub domain: u16,
    pub participants: usize,
    pub node: NodeName,
    pub address: Option<Ipv4Addr>,
    pub receive_buffer: usize,
    pub send_buffer: usize,
}

impl Options {
    /// Reads the options of `open`; the text of every failure names the key of the option.
    pub fn parse(pairs: &[Pair]) -> Outcome<Self> {
        let mut o = Options {
            domain: DEFAULT_DOMAIN,
            participants: 1,
            node: own_name()?,
            address: None,
            receive_buffer: DomainParticipantBuilder::DEFAULT_SOCKET_RECEIVE_BUFFER_SIZE,
            send_buffer: DomainParticipantBuilder::DEFAULT_SOCKET_SEND_BUFFER_SIZE,
        };
        for pair in pairs {
            match pair.key {
                "domain" => o.domain = pair.number(TB_EINVAL, 0..=MAX_DOMAIN)?,
                "participants" => o.participants = pair.number(TB_EINVAL, 1..=MAX_PARTICIPANTS)?,
                "node" => o.node = node(pair)?,
                "address" => o.address = pair.text().map(|text| address(pair, text)).transpose()?,
                "socket_receive_buffer_size" => o.receive_buffer = pair.number(TB_EINVAL, 1..=i32::MAX as usize)?,
                "socket_send_buffer_size" => o.send_buffer = pair.number(TB_EINVAL, 1..=i32::MAX as usize)?,
                "naming" if pair.value == "ros2" => {}
                "naming" => {
                    return Err(pair.bad(
                        TB_EUNSUPPORTED,
                        "the ros2 driver gives topics and types the names of ROS 2, and no other names",
                    ));
                }
                "transport" if pair.value == "udp" => {}
                "unacked_limit" => {
                    let why = "RustDDS lets a reliable writer have 8,192 unacknowledged messages; ros2-client cannot change this limit";
                    return Err(pair.bad(TB_EUNSUPPORTED, why));
                }
                "data" => {
                    return Err(pair.bad(TB_EUNSUPPORTED, "RustDDS chooses by itself between unicast and multicast"));
                }
                "transport" => return Err(pair.bad(TB_EUNSUPPORTED, "RustDDS has UDP only")),
                _ => return Err(pair.bad(TB_EINVAL, "the ros2 driver has no such option")),
            }
        }
        Ok(o)
    }

    /// Returns the name of the node in the participant with this index.
    pub fn node_of(&self, participant: usize) -> Outcome<NodeName> {
        if participant == 0 {
            return Ok(self.node.clone());
        }
        let name = format!("{}_{}", self.node.base_name(), participant + 1);
        NodeName::new(self.node.namespace(), &name).map_err(|e| Fail::invalid(format!("node {name}: {e}")))
    }

    /// Whether peers on this host may be reached through the loopback interface. If this is allowed, RustDDS prefers
    /// the loopback interface to the requested interface.
    pub fn loopback(&self) -> bool {
        self.address.is_none_or(|a| a.is_loopback())
    }
}

/// Makes a unique name for a node: two nodes with the same name would be one node in the graph of ROS 2.
fn own_name() -> Outcome<NodeName> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    NodeName::new("/", &format!("tailbound_{}_{n}", std::process::id())).map_err(|e| Fail::invalid(e.to_string()))
}

fn node(pair: &Pair) -> Outcome<NodeName> {
    let (namespace, name) = match pair.value.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(parts) => parts,
        None => ("/", pair.value),
    };
    NodeName::new(namespace, name)
        .map_err(|e| pair.bad(TB_EINVAL, &format!("the value is not a valid name for a node of ROS 2: {e}")))
}

/// Checks that an interface has the address. RustDDS reports no error if no interface has it, and other participants
/// then do not see the node.
fn address(pair: &Pair, text: &str) -> Outcome<Ipv4Addr> {
    let Ok(IpAddr::V4(address)) = text.parse() else {
        return Err(pair.bad(TB_EINVAL, "an IPv4 address is expected; RustDDS uses no other addresses"));
    };
    UdpSocket::bind((address, 0)).map_err(|e| pair.bad(TB_EINVAL, &format!("no interface has this address: {e}")))?;
    Ok(address)
}
