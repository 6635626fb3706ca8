//! Circumstances under which figures were measured: the run, its trials, hosts, threads, loads, paths and clocks.

use crate::over_time::OverTime;
use crate::pattern::PatternReport;
use crate::slot_columns::Course;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{DiscoveryFacts, GuestSeen, PortCounted, SecurityFacts, TrialStatus};

/// How the record was made: command, time, study and order of the trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// Unique id of the run that made the record.
    pub id: String,
    /// Wall-clock time at which the run began, ns since 1970.
    pub began_unix_ns: i64,
    /// The command line of the run that made the record.
    pub command: Vec<String>,
    /// Release of Tailbound that made the record.
    pub recorded_by: String,
    /// Names of the factors, the factor that varies most slowly first.
    pub factors: Vec<String>,
    /// Seed of the random order in which the trials ran.
    pub seed: u64,
    /// Ids of the trials, in the order in which the trials ran.
    pub order: Vec<usize>,
    /// The `--set` arguments of the command line of the run.
    pub settings: Vec<String>,
    /// Text of the study file that was run.
    pub study_source: String,
    /// The message at which the run ends (`--until`); absent if the run ends after its trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UntilReport>,
    /// The repetition of the trials for a time (`--for`); absent if the trials were not repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<RepeatedReport>,
}

/// The repetition of the trials of a study for a time, and the times without a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedReport {
    /// Time for which the trials were to be repeated, ns.
    pub for_ns: i64,
    /// Size of the record in bytes after which no trial was to begin; absent if it had no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_limit_bytes: Option<u64>,
    /// Whether the run ended because the record had this size.
    pub disk_reached: bool,
    /// Time from the begin of the first measurement to the end of the last one, ns.
    pub span_ns: i64,
    /// Sum of the times of all measurements, ns.
    pub measured_ns: i64,
    /// Longest time between two measurements, ns.
    pub longest_gap_ns: i64,
    /// The trials that were removed to keep the record below its largest size, as sums for each condition; absent if none
    /// was to be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Vec<RemovedReport>>,
    /// Ids of older trials that were kept because of their incidents. Their incidents are in the lists of incidents; no
    /// figure and no sum contains them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_trial_ids: Vec<usize>,
}

/// Sums over the trials of a condition that were removed from the record. No other figure contains them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedReport {
    /// Number of the condition.
    pub condition: usize,
    /// Number of trials that were removed.
    pub trials: u64,
    /// Number of these trials that were not valid; the members below do not contain them.
    pub not_valid: u64,
    /// Number of measured messages that were to be sent; those that were not answered were lost or not sent.
    pub scheduled: u64,
    /// Number of messages that were answered.
    pub answered: u64,
    /// Number of late messages.
    pub late: u64,
    /// Number of incidents.
    pub incidents: u64,
    /// Longest time from the due time of a late message to its answer, ns; absent if no message was late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_latency_ns: Option<i64>,
}

/// The request to end a run at a message, and the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UntilReport {
    /// The condition of the message at which the run ends, e.g. `round_trip > 20 ms or lost`.
    pub condition: String,
    /// Time for which the trials of the study were repeated at most, ns; absent if they were not repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_ns: Option<i64>,
    /// The message at which the run ended; absent if no message fulfilled the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<UntilMessage>,
}

/// The first message of a run that fulfilled the condition at which the run ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UntilMessage {
    /// Id of the trial of the message.
    pub trial: usize,
    /// Number of the message's slot, counted from the begin of the warm-up.
    pub slot: u64,
    /// Time at which the message was due, ns (stop-and-wait: at which its send call began).
    pub due_ns: i64,
    /// Time at which the answer was received, ns; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_ns: Option<i64>,
    /// Name of the metric whose value was above its limit, or `lost`.
    pub metric: String,
    /// Value of the metric, ns; absent for a lost message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_ns: Option<i64>,
    /// Number of messages of the trial that fulfil the condition; this message is the first of them.
    pub matches: u64,
}

