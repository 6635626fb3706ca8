//! Proof of the path: the transport that messages used according to the kernel's counters, compared with the transport
//! that the study asks for.

use crate::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Length of the quiet interval: after the ends have found each other, they send nothing for some time, to measure the
/// traffic of other programs on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quiet {
    /// The quiet interval is as long as the trial, but at most 1 s; if the rate is low, it has the length of 20 slots,
    /// but at most 5 s.
    #[default]
    Auto,
    /// The quiet interval, in which the ends send nothing, is as long as the trial.
    Same,
    /// There is no quiet interval before the slots.
    Off,
    /// The quiet interval, in which the ends send nothing, has exactly this length.
    For(Nanos),
}

impl Quiet {
    /// True if the study gives no length for the quiet interval.
    pub fn is_auto(&self) -> bool {
        *self == Quiet::Auto
    }
}

/// A transport by which messages get from one end to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Messages are sent as packets over a network interface.
    Packets,
    /// Messages are copied into and out of memory that the ends share.
    SharedMemory,
    /// The subscriber reads messages directly from the memory of the publisher.
    DataSharing,
    /// Messages are delivered inside the process that publishes and subscribes.
    InsideProcess,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Packets => "packets",
            Way::SharedMemory => "shared memory",
            Way::DataSharing => "data sharing",
            Way::InsideProcess => "delivery inside the process",
        })
    }
}

/// Traffic of one network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// Number of packets that the interface sent.
    pub tx_packets: i64,
    /// Number of bytes that the interface sent, including frame headers.
    pub tx_bytes: i64,
    /// Number of packets that the interface received.
    pub rx_packets: i64,
    /// Number of bytes that the interface received, including frame headers.
    pub rx_bytes: i64,
    /// Number of received packets that were sent to a multicast group, if the interface's kernel driver counts these
    /// packets.
    pub rx_multicast: i64,
}

impl Traffic {
    /// Traffic of the interface since an earlier reading of its counters.
    pub fn since(&self, then: Traffic) -> Traffic {
        Traffic {
            tx_packets: self.tx_packets - then.tx_packets,
            tx_bytes: self.tx_bytes - then.tx_bytes,
            rx_packets: self.rx_packets - then.rx_packets,
            rx_bytes: self.rx_bytes - then.rx_bytes,
            rx_multicast: self.rx_multicast - then.rx_multicast,
        }
    }
}

/// Counters of a network namespace: a reading, which counts from the creation of the namespace on, or the difference of
/// two readings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counted {
    /// For a reading: monotonic time of the reading, ns. For the difference of two readings: time between the two
    /// readings, ns.
    pub ns: i64,
    /// Traffic of each network interface, by name of the interface.
    pub interfaces: BTreeMap<String, Traffic>,
    /// Counters of IP and UDP, by the kernel's names, such as `Ip.FragCreates`.
    pub ip: BTreeMap<String, i64>,
    /// Multicast groups that programs in the network namespace have joined, each with its interface.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

impl Counted {
    /// Growth of the counters since an earlier reading; IP counters that did not change are left out.
    pub fn since(&self, earlier: &Counted) -> Counted {
        let interface = |(name, now): (&String, &Traffic)| {
            (name.clone(), now.since(earlier.interfaces.get(name).copied().unwrap_or_default()))
        };
        let ip = self.ip.iter().map(|(name, now)| (name.clone(), now - earlier.ip.get(name).unwrap_or(&0)));
        Counted {
            ns: self.ns - earlier.ns,
            interfaces: self.interfaces.iter().map(interface).collect(),
            ip: ip.filter(|(_, change)| *change != 0).collect(),
            groups: self.groups.clone(),
        }
    }
}

