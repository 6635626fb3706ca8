//! What watching the messages of other programs found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was on the wire while packets were captured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchReport {
    /// When the capture began, ns since 1970, CLOCK_REALTIME.
    pub begin_ns: i64,
    /// Length of the capture in ns.
    pub duration_ns: i64,
    /// Where packets were captured: a network interface, or all of a network namespace.
    pub place: String,
    /// Packets that were read, without copies of packets that passed several interfaces.
    pub packets: u64,
    /// Further copies of these packets.
    pub copies: u64,
    /// Packets that the kernel did not copy, because they were not read fast enough. If there are any, numbers of retransmissions,
    /// gaps and losses are not to be trusted.
    pub not_copied: u64,
    /// Whether packets were read from a file: how many were not copied is then not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_file: bool,
    /// Whether samples of some writers were not read from some time on: topics that `--cpu` left out, or more writers than are shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// Largest step by which the clock of this host was set during the capture, ns: lateness at this time is wrong by as much. Absent
    /// if it was not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_step_ns: Option<i64>,
    /// CPU time that the capture took, ns, without what the kernel does for it while programs send and receive; absent for files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<i64>,
    /// What could not be read of the messages.
    pub unread: UnreadReport,
    /// Packets from or to the ports of zenoh, which are not read.
    pub zenoh_packets: u64,
    /// Number of files of shared memory on this host, by middleware.
    pub shared_memory: BTreeMap<String, u64>,
    /// Participants of DDS whose messages were seen.
    pub participants: u64,
    /// Topics, those with the latest messages first.
    pub topics: Vec<WatchedTopic>,
    /// The chain of topics that was asked for; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<WatchedChain>,
    /// What is to be known about these figures.
    pub warnings: Vec<String>,
}

/// A chain of topics, from causes to effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedChain {
    /// Names of the topics, as they were asked for.
    pub topics: Vec<String>,
    /// The hops: the first one from the writing of the first topic to its capture, then one from each topic to the next one.
    pub hops: Vec<WatchedHop>,
    /// Time from the writing of the message of the first topic until the message of the last topic that follows from it was captured, for
    /// each message of the last topic; from the capture of the first message if its writer has another clock. Absent without one.
    pub age: Option<WatchedRange>,
    /// The same time, for each message of the first topic until the first message of the last topic that follows from it, or from a
    /// later one.
    pub reaction: Option<WatchedRange>,
    /// Messages of the first topic from which no message of the last one has followed so far.
    pub without_effect: u64,
    /// The hop that made the oldest messages of the last topic late; absent if none took more than usual.
    pub late_hop: Option<WatchedLateHop>,
}

/// A hop of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedHop {
    /// The topic of the causes; absent for the first hop.
    pub from: Option<String>,
    /// The topic of the effects.
    pub to: String,
    /// Samples of the topic of the effects.
    pub samples: u64,
    /// Those whose cause has the same header stamp.
    pub by_header: u64,
    /// Those whose cause is the newest message before them.
    pub by_time: u64,
    /// Of both, those with more than one possible cause: messages with the same stamp, or several messages since the last effect.
    pub ambiguous: u64,
    /// Those before which no message of the causes was captured.
    pub without_cause: u64,
    /// Time from the capture of the cause to the capture of the effect; of the first hop from writing to capture.
    pub time: Option<WatchedRange>,
}

/// The hop that made messages late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedLateHop {
    /// The topic of the causes; absent for the first hop.
    pub from: Option<String>,
    /// The topic of the effects.
    pub to: String,
    /// Number of the oldest messages of the last topic that were looked at.
    pub messages: u64,
    /// What the hop took in them beyond its median, together, ns.
    pub beyond_ns: i64,
    /// The same of all hops, ns.
    pub of_all_ns: i64,
}

/// What could not be read of RTPS messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreadReport {
    /// Submessages with impossible or missing members.
    pub malformed: u64,
    /// Submessages of which too little was copied.
    pub cut: u64,
    /// Messages with submessages behind the copied bytes, which are not known.
    pub behind_copied: u64,
    /// Messages that are encrypted or signed: only the identity of their participant is known.
    pub protected: u64,
    /// Later IP fragments whose first fragment was not copied: of other traffic, or lost before the capture.
    pub fragments_alone: u64,
}

/// A topic, or a writer whose topic is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedTopic {
    /// Name of the topic as on the wire; absent if its writers were announced before the capture began.
    pub topic: Option<String>,
    /// Name of the topic in ROS 2, if the name on the wire is one of ROS 2.
    pub ros_topic: Option<String>,
    /// Name of the type as on the wire; absent like `topic`.
    pub type_name: Option<String>,
    /// Number of readers that were announced during the capture.
    pub readers_announced: u64,
    /// The writers whose samples were seen, or that were announced.
    pub writers: Vec<WatchedWriter>,
}

impl WatchedTopic {
    /// The name of the topic, as ROS 2 has it if it is one of ROS 2; `None` if it is not known.
    pub fn shown(&self) -> Option<&str> {
        self.ros_topic.as_deref().or(self.topic.as_deref())
    }
}

