//! Proof of the path: by which way messages went, as the kernel counted it, and whether the study asked for that way.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How long the ends are silent, once they have met, so that what is on the path without messages is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quiet {
    /// As long as the trial, at most 1 s, or 20 slots of a slow rate up to 5 s.
    #[default]
    Auto,
    /// As long as the trial.
    Same,
    /// Not at all.
    Off,
    /// This long.
    For(Nanos),
}

impl Quiet {
    /// Nothing special is asked for.
    pub fn is_auto(&self) -> bool {
        *self == Quiet::Auto
    }
}

/// A way by which messages get from one end to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// As packets over an interface.
    Packets,
    /// Copied into and out of memory that the ends share.
    SharedMemory,
    /// The reader reads the writer's memory.
    DataSharing,
    /// They do not leave the process.
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

/// What an interface carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// Packets sent.
    pub tx_packets: i64,
    /// Octets sent, with their frames.
    pub tx_bytes: i64,
    /// Packets received.
    pub rx_packets: i64,
    /// Octets received.
    pub rx_bytes: i64,
    /// Packets received that were sent to a group, where the driver of the interface counts them.
    pub rx_multicast: i64,
}

impl Traffic {
    /// What was added since `then`.
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

/// What was counted in a network namespace: since it was made, or over a span.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counted {
    /// The monotonic time; of a span its length, ns.
    pub ns: i64,
    /// Its interfaces by name.
    pub interfaces: BTreeMap<String, Traffic>,
    /// Counters of IP and UDP as the kernel names them, such as `Ip.FragCreates`.
    pub ip: BTreeMap<String, i64>,
    /// Multicast groups that are joined there, with their interface.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

impl Counted {
    /// What was added since `earlier`; IP counters that did not change are left out.
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

/// A network namespace of the trial, and what was counted in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// The ends in it.
    pub ends: Vec<String>,
    /// The path's interface in it, or both ends' where they differ.
    pub path: Vec<String>,
    /// It was made for the trial: nobody else sends in it.
    pub made: bool,
    /// While the ends had met and sent nothing; absent = not looked at.
    pub quiet: Option<Counted>,
    /// While messages went, warm-up included.
    pub data: Counted,
}

impl Space {
    /// How many times longer messages went than the ends were silent.
    pub fn scale(&self) -> f64 {
        self.quiet.as_ref().map_or(0.0, |q| self.data.ns as f64 / q.ns.max(1) as f64)
    }

    /// What `of` tells of the time with messages, and of that without, scaled to the same length.
    pub fn pair(&self, of: impl Fn(&Counted) -> i64) -> (f64, f64) {
        (of(&self.data) as f64, self.quiet.as_ref().map_or(0.0, |q| of(q) as f64) * self.scale())
    }
}

/// What counters grew by, by their names. One that could not be read before is left out: what it shows is not of this time.
pub fn grown(before: &BTreeMap<String, i64>, after: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    after.iter().filter_map(|(key, now)| Some((key.clone(), now - before.get(key)?))).collect()
}

/// What the path of guests itself counted at its interface of one end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PortCounted {
    /// The end.
    pub end: String,
    /// The path's interface for it, on this host.
    pub interface: String,
    /// What was added while messages went, warm-up included: `interface.*`, where `rx` came from the end and `tx` went to
    /// it; `xdp.redirected`, packets from the end that a program handed on; `switch.*`, what Open vSwitch took and gave.
    pub counters: BTreeMap<String, i64>,
}

impl PortCounted {
    /// Packets that the path took from the end: by its program or its switch, where it has one, else by its interface.
    pub fn taken(&self) -> Option<i64> {
        let keys = ["xdp.redirected", "switch.rx_packets", "interface.rx_packets"];
        keys.into_iter().find_map(|key| self.counters.get(key).copied())
    }
}

/// A file of shared memory (/dev/shm) that a process has mapped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Segment {
    /// Its name below /dev/shm.
    pub name: String,
    /// Octets mapped.
    pub octets: u64,
}

/// What the kernel tells of a measuring process that still has everything open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessSeen {
    /// Its ends.
    pub ends: Vec<String>,
    /// Shared memory that it has mapped; absent = cannot be read.
    pub segments: Option<Vec<Segment>>,
    /// Its sockets of the internet and packet families; absent = cannot be read.
    pub sockets: Option<usize>,
}

/// The proof of one trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PathProof {
    /// The way that the study asks for; absent = it does not say.
    pub asked: Option<Way>,
    /// The way that was found; absent = it cannot be told, and `unclear` says why.
    pub found: Option<Way>,
    /// What of the study is contradicted: the trial is invalid.
    pub contradiction: Option<String>,
    /// What cannot be told here, and why.
    pub unclear: Option<String>,
    /// Messages that the ping end sent, warm-up included.
    pub sent: u64,
    /// Those that were answered.
    pub answered: u64,
    /// Loads of the trial send too, or may: their packets are in the counters.
    #[serde(default)]
    pub loads_send: bool,
    /// Network namespaces of the ends.
    pub spaces: Vec<Space>,
    /// Measuring processes.
    pub processes: Vec<ProcessSeen>,
}
