//! Loads in a study.

use super::{Duration, Frequency, LoadStartText, RoleKeys, Size};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Work that runs beside the measurement.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadKeys {
    /// What it does.
    pub run: At<LoadChoice>,
    /// The end in whose place it runs; one that sends does so from there, to the other end's place. Default: `ping`.
    pub at: Option<LoadAt>,
    /// Its policy, priority and CPUs, of both halves where it has two. Default: `other`, on any CPU; a topic in the
    /// participant of the end: as the end. A real-time load must be given `cpus`.
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
    /// Sends datagrams over the path to the other end's place, where they are received and counted.
    UdpStream(UdpStreamKeys),
    /// Sends messages through the same driver, with its options and QoS, to a reader at the other end's place.
    Topic(TopicKeys),
}

/// Bulk datagrams.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UdpStreamKeys {
    /// How many flows at once, each with a source port of its own. Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub flows: Option<At<u32>>,
    /// Octets of each datagram. Default: `1472 B`, as much as a frame of 1500 octets takes.
    pub payload: Option<At<Size>>,
    /// Datagrams of each flow; `max` sends without pause. Default: `10 kHz`.
    pub rate: Option<At<Frequency>>,
}

/// A second topic.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopicKeys {
    /// Octets of payload in each message.
    pub payload: At<Size>,
    /// How often a message is due.
    pub rate: At<Frequency>,
    /// Whose participant sends and receives. Default: `own`.
    pub participant: Option<ParticipantChoice>,
}

/// Whose participant a topic has.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ParticipantChoice {
    /// Its own, in a process of its own at each place.
    Own,
    /// That of the end, on a thread of the measuring process.
    Shared,
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
