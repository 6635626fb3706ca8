//! The part of the JSON document that says under which circumstances the figures came about.

use crate::course::Course;
use crate::over_time::OverTime;
use crate::patterns::PatternReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the record came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// Identity of the run.
    pub id: String,
    /// Wall-clock time of the beginning, ns since 1970.
    pub began_unix_ns: i64,
    /// The command line.
    pub command: Vec<String>,
    /// Release that measured.
    pub recorded_by: String,
    /// Names of the factors, outermost first.
    pub factors: Vec<String>,
    /// Seed of the order of trials.
    pub seed: u64,
    /// Trial ids in the order in which they ran.
    pub order: Vec<usize>,
    /// `--set` arguments.
    pub settings: Vec<String>,
    /// The study file's text.
    pub study_source: String,
}

/// How far a trial got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialState {
    /// Not begun.
    Pending,
    /// Begun and not ended.
    Running,
    /// Ended, to be trusted.
    Valid,
    /// Ended, not to be trusted; the warnings say why.
    Invalid,
}

/// One run of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialReport {
    /// Index within the plan.
    pub id: usize,
    /// Condition that was run.
    pub condition: usize,
    /// Which repetition, from 0.
    pub repeat: usize,
    /// Trials with the same number shared their lab.
    pub block: usize,
    /// How far it got.
    pub status: TrialState,
    /// Wall-clock time of slot 0, ns since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_ns: Option<i64>,
    /// Monotonic time of slot 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t0_ns: Option<i64>,
    /// Why nothing was answered, as far as the driver can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// The trial slot by slot, where its slots are in the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Course>,
    /// The trial over time, finely, where its slots are in the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTime>,
    /// What became of it under a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<PatternReport>,
    /// CPU time of the controller from `go` until the last end was through, as a share of one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_share: Option<f64>,
    /// The ends by name.
    pub ends: BTreeMap<String, EndReport>,
    /// What the path of guests counted at its own interfaces while messages went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortReport>,
    /// What happened to its guests while messages went, as seen from outside of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestReport>,
}

/// A virtual machine over one trial, as the program that runs it tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuestReport {
    /// Its name.
    pub guest: String,
    /// What KVM counted of each virtual CPU, in their order, by its names; those that end in `_ns` are times. Empty = not
    /// counted.
    pub vcpus: Vec<BTreeMap<String, i64>>,
    /// Why nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<String>,
    /// How long it stood still because somebody paused it.
    #[serde(default)]
    pub paused_ns: i64,
    /// It still did when messages were over.
    #[serde(default)]
    pub still_paused: bool,
    /// What else its hypervisor told of it, by the names of its events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
}

/// The path's own interface for one end, on the host of the guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortReport {
    /// The end.
    pub end: String,
    /// Its name.
    pub interface: String,
    /// `interface.*`, where `rx` came from the end and `tx` went to it; `xdp.redirected`, packets from the end that a program
    /// handed on; `switch.*`, what Open vSwitch took and gave.
    pub counters: BTreeMap<String, i64>,
}

/// One end of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndReport {
    /// Host.
    pub host: String,
    /// The clock of its stamps; ends with the same word, or none, share it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub clock: String,
    /// QoS in effect, read back.
    pub qos: BTreeMap<String, String>,
    /// Serialised octets of one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serialised_octets: Option<u64>,
    /// Time from open to matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_after_ns: Option<i64>,
    /// Rows lost because a buffer was full.
    pub rows_dropped: u64,
    /// Octets on the control stream while measuring.
    pub control_octets: u64,
    /// Pages were locked into memory.
    pub memory_locked: bool,
    /// Timer slack read back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_slack_ns: Option<u64>,
    /// Counters of the interface and of IP over the trial.
    pub counters: BTreeMap<String, i64>,
    /// What the driver says of its transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<serde_json::Value>,
    /// What the driver says of its peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<serde_json::Value>,
    /// Middleware statistics after the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<serde_json::Value>,
}

/// Facts of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name.
    pub host: String,
    /// Boot id of the kernel.
    pub boot_id: String,
    /// Sorted by key.
    pub facts: Vec<HostFact>,
}

/// One thing read from a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFact {
    /// Dotted key.
    pub key: String,
    /// Text, number or yes/no as read; null when it could not be read.
    pub value: serde_json::Value,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// Where it was read.
    pub source: String,
}

/// Threads of one measuring process of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadReport {
    /// Trial.
    pub trial: usize,
    /// Ends of the process.
    pub ends: Vec<String>,
    /// Process id.
    pub pid: i32,
    /// Policies asked for, of all threads and of single roles; absent = whatever was inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_policy: Option<String>,
    /// CPUs asked for, of all threads and of single roles; absent = unpinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_cpus: Option<String>,
    /// From the reading before the first slot to that after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<i64>,
    /// Before the first slot.
    pub before: Vec<Thread>,
    /// After the last.
    pub after: Vec<Thread>,
}

