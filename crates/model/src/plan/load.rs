//! Loads: work that runs during a measurement, to show the effect of the work on messages.

use crate::{ByteSize, Nanos, Rate, RoleScheduling};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One load: work that runs during the measurement, as the study asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// Kind of work that the load does, e.g. keeping CPUs busy.
    pub run: LoadKind,
    /// The end, `ping` or `pong`, in whose place the load runs; `ping-neighbours` or `pong-neighbours`: the load runs in
    /// each neighbour of the guest of that end.
    pub at: String,
    /// Scheduling policy and CPUs of the load; `None` means the agent's policy and any CPU.
    pub scheduling: RoleScheduling,
    /// When the load begins.
    pub start: LoadStart,
    /// How long the load runs; `None` means until the trial ends.
    pub duration: Option<Nanos>,
}

impl LoadSpec {
    /// The end, `ping` or `pong`, in the neighbours of whose guest the load runs; `None` = the load runs at the place of
    /// an end.
    pub fn of_neighbours(&self) -> Option<&str> {
        self.at.strip_suffix(NEIGHBOURS)
    }

    /// Place of a load, as in `at`, that runs in each neighbour of the guest of this end.
    pub fn at_neighbours(end: &str) -> String {
        format!("{end}{NEIGHBOURS}")
    }

    /// The end at whose place the messages of the load arrive, if it runs in neighbours: the end of the other side.
    pub fn receiver(&self) -> Option<&'static str> {
        self.of_neighbours().map(|end| if end == "ping" { "pong" } else { "ping" })
    }
}

/// End of the place of a load that runs in the neighbours of a guest.
const NEIGHBOURS: &str = "-neighbours";

impl fmt::Display for LoadSpec {
    /// Writes the load as text, e.g. `cpu rr 90 CPU 0 at pong, after 2 s, for 1 s`; values equal to the default are
    /// left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.run)?;
        if let Some(policy) = &self.scheduling.policy {
            write!(f, " {policy}")?;
        }
        if let Some(cpus) = &self.scheduling.cpus {
            write!(f, " CPU {cpus}")?;
        }
        if self.at != "ping" {
            write!(f, " at {}", self.at)?;
        }
        if self.start != LoadStart::AfterMatching {
            write!(f, ", {}", self.start)?;
        }
        match self.duration {
            Some(duration) => write!(f, ", for {duration}"),
            None => Ok(()),
        }
    }
}

/// Kind of work that a load does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// The load inverts every bit of an image of 8 MiB, without pause.
    Cpu,
    /// The load copies 64 MiB back and forth, which uses memory bandwidth.
    Memory,
    /// The load follows a random chain of addresses through 32 MiB, which causes cache misses.
    Cache,
    /// Kind of load: makes system calls without pause.
    Syscall,
    /// The load runs a program with its arguments, without a shell.
    Command(Vec<String>),
    /// The load sends UDP datagrams over the path to the other end's place.
    UdpStream(UdpStream),
    /// The load sends messages of another topic through the measured driver to the other end's place.
    Topic(TopicLoad),
}

impl LoadKind {
    /// Word for the kind of load in a study file, e.g. `udp-stream`.
    pub fn word(&self) -> &'static str {
        match self {
            LoadKind::Cpu => "cpu",
            LoadKind::Memory => "memory",
            LoadKind::Cache => "cache",
            LoadKind::Syscall => "syscall",
            LoadKind::Command(_) => "command",
            LoadKind::UdpStream(_) => "udp-stream",
            LoadKind::Topic(_) => "topic",
        }
    }

    /// True if the load sends to the other end's place, where a second part of the load receives.
    pub fn has_receiver(&self) -> bool {
        matches!(self, LoadKind::UdpStream(_) | LoadKind::Topic(_))
    }

    /// True if the load runs inside the measuring processes, not in a separate process.
    pub fn is_inside(&self) -> bool {
        matches!(self, LoadKind::Topic(TopicLoad { participant: Participant::Shared, .. }))
    }
}

