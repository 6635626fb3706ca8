//! Incidents of a condition: late and lost messages that overlap in time, the ledger that divides the excess of an
//! incident among causes, and the sums over the incidents of the condition.

use crate::cause::{CauseWord, CausedBy, Evidence};
use crate::waterfall::WaterfallReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of the worst incidents of a condition that the report describes one by one.
pub const INCIDENTS_DESCRIBED: usize = 10;

/// Late and lost messages of one trial that overlap in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IncidentReport {
    /// Id of the trial of the incident.
    pub trial: usize,
    /// Time at which the first message of the incident was due, ns of the sender's monotonic clock.
    pub begin_ns: i64,
    /// Time at which the last answer of the incident was received, or at which its last message without an answer was
    /// due, ns of the sender's monotonic clock.
    pub end_ns: i64,
    /// Number of late messages of the incident.
    pub late: u64,
    /// Number of messages of the incident that were lost or not sent.
    pub lost: u64,
    /// Number of the slot of the latest message, counted from the begin of the warm-up.
    pub worst_slot: u64,
    /// Time from the due time of the latest message to the receipt of its answer, ns; absent if no message of the
    /// incident was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_ns: Option<i64>,
    /// Part of the way of a message with the largest share of the excess: `send_lateness`, `out`, `turnaround`, `back`
    /// or `round_trip`; absent if the incident has no ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leg: Option<String>,
    /// Time of the incident during which a late message was outstanding for longer than the median, ns; each instant
    /// counts once.
    pub excess_ns: i64,
    /// True if the incident contains more than a tenth of the slots of its trial: it is a property of the condition,
    /// and not one of its worst moments.
    pub sustained: bool,
    /// Entries that divide the excess among causes, the largest first; absent if no events were recorded for this
    /// incident.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Vec<LedgerEntry>>,
    /// Reason why the incident has no ledger, in words without a full stop; absent if it has one, and if it has no
    /// excess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_ledger: Option<String>,
    /// Part of the excess that no entry accounts for: the excess minus the lower ends of all entries, ns.
    pub unexplained_ns: i64,
    /// Part of the excess for which no events were recorded, ns.
    pub not_seen_ns: i64,
    /// True if the entries exceed the excess by more than 5 % or 20 us, so that at least one of them is wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inconsistent: bool,
    /// Course of the most delayed message; only for the ten worst incidents of a condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waterfall: Option<WaterfallReport>,
    /// How exactly the times of the pong are known; absent if both ends have the same clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_clock: Option<OtherClock>,
    /// Width of the bounds of the difference between the clock of the ping and the clock of the host of the guests in which the ends
    /// run, ns; absent if this host was not recorded. What happened on the host has ranges in the ledger because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_clock_width_ns: Option<i64>,
    /// Description of the incident in sentences.
    pub text: String,
}

/// How exactly the times of a pong are known whose clock is not the clock of the ping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherClock {
    /// Width of the bounds of the difference between the clocks during the incident, ns; absent if the pong is not
    /// followed. Entries of the ledger that lie between events of both clocks have ranges because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_ns: Option<i64>,
    /// Reason why the pong is not followed, in words without a full stop: the whole round trip is one part of the way
    /// then. Absent if the pong is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_followed: Option<String>,
}

/// A part of the excess of an incident, with its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntry {
    /// The cause of this part of the excess.
    pub cause: CauseWord,
    /// Part of the way of a message in which the time passed: `send_lateness`, `out`, `turnaround`, `back` or
    /// `round_trip`.
    pub leg: String,
    /// Name of the end whose thread was delayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Number of the CPU on which the thread ran or for which it waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Name of the delayed thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The thread or interrupt that had the CPU in this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<CausedBy>,
    /// Smallest time that the cause can account for, ns, beyond the time that ordinary messages spend on it.
    pub ns_low: i64,
    /// Largest time that the cause can account for, ns.
    pub ns_high: i64,
    /// Kind of the evidence for this entry.
    pub evidence: Evidence,
}

/// How much one cause accounts for over the incidents of a condition that have a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseShare {
    /// The cause of the delays that are added up.
    pub cause: CauseWord,
    /// Name of the end whose threads were delayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The thread or interrupt that had the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<CausedBy>,
    /// Sum of the lower ends of the entries, ns.
    pub ns: i64,
    /// Share of the excess of the incidents that have a ledger.
    pub share: f64,
    /// Number of incidents with an entry of this cause.
    pub incidents: u64,
    /// True if the cause says why the time passed, and not only where.
    pub explains: bool,
    /// Part of `ns` that events of the kernel showed or that a counter counted (evidence `seen` or `counted`), ns. Only this
    /// part supports advice.
    #[serde(default)]
    pub proven_ns: i64,
    /// Threads that were delayed, with their CPUs, as far as the evidence is `seen` or `counted`: at most four, the one with
    /// the largest time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delayed: Vec<DelayedThread>,
}

/// A thread of an end that a cause delayed, on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DelayedThread {
    /// Name of the delayed thread; absent if the message was at no thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Role of the delayed thread, e.g. `receive`; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Number of the CPU on which the thread ran or for which it waited; absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Time of the thread on this CPU that the cause accounts for, ns.
    pub ns: i64,
}