/// One trial, that is, one run of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialReport {
    /// Index of the trial in the plan.
    pub id: usize,
    /// Index, in the plan, of the condition that the trial ran.
    pub condition: usize,
    /// Number of the repetition of the condition, from 0.
    pub repeat: usize,
    /// Number of the lab block (consecutive trials that share their lab).
    pub block: usize,
    /// State of the trial at the end of the run.
    pub status: TrialStatus,
    /// Wall-clock time of the first slot (slot 0), ns since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_ns: Option<i64>,
    /// Monotonic time at which the first slot (slot 0) was due, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t0_ns: Option<i64>,
    /// Reason why no message was answered, as far as the driver knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// The measured slots of the trial, summarised in the columns of a chart; absent if the slots are not part of the
    /// figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// All slots of the trial over time, summarised in many narrow columns; absent if the slots are not part of the
    /// figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTime>,
    /// Effect of the loads on the trial; absent if the trial had no load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<PatternReport>,
    /// CPU time of the controller from the start of the measurement until the last end had finished, as a share of one
    /// CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_share: Option<f64>,
    /// Observations of each end of the trial, by name of the end.
    pub ends: BTreeMap<String, EndReport>,
    /// Counters of the path between guests, at the path's interfaces on the host, while messages were sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortCounted>,
    /// Events of the trial's guests while messages were sent, observed from the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestSeen>,
}

/// Observations of one end of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndReport {
    /// Name of the host on which the end ran.
    pub host: String,
    /// Name of the clock of the end's timestamps; ends with the same name, or without a name, share one clock.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub clock: String,
    /// QoS settings that the end used, read back from the driver.
    pub qos: BTreeMap<String, String>,
    /// Size of one serialised message, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "serialised_octets")]
    pub serialised_bytes: Option<u64>,
    /// Time from the opening of the end until the end had found the other end, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_after_ns: Option<i64>,
    /// Number of messages whose rows were dropped because a buffer was full.
    pub rows_dropped: u64,
    /// Number of received messages that were dropped because the queue to the second thread of `hand_off` was full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hand_off_dropped: u64,
    /// Number of answers that the driver refused to send.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answers_refused: u64,
    /// Number of bytes on the control stream between controller and agent during the measurement.
    #[serde(rename = "control_octets")]
    pub control_bytes: u64,
    /// True if the memory of the measuring process was locked.
    pub memory_locked: bool,
    /// Timer slack of the measuring process, read back from the kernel, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_slack_ns: Option<u64>,
    /// Growth of the counters of the path's interface and of IP during the trial.
    pub counters: BTreeMap<String, i64>,
    /// Transport that the end uses, as the driver describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<serde_json::Value>,
    /// Peers that the end has found, as the driver describes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<serde_json::Value>,
    /// Statistics of the middleware at the end of the trial, as the driver reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<serde_json::Value>,
}

/// Facts of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Name of the host to which the facts belong.
    pub host: String,
    /// Id of the current boot of the host's kernel.
    pub boot_id: String,
    /// Facts of the host, sorted by key.
    pub facts: Vec<HostFact>,
}

/// One fact about a host, e.g. the kernel version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFact {
    /// Key of the fact with dots, e.g. `cpu.governor`.
    pub key: String,
    /// Value of the fact: text, number, or true or false; null if the fact could not be read.
    pub value: serde_json::Value,
    /// Reason why the fact could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// File or system call from which the fact was read.
    pub source: String,
}

