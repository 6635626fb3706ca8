//! Keys of loads in a study file.

use super::{Duration, Frequency, LoadStartText, Qos, RoleKeys, Size};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// A load: work that runs during the measurement.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadKeys {
    /// Kind of work that the load does.
    pub run: At<LoadChoice>,
    /// The end, `ping` or `pong`, at whose place the load runs, or the neighbours of the guest of this end. A load that
    /// sends messages sends them from there to the other end's place. Default: `ping`.
    pub at: Option<LoadAt>,
    /// Scheduling policy, priority and CPUs of the load; if the load has a sending and a receiving part, of both parts.
    /// Default: `other` on any CPU; for a topic in the participant of the end, the end's scheduling. A real-time load
    /// needs `cpus`.
    pub scheduling: Option<At<RoleKeys>>,
    /// When the load begins: `before-discovery`, `after-matching`, or a time, counted from the moment at which the
    /// first slot may begin. Default: `after-matching`.
    pub start: Option<At<LoadStartText>>,
    /// How long the load runs. Default: until the trial ends.
    pub duration: Option<At<Duration>>,
}

/// Kind of work that a load does.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LoadChoice {
    /// The load inverts every bit of an image of 8 MiB, without pause.
    Cpu,
    /// The load copies 64 MiB back and forth, which uses memory bandwidth.
    Memory,
    /// The load follows a random chain of addresses through 32 MiB, which causes cache misses.
    Cache,
    /// The load makes system calls without pause.
    Syscall,
    /// The load runs a program with its arguments, given as a list of words, without a shell.
    Command(At<Vec<String>>),
    /// The load sends UDP datagrams over the path to the other end's place, where the datagrams are received and
    /// counted.
    UdpStream(UdpStreamKeys),
    /// The load sends messages of another topic through the measured driver, with the driver's options and QoS, to a
    /// subscriber at the other end's place.
    Topic(Box<TopicKeys>),
}

/// A load that sends streams of UDP datagrams.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UdpStreamKeys {
    /// Number of streams of datagrams at the same time; each stream has its own source port. Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub flows: Option<At<u32>>,
    /// Size of the payload of each datagram. Default: `1472 B`, the largest UDP payload that fits into an IP packet of
    /// 1500 bytes.
    pub payload: Option<At<Size>>,
    /// Rate of datagrams in each stream; with `max`, the load sends without pause. Default: `10 kHz`.
    pub rate: Option<At<Frequency>>,
}

/// A load that sends messages of a second topic.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopicKeys {
    /// Size of the payload of each message of the load.
    pub payload: At<Size>,
    /// Rate at which the load sends messages.
    pub rate: At<Frequency>,
    /// DDS participant that sends and receives the messages of the load. Default: `own`.
    pub participant: Option<ParticipantChoice>,
    /// QoS policies of the topic. Default: those of the measured topic.
    pub qos: Option<Qos>,
    /// Longest time by which a message is sent after it is due; the time of each message is drawn at random. Less than
    /// the period. Default: messages are sent at even intervals.
    pub jitter: Option<At<Duration>>,
}

/// DDS participant that the topic of a load uses.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ParticipantChoice {
    /// The load has a separate DDS participant, in a separate process at each place.
    Own,
    /// The load uses the DDS participant of the end, on a thread of the measuring process.
    Shared,
}

/// The end at whose place a load runs.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LoadAt {
    /// The load runs at the place of the ping end.
    Ping,
    /// The load runs at the place of the pong end.
    Pong,
    /// The load runs in each neighbour of the guest (virtual machine) of the ping end.
    PingNeighbours,
    /// The load runs in each neighbour of the guest (virtual machine) of the pong end.
    PongNeighbours,
}