/// A writer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedWriter {
    /// Identity of the writer: 16 bytes in hexadecimal digits, with points between its four parts.
    pub guid: String,
    /// Vendor of its implementation of DDS.
    pub vendor: String,
    /// Name of the participant, if it was announced.
    pub participant: Option<String>,
    /// Name of its node of ROS 2, with the name space; absent if it is not known: only `--ask` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Address from which its samples come; absent if none was seen.
    pub address: Option<String>,
    /// Whether the network namespace in which packets were captured sent its samples, from an address of its own.
    pub is_here: bool,
    /// Policies; absent if the writer was announced before the capture began.
    pub qos: Option<WatchedQos>,
    /// Samples whose first transmission was seen.
    pub samples: u64,
    /// Samples per second between the first and the last one; absent with fewer than two.
    pub rate_hz: Option<f64>,
    /// Time between two samples, ns; absent with fewer than two.
    pub interval: Option<WatchedRange>,
    /// Length of the data of samples in bytes, without the header of the encoding: the smallest and the largest; absent without
    /// samples.
    pub bytes: Option<(u32, u32)>,
    /// How late samples were on the wire; absent if no sample has a time of its writer.
    pub lateness: Option<WatchedLateness>,
    /// Samples without a time of their writer.
    pub without_time: u64,
    /// How the protocol carried the samples.
    pub protocol: WatchedProtocol,
}

/// Policies of a writer, as it announced them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedQos {
    /// `reliable` or `best-effort`.
    pub reliability: String,
    /// `volatile`, `transient-local`, `transient` or `persistent`.
    pub durability: String,
    /// Longest permitted time between two samples, ns; absent = no limit.
    pub deadline_ns: Option<i64>,
}

/// The distribution of a time, ns: quantiles are the upper ends of histogram buckets, at most 0.8 % above the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedRange {
    /// Number of values.
    pub count: u64,
    /// Smallest value.
    pub min_ns: i64,
    /// Median.
    pub p50_ns: i64,
    /// 99 % of the values are not above it; absent with fewer than 368 values.
    pub p99_ns: Option<i64>,
    /// Largest value.
    pub max_ns: i64,
}

/// Time from the source timestamp of a sample until the end of its first transmission was captured. Not an end-to-end latency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedLateness {
    /// The distribution.
    pub range: WatchedRange,
    /// Whether the values are times above the fastest sample seen, because the clock of the writer is another one.
    pub is_above_fastest: bool,
    /// Where this vendor takes the source timestamp, and what passes before it unseen.
    pub begins: String,
}

/// How the protocol carried the samples of a writer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedProtocol {
    /// Samples, or fragments of samples, that were sent again to a reader that they had been sent to.
    pub again: u64,
    /// Samples that were sent again, and whose first transmission was not seen here: they have no lateness.
    pub first_not_seen: u64,
    /// Old samples that were sent to a reader that joined later: they have no lateness.
    pub replayed: u64,
    /// Fragments of samples, without those that were sent again.
    pub fragments: u64,
    /// Samples of which not all fragments were seen.
    pub unfinished: u64,
    /// Numbers between the first and the last sample that were not seen. Not all of them are lost: a writer may number samples that
    /// it never sends.
    pub numbers_not_seen: u64,
    /// HEARTBEAT submessages of the writer.
    pub heartbeats: u64,
    /// ACKNACK submessages to the writer.
    pub acknowledgements: u64,
    /// Samples that were asked for again, counted for each reader.
    pub requested: u64,
    /// Samples that were asked for, and that the writer said it no longer has, counted for each reader.
    pub given_up: u64,
    /// Samples that were asked for at least 1 s before the end, and never acknowledged, counted for each reader.
    pub lost: u64,
    /// Samples that were asked for later than that, and not acknowledged at the end, counted for each reader.
    #[serde(default)]
    pub open: u64,
}

/// Two captures side by side: an earlier one (a) and a later one (b).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchComparison {
    /// The earlier capture.
    pub a: ComparedCapture,
    /// The later capture.
    pub b: ComparedCapture,
    /// Topics that both have, those whose lateness grew most first.
    pub topics: Vec<ComparedTopic>,
    /// Topics with samples in the earlier capture alone.
    pub only_a: Vec<String>,
    /// Topics with samples in the later capture alone.
    pub only_b: Vec<String>,
    /// Writers with samples whose topic is not known, in both captures: they are not compared.
    pub unknown: (u64, u64),
}

/// One of two captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedCapture {
    /// Where packets were captured.
    pub place: String,
    /// When the capture began, ns since 1970.
    pub begin_ns: i64,
    /// Length of the capture in ns.
    pub duration_ns: i64,
}

/// A topic in two captures; of pairs, the first value is the one of the earlier capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedTopic {
    /// Name of the topic, in ROS 2 if it is one of ROS 2.
    pub topic: String,
    /// Samples of all writers.
    pub samples: (u64, u64),
    /// Samples per second of all writers together; absent if it is not known.
    pub rate_hz: (Option<f64>, Option<f64>),
    /// Samples, or fragments, that were sent again.
    pub again: (u64, u64),
    /// Samples that were requested and never acknowledged.
    pub lost: (u64, u64),
    /// The lateness; empty if a capture has none.
    pub lateness: Vec<ComparedLateness>,
}

/// A quantile of the lateness in two captures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedLateness {
    /// `p50` or `p99`.
    pub statistic: String,
    /// The quantile in both captures, ns.
    pub value_ns: (i64, i64),
    /// Whether the values are times above the fastest sample seen, because writers have another clock.
    pub is_above_fastest: (bool, bool),
    /// The later one divided by the earlier one; absent if the earlier one is not above zero, or if only one of them is above the
    /// fastest.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio by the variation within each capture (moving blocks): what differs between two captures of one system is
    /// not in it, so that it gives no verdict. Absent with fewer than 256 samples.
    pub within: Option<(f64, f64)>,
}
