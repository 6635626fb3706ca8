//! What a lab asks of a host on which an end is, and what it is told. Each host answers for itself.

use crate::{Counted, Fact, HostFacts, Interface, KnobDone, KnobSpec, LinksSeen, NodeCounts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// A question, or something to do for the path check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// The facts of the host.
    Facts,
    /// CPUs that a process may use there.
    Cpus,
    /// What its monotonic clock shows.
    Clock,
    /// All interfaces.
    Interfaces,
    /// Speed, offloads and device of an interface.
    Device(String),
    /// Counters of an interface, and of IP and UDP.
    Counters(String),
    /// Counters of all interfaces, and of IP and UDP.
    Counted,
    /// Interfaces with what leads from one to the next, and to these addresses.
    Links(Vec<IpAddr>),
    /// What the node has taken and carried.
    Node,
    /// A UDP port that is free on an address.
    FreePort(IpAddr),
    /// The addresses that a name has there.
    Resolve(String),
    /// Make these settings of the host, for a run; they are kept until they are to be put back, or nobody asks any more.
    Set {
        /// Identity of the run.
        run: String,
        /// What.
        settings: Vec<KnobSpec>,
    },
    /// Which of the settings are not any more as they were made.
    Changed,
    /// Put the settings back.
    PutBack,
    /// Open a socket for the path check on an address; others are closed.
    OpenProbe {
        /// Its address.
        address: IpAddr,
        /// Its interface.
        interface: String,
        /// Whether the interface carries multicast.
        multicast: bool,
    },
    /// Open a second one that has joined a group, on the same address and interface.
    JoinGroup,
    /// Send a datagram from the first socket.
    Send {
        /// To where.
        to: SocketAddr,
        /// What.
        message: ProbeMessage,
        /// It must not be fragmented.
        whole: bool,
    },
    /// Whether a datagram has arrived within a time, ns.
    Received {
        /// What.
        message: ProbeMessage,
        /// By the socket that has joined the group.
        group: bool,
        /// How long it is waited for, ns.
        within_ns: i64,
    },
}

/// A datagram of the path check: its octets follow from this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeMessage {
    /// Of this path check, and of no other.
    pub token: u64,
    /// Counts up.
    pub sequence: u64,
    /// How long it is.
    pub octets: u64,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// To [`Ask::Facts`].
    Facts(Box<HostFacts>),
    /// To [`Ask::Cpus`].
    Cpus(Vec<u32>),
    /// To [`Ask::Clock`], ns.
    Clock(i64),
    /// To [`Ask::Interfaces`].
    Interfaces(Vec<Interface>),
    /// To [`Ask::Device`].
    Device(DeviceTold),
    /// To [`Ask::Counters`].
    Counters(BTreeMap<String, i64>),
    /// To [`Ask::Counted`].
    Counted(Counted),
    /// To [`Ask::Links`].
    Links(LinksSeen),
    /// To [`Ask::Node`].
    Node(NodeCounts),
    /// To [`Ask::FreePort`].
    Port(u16),
    /// To [`Ask::Resolve`].
    Addresses(Vec<IpAddr>),
    /// To [`Ask::Set`]: what is in force.
    Set(Vec<KnobDone>),
    /// To [`Ask::Changed`], as sentences.
    Changed(Vec<String>),
    /// To [`Ask::PutBack`].
    PutBack(PutBackTold),
    /// To [`Ask::OpenProbe`] and [`Ask::JoinGroup`]: where the socket listens.
    Listens(SocketAddr),
    /// To [`Ask::Send`]: it went out.
    Sent,
    /// To [`Ask::Received`].
    Received(bool),
    /// It could not be done: what the system said, and its number where it has one.
    Failed(String, Option<i32>),
}

/// What an interface tells of its device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DeviceTold {
    /// Mbit/s, where the device tells it.
    pub speed_mbit_s: Option<i64>,
    /// Offload features that are on.
    pub offloads: Vec<String>,
    /// As in [`PathEnd::card`](crate::PathEnd::card).
    pub card: Vec<Fact>,
}

/// What putting settings back came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PutBackTold {
    /// All of them, with what became of each.
    pub settings: Vec<KnobDone>,
    /// Those that somebody else had changed, as sentences.
    pub left_alone: Vec<String>,
    /// Why some could not be put back; they stay in the journal of that host.
    pub failed: Vec<String>,
}
