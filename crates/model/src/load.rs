//! Work that runs beside a measurement, to see what it does to it.

use crate::{Nanos, RoleScheduling};
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
            LoadKind::Cpu => f.write_str("cpu"),
            LoadKind::Memory => f.write_str("memory"),
            LoadKind::Cache => f.write_str("cache"),
            LoadKind::Syscall => f.write_str("syscall"),
            LoadKind::Command(words) => f.write_str(&words.join(" ")),
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
    /// Why it did not run as long as it was to: it could not be started, or ended by itself.
    pub failed: Option<String>,
}
