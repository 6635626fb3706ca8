//! `manifest.json`: what the record is about, and how far it got.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{
    FlowCounts, GuestSeen, HostSettings, Imported, InvalidWindow, LoadDone, NodeSeen, PathFacts, PathProof, Plan,
    PortCounted, ToolSummary, Warning,
};

/// Major version of the record format that this release writes, and the highest that it reads.
pub const FORMAT_MAJOR: u32 = 1;
/// Minor version of the record format that this release writes.
pub const FORMAT_MINOR: u32 = 0;
/// Earliest release that reads what this one writes.
pub const READABLE_BY: &str = "0.1.0";

/// Version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// Readers refuse a higher one.
    pub major: u32,
    /// Readers ignore what they do not know of a higher one.
    pub minor: u32,
}

/// How far a record got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The run did not end by itself.
    Incomplete,
    /// Every trial is to be trusted.
    Valid,
    /// At least one trial is not.
    Invalid,
}

/// How far a trial got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStatus {
    /// Not begun.
    Pending,
    /// Begun and not ended: after a kill it stays so.
    Running,
    /// Ended, to be trusted.
    Valid,
    /// Ended, not to be trusted; the warnings say why.
    Invalid,
}

/// Where an end's figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Rows of samples.
    #[default]
    Samples,
    /// A summary that another program printed.
    Summary,
}

/// The manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version.
    pub format: Format,
    /// Earliest release that reads this record.
    pub readable_by: String,
    /// Release that wrote it.
    pub tailbound: String,
    /// Identity of the run; part of topic names.
    pub run_id: String,
    /// Wall-clock time of the beginning, ns since 1970.
    pub began_unix_ns: i64,
    /// The command line.
    pub command: Vec<String>,
    /// How far it got.
    pub status: Status,
    /// Figures are good for function only, and why (emulation, fewer CPUs than measured threads).
    pub functional_only: Option<String>,
    /// What was to be done.
    pub plan: Plan,
    /// Facts files of the hosts by host name, relative to the record.
    pub hosts: BTreeMap<String, String>,
    /// Description of each driver used, as the driver gave it.
    pub drivers: BTreeMap<String, serde_json::Value>,
    /// One per trial of the plan, by trial id.
    pub trials: Vec<TrialRecord>,
    /// Settings of the host that trials ran under, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_settings: Vec<HostSettings>,
    /// Outputs of other programs that were taken over; a record that has some measured nothing itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imported: Vec<Imported>,
    /// Everything that was raised.
    pub warnings: Vec<Warning>,
}

impl Manifest {
    /// Of a record that begins now, with nothing in it but its plan.
    pub fn begun(plan: Plan, run_id: &str, command: Vec<String>) -> Manifest {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Manifest {
            format: Format { major: FORMAT_MAJOR, minor: FORMAT_MINOR },
            readable_by: READABLE_BY.into(),
            tailbound: env!("CARGO_PKG_VERSION").into(),
            run_id: run_id.into(),
            began_unix_ns: now.as_nanos() as i64,
            command,
            status: Status::Incomplete,
            functional_only: None,
            plan,
            hosts: BTreeMap::new(),
            drivers: BTreeMap::new(),
            trials: Vec::new(),
            host_settings: Vec::new(),
            imported: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// What is known of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Trial id of the plan.
    pub id: usize,
    /// How far it got.
    pub status: TrialStatus,
    /// Where figures come from.
    pub source: Source,
    /// Wall-clock time of slot 0, ns since 1970.
    pub began_unix_ns: Option<i64>,
    /// Monotonic time of slot 0.
    pub t0_ns: Option<i64>,
    /// The ends by name.
    pub ends: BTreeMap<String, EndRecord>,
    /// What was found on the path.
    pub path: Option<PathFacts>,
    /// By which way messages went; absent where none did, or the clock is scripted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<PathProof>,
    /// Why nothing was answered, as far as the driver can tell.
    pub finding: Option<String>,
    /// What the tool printed, where one ran in place of a driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ToolSummary>,
    /// What the controller itself took while the ends measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerUse>,
    /// The nodes of a cluster that its ends were on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeSeen>,
    /// What the path of guests counted at its own interfaces while messages went, by end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortCounted>,
    /// What happened to its guests while messages went, as seen from outside of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestSeen>,
}

/// CPU time of the controller, and of the processes that carry its streams to other hosts, from `go` until the last end was through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerUse {
    /// Of all their threads, ns.
    pub cpu_ns: i64,
    /// How long that was, ns.
    pub span_ns: i64,
}

/// How far the monotonic clock of an end is from the controller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockApart {
    /// Its clock less the controller's, ns.
    pub offset_ns: i64,
    /// It is within so much of that, ns; 0 = they are one clock.
    pub within_ns: i64,
}

/// What is known of one end of one trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EndRecord {
    /// Host.
    pub host: String,
    /// The clock of its stamps: boot id and time namespace of the kernel that it ran on. Ends with the same word have the same clock, and
    /// so have those of a record that has no word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub clock: String,
    /// Effective QoS, read back.
    pub qos: BTreeMap<String, String>,
    /// What the driver says of its transport.
    pub transport: Option<serde_json::Value>,
    /// What the driver says of its peers.
    pub peers: Option<serde_json::Value>,
    /// Middleware statistics after the trial.
    pub stats: Option<serde_json::Value>,
    /// Serialised octets of one message, where the driver tells.
    pub serialised_octets: Option<u64>,
    /// Time from open to matched, ns.
    pub matched_after_ns: Option<i64>,
    /// Monotonic time of its opening, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_ns: Option<i64>,
    /// What the driver tells of a flow: batching, limits, retransmissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_told: Option<serde_json::Value>,
    /// What it counted of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowCounts>,
    /// Its clock against the controller's, where several send and begin together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_apart: Option<ClockApart>,
    /// Rows lost because a buffer was full.
    pub rows_dropped: u64,
    /// Octets on the control stream between go and done.
    pub control_octets: u64,
    /// Reported width of the clock conversion, ns; absent when no stamp was converted.
    pub clock_width_ns: Option<i64>,
    /// Windows in which converted stamps cannot be trusted.
    pub invalid_windows: Vec<InvalidWindow>,
    /// Counters of the interface and of IP over the trial (after - before).
    pub counters: BTreeMap<String, i64>,
    /// Pages were locked into memory.
    pub memory_locked: bool,
    /// Timer slack read back, ns.
    pub timer_slack_ns: Option<u64>,
    /// What the loads in this end's place really did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadDone>,
}
