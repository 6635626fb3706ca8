//! What watching the messages of other programs found.

use crate::VerdictWord;
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
    /// Time from the capture stamp of a packet that an interface sends until the next place of this host had the packet (a received copy on
    /// the loopback interface, the next interface of a bridge), ns: the packet left within this time. Absent if no such packet was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_within: Option<WatchedRange>,
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
    /// What the capture cost the programs in its network namespace; absent if it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<WatchedCost>,
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
    /// Times at which samples were later than usual, those with the largest excess first, at most ten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<WatchedIncident>,
    /// Calls of programs of ROS 2; absent if they were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<WatchedCalls>,
    /// The same samples at another host; absent if they were captured at one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<WatchedAlso>,
    /// What is to be known about these figures.
    pub warnings: Vec<String>,
}

/// What a capture cost the programs that send and receive, beside the time of the capture itself: all programs in the network namespace,
/// with what the kernel did in their time. Shares of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedCost {
    /// Number of pairs of times with and without a capture.
    pub pairs: u64,
    /// What the programs took without a capture, median.
    pub without: f64,
    /// What they took more with a capture, median of the pairs.
    pub added: f64,
    /// An interval of 97.9 % for this median.
    pub within: (f64, f64),
}

/// A time at which samples of one or several topics were later than usual. Of each writer, only the 32 latest samples are looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedIncident {
    /// When the first late sample was written, ns since 1970; of a writer with another clock, as if the fastest sample had taken no time.
    pub begin_ns: i64,
    /// When the last late sample was captured, ns since 1970.
    pub end_ns: i64,
    /// The topics with late samples, the latest first.
    pub topics: Vec<LateTopic>,
    /// What the CPUs of this host did meanwhile; absent if they were not looked at.
    pub host: Option<HostDuring>,
}

/// A topic in an incident.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LateTopic {
    /// Its name, or the identity of its writer if it is not known.
    pub topic: String,
    /// Number of late samples, of the 32 latest ones of the writer.
    pub late: u64,
    /// Lateness of the latest sample, ns.
    pub worst_ns: i64,
    /// Median of the lateness of the writer, ns.
    pub median_ns: i64,
}

/// What the CPUs of this host did during an incident, from readings of /proc/stat.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostDuring {
    /// Time between the readings that enclose the incident, ns.
    pub read_ns: i64,
    /// Share of this time in which the CPUs had something to do, over all CPUs.
    pub busy: f64,
    /// Time that a hypervisor took from all CPUs together, ns.
    pub stolen_ns: i64,
}

/// Samples that were captured at two hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedAlso {
    /// The other host.
    pub host: String,
    /// Number of readings of its clock.
    pub exchanges: u64,
    /// Its clock minus the clock of this host in the middle of the capture, ns: at least and at most. Absent if it is not known.
    pub offset_ns: Option<(i64, i64)>,
    /// Writers of one of both hosts whose samples both captured.
    pub writers: Vec<AlsoWriter>,
    /// Samples without a time between both hosts, because readings of the clocks contradict each other: one was set.
    pub without_offset: u64,
    /// Packets that the kernel of the other host did not copy: if there are any, samples that did not arrive may have.
    pub not_copied: u64,
    /// What is to be known about the capture of the other host.
    pub warnings: Vec<String>,
}

/// A writer whose samples were captured where they were sent, and where they arrived. Of pairs of distributions, the first one is of the
/// least values that the bounds of the clocks permit, and the second one of the largest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlsoWriter {
    /// Name of its topic, as ROS 2 has it if it is one of ROS 2; absent if it is not known.
    pub topic: Option<String>,
    /// Its identity.
    pub guid: String,
    /// Whether this host sent its samples, and not the other one.
    pub from_here: bool,
    /// Samples that were sent, from the first to the last one that arrived.
    pub sent: u64,
    /// Number of these samples whose first transmission did not arrive. If the writer is best-effort, these samples are lost.
    pub not_arrived: u64,
    /// Whether the writer repeats nothing; absent if its policies are not known.
    pub is_best_effort: Option<bool>,
    /// From the capture at the sender to the capture at the receiver, ns.
    pub network: Option<(WatchedRange, WatchedRange)>,
    /// From the source timestamp to the capture at the receiver, ns.
    pub lateness: Option<(WatchedRange, WatchedRange)>,
}

/// Calls with which programs of ROS 2 publish, take and execute messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchedCalls {
    /// Topics, in the order of their names.
    pub topics: Vec<CalledTopic>,
    /// Calls that were not recorded, because they were not read fast enough.
    pub lost: u64,
    /// Whether times in which threads waited for a CPU were recorded.
    #[serde(default)]
    pub has_waits: bool,
}