/// Counters of one network namespace in which ends of a trial ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// Names of the ends that ran in the network namespace.
    pub ends: Vec<String>,
    /// Name of the path's interface in the network namespace; names of both ends' interfaces if these differ.
    pub path: Vec<String>,
    /// True if the network namespace was created for the trial, so that no other program sends in the namespace.
    pub made: bool,
    /// Counters of the quiet interval, in which the ends sent nothing; absent if there was no quiet interval.
    pub quiet: Option<Counted>,
    /// Counters of the time in which messages were sent, including the warm-up.
    pub data: Counted,
}

impl Space {
    /// Ratio of the time in which messages were sent to the length of the quiet interval.
    pub fn scale(&self) -> f64 {
        self.quiet.as_ref().map_or(0.0, |q| self.data.ns as f64 / q.ns.max(1) as f64)
    }

    /// Returns two values of the counter that `of` selects: its growth while messages were sent, and its growth in the
    /// quiet interval, scaled to the length of the time in which messages were sent.
    pub fn pair(&self, of: impl Fn(&Counted) -> i64) -> (f64, f64) {
        (of(&self.data) as f64, self.quiet.as_ref().map_or(0.0, |q| of(q) as f64) * self.scale())
    }
}

/// Growth of each counter between two readings. A counter that is missing in the first reading is left out, because a
/// part of its value may be from before the interval.
pub fn grown(before: &BTreeMap<String, i64>, after: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    after.iter().filter_map(|(key, now)| Some((key.clone(), now - before.get(key)?))).collect()
}

/// Counters of the path's interface for one end, on the host of the guests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PortReport")]
pub struct PortCounted {
    /// Name of the end for which the path's interface carries packets.
    pub end: String,
    /// Name of the path's interface on the host of the guests.
    pub interface: String,
    /// Growth of the counters while messages were sent, including the warm-up: `interface.*` counts packets of the
    /// interface, where `rx` came from the end and `tx` went to the end; `xdp.redirected` counts packets from the end
    /// that an XDP program forwarded; `switch.*` counts packets that Open vSwitch received and sent.
    pub counters: BTreeMap<String, i64>,
}

impl PortCounted {
    /// Number of packets that the path received from the end, counted by the path's XDP program or switch, otherwise by
    /// the path's interface.
    pub fn taken(&self) -> Option<i64> {
        let keys = ["xdp.redirected", "switch.rx_packets", "interface.rx_packets"];
        keys.into_iter().find_map(|key| self.counters.get(key).copied())
    }
}

/// A file of shared memory (/dev/shm) that a process has mapped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Segment {
    /// Name of the shared memory file below /dev/shm.
    pub name: String,
    /// Number of bytes of the shared memory file that are mapped.
    #[serde(rename = "octets")]
    pub bytes: u64,
}

/// Kernel data about a measuring process, read while the driver's session is still open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessSeen {
    /// Names of the ends that ran in the measuring process.
    pub ends: Vec<String>,
    /// Shared memory files that the process has mapped; absent if the list cannot be read.
    pub segments: Option<Vec<Segment>>,
    /// Number of internet and packet sockets that the process has open; absent if the number cannot be read.
    pub sockets: Option<usize>,
}

/// Proof of the path for one trial: which transport the messages used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PathProof {
    /// The transport that the study asks for; absent if the study names no transport.
    pub asked: Option<Way>,
    /// The transport that the messages used; absent if the transport is not known, and `unclear` says why.
    pub found: Option<Way>,
    /// Sentence about a contradiction between the counters and the study; the trial is then invalid.
    pub contradiction: Option<String>,
    /// Sentence about what is not known about the transport, and the reason.
    pub unclear: Option<String>,
    /// Number of messages that the ping end sent, including the warm-up.
    pub sent: u64,
    /// Number of the ping end's messages that were answered.
    pub answered: u64,
    /// True if loads of the trial send or may send packets, which the counters then include.
    #[serde(default)]
    pub loads_send: bool,
    /// Traffic counters of the network namespaces in which the ends ran.
    pub spaces: Vec<Space>,
    /// Shared memory files and sockets of the measuring processes.
    pub processes: Vec<ProcessSeen>,
}