/// Parameters of a load that sends streams of UDP datagrams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpStream {
    /// Number of streams of datagrams; each stream has its own source port.
    pub flows: u32,
    /// Size of the payload of each datagram that the load sends.
    pub payload: ByteSize,
    /// Rate of datagrams in each stream; `max` means without pause.
    pub rate: Rate,
}

/// Parameters of a load that sends messages of a second topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicLoad {
    /// Size of the payload of each message that the load sends.
    pub payload: ByteSize,
    /// Rate at which the load sends messages.
    pub rate: Rate,
    /// The DDS participant that sends and receives the messages of the load.
    pub participant: Participant,
    /// QoS policies of the topic, as drivers get them; `None` = those of the measured topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<BTreeMap<String, String>>,
    /// Each message is sent by up to this time after it is due, drawn at random; less than a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Nanos>,
}

/// The DDS participant that the topic of a load uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Participant {
    /// The load has a separate DDS participant, in a separate process at each place.
    #[default]
    Own,
    /// The load uses the DDS participant of the end, in the measuring process.
    Shared,
}

/// The sending or the receiving part of a load that sends to the other end's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadPart {
    /// The sending part of the load, which sends to the other end's place.
    Sends,
    /// The receiving part of the load, at the other end's place.
    Receives,
}

/// When a load begins, relative to the steps of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadStart {
    /// The load begins before the ends begin discovery.
    BeforeDiscovery,
    /// The load begins after the ends have found each other, before the first slot.
    AfterMatching,
    /// The load begins after this time, counted from the order of the controller to begin the measurement.
    At(Nanos),
}

impl fmt::Display for LoadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadKind::Command(words) => f.write_str(&words.join(" ")),
            LoadKind::UdpStream(s) => write!(f, "udp-stream {} x {} at {}", s.flows, s.payload, s.rate),
            LoadKind::Topic(t) => {
                let whose = if t.participant == Participant::Shared { " in the end's participant" } else { "" };
                write!(f, "topic {} at {}{whose}", t.payload, t.rate)?;
                if let Some(jitter) = t.jitter {
                    write!(f, " with up to {jitter} of jitter")?;
                }
                match &t.qos {
                    Some(qos) => {
                        let policies: Vec<String> =
                            qos.iter().map(|(policy, value)| format!("{policy} {value}")).collect();
                        write!(f, " ({})", policies.join(", "))
                    }
                    None => Ok(()),
                }
            }
            kind => f.write_str(kind.word()),
        }
    }
}

impl fmt::Display for LoadStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadStart::BeforeDiscovery => f.write_str("before discovery"),
            LoadStart::AfterMatching => f.write_str("after matching"),
            LoadStart::At(time) => write!(f, "after {time}"),
        }
    }
}

/// What a load did in a trial, as the kernel and the load report it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoadDone {
    /// Kind of the load, or the command that the load ran.
    pub run: String,
    /// Name of the end in whose place the load ran.
    pub at: String,
    /// The part of the load, sending or receiving, if the load has two parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<LoadPart>,
    /// Scheduling policy of the load, as the kernel reported it.
    pub policy: String,
    /// CPUs on which the load could run, as the kernel reported them: at its begin and, for a command, also at its end,
    /// because a command can choose other CPUs.
    pub cpus: String,
    /// Monotonic time at which the load began, ns; `None` if it never began.
    pub began_ns: Option<i64>,
    /// Monotonic time at which the load ended, ns.
    pub ended_ns: Option<i64>,
    /// CPU time of the load and of the child processes that the load waited for, ns.
    pub cpu_ns: u64,
    /// Number of bytes that the load processed, if the load counts bytes.
    #[serde(rename = "octets")]
    pub bytes: Option<u64>,
    /// Number of rounds, memory accesses or system calls of the load, if it counts them.
    pub rounds: Option<u64>,
    /// Number of messages or datagrams that the load sent or received; `None` if the load sends and receives nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Number of messages that the load sent at least one period after they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Number of messages of the load that the driver or the kernel refused to send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Number of messages of the load that were not received, among all messages up to the last received message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// Reason why the load did not run as long as planned: it could not be started, or it ended early.
    pub failed: Option<String>,
}