/// One thread at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Thread id.
    pub tid: i32,
    /// Name.
    pub name: String,
    /// What it is for.
    pub role: String,
    /// Policy asked for; absent = whatever was inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_policy: Option<String>,
    /// CPUs asked for; absent = unpinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_cpus: Option<String>,
    /// Policy with its parameters, e.g. `fifo 80`.
    pub policy: String,
    /// Real-time priority, for fifo and rr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// CPUs it may use.
    pub cpus: String,
    /// CPU it ran on last.
    pub last_cpu: u32,
    /// CPU time used since its birth.
    pub cpu_ns: u64,
    /// Time spent runnable but waiting for a CPU, in waits that have ended.
    pub run_delay_ns: u64,
    /// It was runnable when this was read: it ran, or waited for a CPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runnable: bool,
    /// What was counted of it once the loads had ended, where it was runnable after the last slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<LaterReading>,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Moves between CPUs; null = the kernel does not tell.
    pub migrations: Option<u64>,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Object that holds the start routine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born_in: Option<String>,
    /// Timer slack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_slack_ns: Option<u64>,
}

/// What was counted of a thread when it was read once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaterReading {
    /// How long after the reading that follows the last slot.
    pub after_ns: i64,
    /// CPU time used since its birth.
    pub cpu_ns: u64,
    /// Time spent runnable but waiting for a CPU, in waits that have ended.
    pub run_delay_ns: u64,
    /// It was runnable still, or again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runnable: bool,
}

/// What one load of one trial really did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReport {
    /// Trial.
    pub trial: usize,
    /// The end in whose place it ran, `ping` or `pong`.
    pub at: String,
    /// Its kind, or its command.
    pub run: String,
    /// Which half of it, `sends` or `receives`, where it has two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Policy as the kernel had it.
    pub policy: String,
    /// CPUs as the kernel had them.
    pub cpus: String,
    /// When it began, after slot 0; before it when negative. Absent = never, or there was no slot 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_after_ns: Option<i64>,
    /// How long it ran.
    pub ran_ns: i64,
    /// CPU time of it and of the children it waited for.
    pub cpu_ns: u64,
    /// Octets that it worked through, where it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets: Option<u64>,
    /// Rounds, loads from memory or calls, where it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u64>,
    /// Messages or datagrams that it sent or received.
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
    /// Why it was not there as long as it was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What was found on the path of some trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathReport {
    /// Trials that found the same.
    pub trials: Vec<usize>,
    /// What the study asked for.
    pub path: String,
    /// The sides.
    pub ends: Vec<PathSide>,
    /// Largest datagram (UDP payload octets) that passed, of those tried; 0 = none.
    pub max_datagram_ping_to_pong: u64,
    /// The same the other way.
    pub max_datagram_pong_to_ping: u64,
    /// A datagram that had to be fragmented passed.
    pub fragments_pass: bool,
    /// Multicast passed from ping to pong; null = not tried.
    pub multicast_passes: Option<bool>,
    /// Smallest of the probe round trips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_round_trip_ns: Option<i64>,
    /// Sentences about what does not pass.
    pub remarks: Vec<String>,
    /// How the ends were told to find each other; of drivers that have a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovery: Option<DiscoveryReport>,
}

/// What drivers were given to find each other by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiscoveryReport {
    /// `multicast`, `peers`, `multicast and peers`, `dns` or `server`.
    pub by: String,
    /// Why so.
    pub why: String,
    /// Address and port of the discovery server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The name that the ends were given as their peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// One side of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathSide {
    /// `ping` or `pong`.
    pub end: String,
    /// Interface.
    pub interface: String,
    /// Address in use.
    pub address: String,
    /// MTU in octets.
    pub mtu: u32,
    /// Up.
    pub up: bool,
    /// Link speed, where the device tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit_s: Option<i64>,
    /// Transmit queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_queues: Option<u32>,
    /// Receive queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_queues: Option<u32>,
    /// Offloads that are on.
    pub offloads: Vec<String>,
    /// The device behind it, as its own machine sees it: features of virtio, queues in use, interrupts and where they go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub card: Vec<HostFact>,
    /// The VLAN that the interface is of, and the priorities of its frames by those of sockets, as the kernel tells them:
    /// `10 egress 7:7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<String>,
}

/// The clock of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// Host.
    pub host: String,
    /// Clock that all times of the host are given in.
    pub clock: String,
    /// Widest bracket of a conversion from another clock; absent = nothing was converted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversion_width_ns: Option<i64>,
    /// Spans in which converted stamps cannot be trusted.
    pub invalid_windows: Vec<ClockWindow>,
}

/// A span in which a clock was stepped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockWindow {
    /// Trial.
    pub trial: usize,
    /// Begin, monotonic.
    pub from_ns: i64,
    /// End, monotonic.
    pub to_ns: i64,
    /// By how much the clock was stepped.
    pub step_ns: i64,
}
