//! Requests of a lab to the host on which an end runs, and the answers of that host.

use crate::{
    ClockHistory, ClockSpec, Counted, Fact, HostFacts, Interface, KnobDone, KnobSpec, LinksSeen, NodeCounts, Problem,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// A request of a lab to the host of an end, for example to read facts, to apply host settings, or to send a datagram
/// of the path check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Request to a host to read its facts, e.g. the kernel version.
    Facts,
    /// Request to read the CPUs on which a process may run.
    Cpus,
    /// Request to a host to read its monotonic clock.
    Clock,
    /// Request to a host to read all of its network interfaces.
    Interfaces,
    /// Request to read speed, offloads and device of the interface with this name.
    Device(String),
    /// Request to read the counters of the interface with this name, and the counters of IP and UDP.
    Counters(String),
    /// Request to read the counters of all interfaces, and the counters of IP and UDP.
    Counted,
    /// Request to read all interfaces, how packets pass from one interface to the next, and the routes to these
    /// addresses.
    Links(Vec<IpAddr>),
    /// Request to read the CPU time and traffic of the Kubernetes node.
    Node,
    /// Request to find a free UDP port of this address.
    FreePort(IpAddr),
    /// Request to a host to resolve a DNS name into IP addresses.
    Resolve(String),
    /// Request to send the lines of the diagnostics log that the agent and its holder have kept so far.
    Log,
    /// Request to apply host settings for a run. The settings stay until they are restored, or until the requesting
    /// process disappears.
    Set {
        /// Id of the run that requests the host settings.
        run: String,
        /// The host settings to be applied.
        settings: Vec<KnobSpec>,
    },
    /// Request to read which of the applied host settings another program has changed since.
    Changed,
    /// Request to a host to restore the host settings that were applied.
    #[serde(rename = "put-back")]
    Restore,
    /// Request to watch the clock of the host by its time service, until the agent ends.
    WatchClock {
        /// Id of the run that requests it.
        run: String,
        /// What the study demands of the clock.
        spec: ClockSpec,
    },
    /// Request to say whether the watched clock is in step.
    ClockState,
    /// Request to read the history of the watched clock from this time on, CLOCK_MONOTONIC of the host, ns.
    ClockHistory(i64),
    /// Request to open a UDP socket for the path check on an address; sockets of earlier requests are closed.
    OpenProbe {
        /// IP address on which the socket for the path check is opened.
        address: IpAddr,
        /// Name of the interface on which the socket is opened.
        interface: String,
        /// True if the network interface carries multicast.
        multicast: bool,
    },
    /// Request to open a second socket for the path check on the same address and interface, and to join a multicast
    /// group with this socket.
    JoinGroup,
    /// Request to send a datagram of the path check from the first socket.
    Send {
        /// Address and port to which the datagram of the path check is sent.
        to: SocketAddr,
        /// The datagram of the path check that is to be sent.
        message: ProbeMessage,
        /// True if the datagram of the path check must not be fragmented.
        whole: bool,
    },
    /// Request to wait, for a limited time, until a datagram of the path check arrives.
    Received {
        /// The datagram of the path check that is expected.
        message: ProbeMessage,
        /// True if the datagram must arrive at the socket that has joined the multicast group.
        group: bool,
        /// Longest time to wait for the datagram of the path check, ns.
        within_ns: i64,
    },
}

/// A datagram of the path check; its content is computed from these members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeMessage {
    /// Random number that identifies the path check to which the datagram belongs.
    pub token: u64,
    /// Number that identifies the datagram within its path check.
    pub sequence: u64,
    /// Length of the path check's datagram in bytes.
    #[serde(rename = "octets")]
    pub bytes: u64,
}

/// Answer of a host to a request ([`Ask`]) of a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Answer to [`Ask::Facts`]: the facts of the host that was asked.
    Facts(Box<HostFacts>),
    /// Answer to [`Ask::Cpus`]: numbers of the CPUs on which a process may run.
    Cpus(Vec<u32>),
    /// Answer to [`Ask::Clock`]: monotonic time of the host that was asked, ns.
    Clock(i64),
    /// Answer to [`Ask::Interfaces`]: all network interfaces of the host that was asked.
    Interfaces(Vec<Interface>),
    /// Answer to [`Ask::Device`]: speed, offloads and facts of the interface's device.
    Device(DeviceAnswer),
    /// Answer to [`Ask::Counters`]: counters of one interface, of IP and of UDP, by name.
    Counters(BTreeMap<String, i64>),
    /// Answer to [`Ask::Counted`]: counters of all interfaces, of IP and of UDP.
    Counted(Counted),
    /// Answer to [`Ask::Links`]: all network interfaces, and the routes to the requested addresses.
    Links(LinksSeen),
    /// Answer to [`Ask::Node`]: CPU time and traffic of the Kubernetes node.
    Node(NodeCounts),
    /// Answer to [`Ask::FreePort`]: number of a free UDP port.
    Port(u16),
    /// Answer to [`Ask::Resolve`]: IP addresses of the DNS name.
    Addresses(Vec<IpAddr>),
    /// Answer to [`Ask::Log`]: lines of the diagnostics log.
    Log(String),
    /// Answer to [`Ask::Set`]: the host settings that are now in force.
    Set(Vec<KnobDone>),
    /// Answer to [`Ask::Changed`]: one sentence for each setting that another program has changed.
    Changed(Vec<String>),
    /// Answer to [`Ask::Restore`]: the result of restoring the host settings.
    #[serde(rename = "put-back")]
    Restore(RestoreAnswer),
    /// Answer to [`Ask::WatchClock`] and [`Ask::ClockState`]: `None` = the clock is in step; otherwise the problem that it is not, with
    /// what was seen of it.
    ClockState(Option<Problem>),
    /// Answer to [`Ask::ClockHistory`]: the history of the clock; the name of the host is empty.
    ClockHistory(Box<ClockHistory>),
    /// Answer to [`Ask::OpenProbe`] and [`Ask::JoinGroup`]: the address of the socket.
    Listens(SocketAddr),
    /// Answer to [`Ask::Send`]: the datagram of the path check was sent.
    Sent,
    /// Answer to [`Ask::Received`]: true if the datagram of the path check arrived.
    Received(bool),
    /// The request failed: the problem, and the error number of the system if there is one.
    Failed(Problem, Option<i32>),
}

/// Facts about the device behind a network interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DeviceAnswer {
    /// Link speed of the network interface in Mbit/s, if the device reports the speed.
    pub speed_mbit_s: Option<i64>,
    /// Names of the network interface's offload features that are on.
    pub offloads: Vec<String>,
    /// Facts about the device behind the interface, with the keys of [`PathEnd::card`](crate::PathEnd::card).
    pub card: Vec<Fact>,
}

/// Result of restoring the host settings that a run had changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RestoreAnswer {
    /// All host settings of the run, each with the result of restoring it.
    pub settings: Vec<KnobDone>,
    /// One sentence for each setting that another program had changed and that was therefore not restored.
    pub left_alone: Vec<String>,
    /// One sentence for each setting that could not be restored, with the reason; such a setting stays in the journal
    /// of the host.
    pub failed: Vec<String>,
}