/// Threads of one measuring process in one trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadReport {
    /// Id of the trial in which the threads ran.
    pub trial: usize,
    /// Names of the ends that ran in the measuring process.
    pub ends: Vec<String>,
    /// Process id of the measuring process.
    pub pid: i32,
    /// Scheduling policies that the study asks for, for all threads and for single roles; absent if the threads keep
    /// the inherited policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_policy: Option<String>,
    /// CPUs that the study asks for, for all threads and for single roles; absent if the threads are not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_cpus: Option<String>,
    /// Time at which the threads were read before the first slot, by the monotonic clock of the threads' host, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ns: Option<i64>,
    /// Time from the reading of the threads before the first slot to the reading after the last slot, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<i64>,
    /// Threads of the measuring process, read before the first slot.
    pub before: Vec<Thread>,
    /// Threads of the measuring process, read after the last slot.
    pub after: Vec<Thread>,
}

/// One thread of a measuring process, read at one point in time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Thread id, as the kernel gives it.
    pub tid: i32,
    /// Name of the thread.
    pub name: String,
    /// Role of the thread, e.g. `receive`.
    pub role: String,
    /// Scheduling policy that the study asks for; absent if the thread keeps the inherited policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_policy: Option<String>,
    /// CPUs that the study asks for; absent if the thread is not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_cpus: Option<String>,
    /// Scheduling policy of the thread with its parameters, as the kernel reports it, e.g. `fifo 80`.
    pub policy: String,
    /// Real-time priority of the thread; only for the policies fifo and rr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// CPUs that the thread may use.
    pub cpus: String,
    /// CPU on which the thread ran last.
    pub last_cpu: u32,
    /// CPU time that the thread has used since it was created, ns.
    pub cpu_ns: u64,
    /// Time for which the thread was runnable and waited for a CPU, in waits that had ended, ns.
    pub run_delay_ns: u64,
    /// True if the thread ran or waited for a CPU at the time of the reading.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runnable: bool,
    /// Longest time for which a runnable thread can have waited for a CPU already at the time of the reading, ns; absent
    /// if the record does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_most_ns: Option<i64>,
    /// Second reading of the thread's counters after the loads had ended; absent if the thread was not runnable after
    /// the last slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<LaterReading>,
    /// Number of voluntary context switches of the thread.
    pub voluntary_switches: u64,
    /// Number of involuntary context switches of the thread.
    pub involuntary_switches: u64,
    /// Number of moves of the thread from one CPU to another; null if the kernel does not report the number.
    pub migrations: Option<u64>,
    /// Number of minor page faults of the thread.
    pub minor_faults: u64,
    /// Number of major page faults of the thread.
    pub major_faults: u64,
    /// Object file (program or library) that contains the start routine of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born_in: Option<String>,
    /// Timer slack of the thread, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_slack_ns: Option<u64>,
}

/// Counters of a thread at a second reading, after the loads of the trial had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaterReading {
    /// Time between the reading of the thread after the last slot and its second reading, ns.
    pub after_ns: i64,
    /// CPU time that the thread has used since it was created, ns.
    pub cpu_ns: u64,
    /// Time for which the thread was runnable and waited for a CPU, in waits that had ended, ns.
    pub run_delay_ns: u64,
    /// True if the thread was runnable at the second reading.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runnable: bool,
}

