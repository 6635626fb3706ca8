//! Loads in a study.

use super::{Duration, LoadStartText, RoleKeys};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Work that runs beside the measurement.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadKeys {
    /// What it does.
    pub run: At<LoadChoice>,
    /// The end in whose place it runs. Default: `ping`.
    pub at: Option<LoadAt>,
    /// Its policy, priority and CPUs. Default: `other`, on any CPU. A real-time load must be given `cpus`.
    pub scheduling: Option<At<RoleKeys>>,
    /// `before-discovery`, `after-matching`, or a time after the word to begin. Default: `after-matching`.
    pub start: Option<At<LoadStartText>>,
    /// How long it runs; until the trial ends when absent.
    pub duration: Option<At<Duration>>,
}

/// What a load does.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LoadChoice {
    /// Inverts every bit of an image of 8 MiB, again and again.
    Cpu,
    /// Copies 64 MiB to and fro.
    Memory,
    /// Follows a random chain of addresses through 32 MiB.
    Cache,
    /// Calls the kernel without pause.
    Syscall,
    /// A program with its arguments, as a list of words; no shell.
    Command(At<Vec<String>>),
}

/// The place of a load.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LoadAt {
    /// Where the ping end runs.
    Ping,
    /// Where the pong end runs.
    Pong,
}