/// The tail of a condition as it would be without one of its causes. It is an estimate: the time that the ledgers ascribe
/// to the cause is subtracted from each message whose time from due to answered overlaps with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WithoutCause {
    /// The cause whose time is subtracted.
    pub cause: CauseWord,
    /// Name of the end whose threads were delayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The thread or interrupt that had the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<CausedBy>,
    /// Metric of the quantiles and the maximum: `from_intended`, or with stop-and-wait `round_trip`.
    pub metric: String,
    /// The quantiles p99 and p99.9, if there are enough messages for them.
    pub quantiles: Vec<RemainingQuantile>,
    /// Largest value that was measured, ns.
    pub max_ns: i64,
    /// Estimate of the largest value without the cause, ns, rounded up to a histogram bucket.
    pub max_without_ns: i64,
    /// Number of messages from which time was subtracted.
    pub shortened: u64,
    /// Number of late messages in incidents whose ledgers were used. All other late messages keep their time.
    pub covered_late: u64,
    /// Number of all late messages of the condition.
    pub late: u64,
}

/// A measured quantile, and its estimate without a cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemainingQuantile {
    /// Fraction of the scheduled slots for which the quantile is computed, e.g. 0.99 for p99.
    pub q: f64,
    /// Measured quantile, ns; null if it is a slot without an answer, which counts as larger than every time.
    pub value_ns: Option<i64>,
    /// Estimate of the same quantile without the cause, ns, rounded up to a histogram bucket; null if it is a slot
    /// without an answer.
    pub without_ns: Option<i64>,
}

/// Numbers over all incidents of a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IncidentTotals {
    /// Number of incidents of the condition, including sustained ones.
    pub incidents: u64,
    /// Number of late messages.
    pub late: u64,
    /// Number of messages that were lost or not sent.
    pub lost: u64,
    /// Sum of the excess of all incidents, ns.
    pub excess_ns: i64,
    /// Sum of the excess of the incidents that have a ledger, ns: the sums by cause cover this time only.
    pub covered_ns: i64,
    /// Part of the covered excess that no entry accounts for, ns.
    pub unexplained_ns: i64,
}

/// The rule by which messages of one trial are late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateLimit {
    /// Id of the trial to which the limit belongs.
    pub trial: usize,
    /// A message is late if the time from its due time to the receipt of its answer is above this limit, ns.
    pub limit_ns: i64,
    /// Median of this time in the trial, ns.
    pub median_ns: i64,
    /// Share of the slots of the trial whose message is late.
    pub late_share: f64,
}

/// Runs of messages that were late or lost, over all trials of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissesReport {
    /// Largest number of consecutive messages that were late, lost or not sent.
    pub longest_run: u64,
    /// Windows of consecutive messages with too many late or lost ones.
    pub m_of_k: MOfK,
    /// Longest time from the due time of the first late or lost message to the due time of the first of `k`
    /// consecutive messages that were on time, ns; absent if nothing was missed or if no trial recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_recovery_ns: Option<i64>,
    /// Number of trials that ended before `k` consecutive messages were on time again.
    pub unrecovered_trials: u64,
}

/// Windows of `k` consecutive messages, of which at most `m` may be late or lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MOfK {
    /// Largest number of late or lost messages that a window may have.
    pub m: u32,
    /// Number of consecutive messages in a window.
    pub k: u32,
    /// Number of windows with more than `m` late or lost messages.
    pub violated_windows: u64,
}

/// Messages without an answer that were lost at the same place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LossReport {
    /// Place at which the messages were lost.
    #[serde(rename = "where")]
    pub place: LossPlace,
    /// Number of messages that were lost at this place.
    pub count: u64,
    /// Reason why the messages were lost, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Kind of the reason; absent if no reason is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<LossKind>,
    /// Kind of the evidence for the reason, or for the place if no reason is known.
    pub evidence: Evidence,
}

/// Places at which a message can be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossPlace {
    /// Place of the loss: the sender did not send the message.
    NeverSent,
    /// Place of the loss: the message left the sender's call and never arrived at the pong.
    OnTheWayOut,
    /// Place of the loss: the message arrived at the pong, whose send call for the answer did not end.
    AtThePong,
    /// Place of the loss: the pong sent the answer, which never arrived at the ping.
    OnTheWayBack,
}

/// Kinds of reasons why messages were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// Kind of loss: a receive buffer of a socket was full.
    SocketBuffer,
    /// Kind of loss: the backlog of a CPU for received packets was full.
    Backlog,
    /// Kind of loss: an interface dropped packets that it had received.
    InterfaceReceive,
    /// Kind of loss: an interface dropped packets that it should have sent.
    InterfaceSend,
    /// Kind of loss: fragments of a datagram did not arrive in time, or had no memory.
    Fragments,
    /// Kind of loss: the kernel dropped the packet at a device, for example in a full queue discipline.
    Device,
    /// Kind of loss: the launch time of the message had passed or was outside of the window of its gate.
    Launch,
    /// Kind of loss: a gate for received packets (policing) dropped the packet.
    Policed,
    /// Kind of loss: the kernel dropped the packet for another reason.
    Other,
}
