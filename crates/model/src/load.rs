//! Work that runs beside a measurement, to see what it does to it.

use crate::{Nanos, Octets, Rate, RoleScheduling};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSpec {
    /// What it does.
    pub run: LoadKind,
    /// The end in whose place it runs, `ping` or `pong`.
    pub at: String,
    /// Its policy and CPUs; `None` = as the agent, on any CPU.
    pub scheduling: RoleScheduling,
    /// When it begins.
    pub start: LoadStart,
    /// How long it runs; `None` = until the trial ends.
    pub duration: Option<Nanos>,
}

impl fmt::Display for LoadSpec {
    /// `cpu rr 90 CPU 0 at pong, after 2 s, for 1 s`: what is as by default is left out.
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

/// What a load does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadKind {
    /// Inverts every bit of an image of 8 MiB, again and again.
    Cpu,
    /// Copies 64 MiB to and fro: bandwidth of the memory.
    Memory,
    /// Follows a random chain of addresses through 32 MiB: misses of the caches.
    Cache,
    /// Calls the kernel without pause.
    Syscall,
    /// A program with its arguments; no shell.
    Command(Vec<String>),
    /// Datagrams over the path, to the other end's place.
    UdpStream(UdpStream),
    /// Messages through the same driver as those that are measured, to the other end's place.
    Topic(TopicLoad),
}

impl LoadKind {
    /// The word of a study.
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

    /// It sends to the other end's place, where a half of it receives.
    pub fn has_receiver(&self) -> bool {
        matches!(self, LoadKind::UdpStream(_) | LoadKind::Topic(_))
    }

    /// It runs inside the measuring processes, and is no process of its own.
    pub fn is_inside(&self) -> bool {
        matches!(self, LoadKind::Topic(TopicLoad { participant: Participant::Shared, .. }))
    }
}

/// Bulk datagrams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpStream {
    /// How many flows, each with a source port of its own.
    pub flows: u32,
    /// Octets of each datagram.
    pub payload: Octets,
    /// Datagrams of each flow; `max` = without pause.
    pub rate: Rate,
}

/// A second topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicLoad {
    /// Octets of each message.
    pub payload: Octets,
    /// How often one is due.
    pub rate: Rate,
    /// Whose participant sends and receives.
    pub participant: Participant,
}

/// Whose participant a topic has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Participant {
    /// Its own, in a process of its own at each place.
    #[default]
    Own,
    /// That of the end, in the measuring process.
    Shared,
}

/// A half of a load that sends to the other place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadPart {
    /// It sends.
    Sends,
    /// It receives, at the other end's place.
    Receives,
}

/// When a load begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadStart {
    /// Before the ends look for each other.
    BeforeDiscovery,
    /// When the ends have met, before the first slot.
    AfterMatching,
    /// This long after the word to begin.
    At(Nanos),
}

impl fmt::Display for LoadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadKind::Command(words) => f.write_str(&words.join(" ")),
            LoadKind::UdpStream(s) => write!(f, "udp-stream {} x {} at {}", s.flows, s.payload, s.rate),
            LoadKind::Topic(t) => {
                let whose = if t.participant == Participant::Shared { " in the end's participant" } else { "" };
                write!(f, "topic {} at {}{whose}", t.payload, t.rate)
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

/// What a load really did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LoadDone {
    /// What it was: the word, or the command.
    pub run: String,
    /// The end in whose place it ran.
    pub at: String,
    /// Which half of it, where it has two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<LoadPart>,
    /// Policy as the kernel had it.
    pub policy: String,
    /// CPUs as the kernel had them.
    pub cpus: String,
    /// When it began, monotonic ns; `None` = never.
    pub began_ns: Option<i64>,
    /// When it ended.
    pub ended_ns: Option<i64>,
    /// CPU time of it and of the children it waited for, ns.
    pub cpu_ns: u64,
    /// Octets that it worked through, where it counts them.
    pub octets: Option<u64>,
    /// Rounds, loads from memory or calls that it made, where it counts them.
    pub rounds: Option<u64>,
    /// Messages or datagrams that it sent or received, where it does either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Of those sent, how many went out a period or more after they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<u64>,
    /// Those that the driver or the kernel did not take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Those that were not received, of all before the last that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// Why it did not run as long as it was to: it could not be started, or ended by itself.
    pub failed: Option<String>,
}