/// The calls for a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalledTopic {
    /// Name of the topic in ROS 2.
    pub topic: String,
    /// Time in the call that publishes a message, ns; absent if no message was published here, or if ends of calls are not known.
    pub publish: Option<WatchedRange>,
    /// Messages that were published here.
    pub published: u64,
    /// The processes that took messages.
    pub takers: Vec<CalledTaker>,
}

/// A process that takes messages of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalledTaker {
    /// Name and id of the process.
    pub process: String,
    /// Messages that it took.
    pub taken: u64,
    /// Of these, those whose call to publish was found: the one that contains the source timestamp.
    pub matched: u64,
    /// Those with several such calls, which are not in the figures.
    pub ambiguous: u64,
    /// From the begin of the call that published to the end of the call that took the message, ns.
    pub publish_to_take: Option<WatchedRange>,
    /// From the capture of the message on the wire to the end of the call that took it, ns.
    pub wire_to_take: Option<WatchedRange>,
    /// Time in the callback, ns; by uprobes, from the end of the call that took the message until the subscription was executed, with what
    /// rclcpp does before and after the callback.
    pub callback: Option<WatchedRange>,
    /// The messages with the longest time from the begin of publishing to the end of the callback (without one, of the take), the
    /// longest one first.
    pub latest: Vec<CalledMessage>,
}

/// The way of one message through the calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalledMessage {
    /// Its source timestamp, ns since 1970.
    pub source_ns: i64,
    /// The parts of its time, in their order; what they have together is the whole time.
    pub parts: Vec<CalledPart>,
}

/// A part of the time of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalledPart {
    /// `publish to wire`, `wire to take`, `publish to take` (if the message was not captured), `take to callback` (in traces) or `callback`.
    pub name: String,
    /// Its length, ns.
    pub time_ns: i64,
    /// The median of this part for the messages of this topic and process; absent with fewer than two.
    pub median_ns: Option<i64>,
    /// The thread that was ready and waited longest for a CPU meanwhile: of the process that published, or took; of a callback, the
    /// thread that executed it. Absent if none waited for 100 us, or if waits are not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<CalledWait>,
}

/// A thread waited for a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CalledWait {
    /// Name of the thread.
    pub thread: String,
    /// How long, ns, all its waits of at least 100 us together.
    pub time_ns: i64,
    /// Name of the thread that had this CPU longest during the longest of these waits; absent if it is not known.
    pub by: Option<String>,
    /// For how much of that wait it had the CPU without a break, ns.
    pub by_ns: i64,
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

/// Captures side by side: one or several earlier ones (a), and one or several later ones (b).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchComparison {
    /// The first one of the earlier captures.
    pub a: ComparedCapture,
    /// The first one of the later captures.
    pub b: ComparedCapture,
    /// Number of captures of each side.
    #[serde(default = "one_each")]
    pub captures: (u64, u64),
    /// Topics that are not in every capture, although both sides have them: they are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_all: Vec<String>,
    /// Topics that both have, those whose lateness grew most first.
    pub topics: Vec<ComparedTopic>,
    /// Topics with samples in the earlier capture alone.
    pub only_a: Vec<String>,
    /// Topics with samples in the later capture alone.
    pub only_b: Vec<String>,
    /// Writers with samples whose topic is not known, in both captures: they are not compared.
    pub unknown: (u64, u64),
}

fn one_each() -> (u64, u64) {
    (1, 1)
}

/// A compared capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The quantile on both sides, ns; of several captures, the geometric mean.
    pub value_ns: (i64, i64),
    /// Whether the values are times above the fastest sample seen, because writers have another clock.
    pub is_above_fastest: (bool, bool),
    /// The later one divided by the earlier one; absent if the earlier one is not above zero, or if only one of them is above the
    /// fastest.
    pub ratio: Option<f64>,
    /// Verdict by the variation between captures; absent with one capture of a side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictWord>,
    /// 95 % interval of the ratio by the variation between captures, simultaneous with all intervals of the table. Absent with fewer than
    /// five captures of a side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<(f64, f64)>,
    /// Number of captures of each side that are missing for a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_captures: Option<u64>,
    /// 95 % interval of the ratio by the variation within each capture (moving blocks): what differs between two captures of one system is
    /// not in it, so that it gives no verdict. Absent with fewer than 256 samples, and with several captures.
    pub within: Option<(f64, f64)>,
}