/// What one load did in one trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReport {
    /// Id of the trial in which the load ran.
    pub trial: usize,
    /// End in whose place the load ran, `ping` or `pong`.
    pub at: String,
    /// Kind of the load, or the command that the load ran.
    pub run: String,
    /// Part of the load, `sends` or `receives`; absent if the load has only one part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Scheduling policy of the load, read back from the kernel.
    pub policy: String,
    /// CPUs on which the load could run, read back from the kernel.
    pub cpus: String,
    /// Time from slot 0 to the begin of the load, ns; negative if the load began before slot 0; absent if the load
    /// never began or the time of slot 0 is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_after_ns: Option<i64>,
    /// Time at which the load began, by the monotonic clock of the load's host, ns; absent if the load never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<i64>,
    /// Time for which the load ran, ns.
    pub ran_ns: i64,
    /// CPU time of the load and of its child processes, ns.
    pub cpu_ns: u64,
    /// Number of bytes that the load processed; absent if the load does not count bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "octets")]
    pub bytes: Option<u64>,
    /// Number of rounds, memory accesses or system calls of the load; absent if the load does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Number of messages or datagrams that the load sent or received.
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
    /// Reason why the load ran shorter than planned, or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Result of the path check, with the trials that had this result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathReport {
    /// Ids of the trials with this result of the path check.
    pub trials: Vec<usize>,
    /// The path between the ends that the study asks for.
    pub path: String,
    /// Interface and address of each of the two ends of the path.
    pub ends: Vec<PathSide>,
    /// UDP payload in bytes of the largest datagram that passed from ping to pong, among the sizes that were tried; 0
    /// if none passed.
    pub max_datagram_ping_to_pong: u64,
    /// UDP payload in bytes of the largest datagram that passed from pong to ping, among the sizes that were tried; 0
    /// if none passed.
    pub max_datagram_pong_to_ping: u64,
    /// True if a fragmented datagram passed over the path.
    pub fragments_pass: bool,
    /// True if multicast passed from ping to pong; null if multicast was not tried.
    pub multicast_passes: Option<bool>,
    /// Shortest round trip of a datagram of the path check, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_round_trip_ns: Option<i64>,
    /// Sentences for the user about datagrams that do not pass.
    pub remarks: Vec<String>,
    /// The discovery method that the drivers used; absent if the drivers have no choice of method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoveryFacts>,
    /// DDS Security of the ends; absent if the study asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<SecurityFacts>,
}

/// One side of a path: the interface of one end and its properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathSide {
    /// Name of the end at this side of the path: `ping` or `pong`.
    pub end: String,
    /// Name of the end's network interface.
    pub interface: String,
    /// IP address that the end uses on the path.
    pub address: String,
    /// MTU of the end's network interface in bytes.
    pub mtu: u32,
    /// True if the end's network interface is up.
    pub up: bool,
    /// Link speed in Mbit/s; absent if the device does not report the speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit_s: Option<i64>,
    /// Number of transmit queues of the end's network interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_queues: Option<u32>,
    /// Number of receive queues of the end's network interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_queues: Option<u32>,
    /// Names of the offload features of the end's network interface that are on.
    pub offloads: Vec<String>,
    /// Facts about the device behind the interface, read on the machine that has the device: virtio features, number of
    /// queues in use, and the CPUs of interrupts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub card: Vec<HostFact>,
    /// The VLAN of the interface, and the mapping from socket priorities to the priorities of frames, as the kernel
    /// reports them, e.g. `10 egress 7:7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<String>,
    /// The traffic classes of the interface and the credits of each class, as the kernel reports them, e.g. `class 0: idle slope
    /// 4000 kbit/s, send slope -9996000 kbit/s, credit -1542 to 1 bytes; class 1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaping: Option<String>,
}

/// The clock of one host, and how reliably timestamps were converted to this clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// Name of the host to which the clock belongs.
    pub host: String,
    /// Name of the clock of all times that are reported for the host.
    pub clock: String,
    /// Largest possible error of a timestamp that was converted from another clock, ns; absent if no timestamp was
    /// converted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversion_width_ns: Option<i64>,
    /// Time spans in which converted timestamps, and differences from the clock of another host, must not be trusted.
    pub invalid_windows: Vec<ClockWindow>,
}

/// A span of time in which a clock was stepped, or changed its speed against the clock of another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockWindow {
    /// Id of the trial in which the clock was stepped.
    pub trial: usize,
    /// Begin of the time span, monotonic time of the host of the ping in ns.
    pub from_ns: i64,
    /// End of the time span, monotonic time of the host of the ping in ns.
    pub to_ns: i64,
    /// Size of the step of the clock, ns. Between clocks of two hosts: the smallest change of their difference that is
    /// possible; 0 if it is possible that only the speed changed.
    pub step_ns: i64,
    /// True if the clocks of two hosts changed against each other, and it is not known which of them changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub between_hosts: bool,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
