//! `manifest.json`: what a run planned, and what each trial of the run recorded.

use crate::{Repeated, Until};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::{
    FlowCounts, GuestSeen, HostSettings, Imported, InvalidWindow, LoadDone, NodeSeen, PathFacts, PathProof, Plan,
    PortCounted, StageFact, ToolSummary, TrialStatus, Warning,
};

/// Major version of the record format that this release writes, and the highest version that it reads.
pub const FORMAT_MAJOR: u32 = 2;
/// Minor version of the record format that this release writes.
pub const FORMAT_MINOR: u32 = 0;
/// Earliest release of Tailbound that can read the records that this release writes.
pub const READABLE_BY: &str = "0.1.0";

/// Version of the record format: major and minor number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// Major version of the record format. A program refuses a record whose major version is higher than it knows.
    pub major: u32,
    /// Minor version of the record format. If it is higher than a program knows, the program ignores unknown keys.
    pub minor: u32,
}

/// Status of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Status of a record: the run did not finish.
    Incomplete,
    /// Status of a record: every trial of the record can be trusted.
    Valid,
    /// Status of a record: at least one trial of the record cannot be trusted.
    Invalid,
}

/// Origin of the figures of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Origin of figures: Tailbound computes the figures from rows of samples.
    #[default]
    Samples,
    /// Origin of figures: another benchmark program printed the figures.
    Summary,
}

/// Contents of `manifest.json`: what a run planned, and what each trial recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format in which the record is written.
    pub format: Format,
    /// Earliest release of Tailbound that reads this record.
    pub readable_by: String,
    /// Release of Tailbound that wrote the record.
    pub tailbound: String,
    /// Identifier of the run, which is part of the topic names.
    pub run_id: String,
    /// Wall-clock time at which the run began, ns since 1970.
    pub began_unix_ns: i64,
    /// Command line of the run that wrote the record.
    pub command: Vec<String>,
    /// Status of the record: valid, invalid or incomplete.
    pub status: Status,
    /// Reason why the figures show only that the measurement functions (emulated CPUs, or fewer CPUs than measured
    /// threads); absent if the figures can be used.
    pub functional_only: Option<String>,
    /// Plan of the run: the list of all its trials.
    pub plan: Plan,
    /// Path of the file with the facts of each host, relative to the directory of the record, by host name.
    pub hosts: BTreeMap<String, String>,
    /// Description that each driver of the run gave of itself, by driver name.
    pub drivers: BTreeMap<String, serde_json::Value>,
    /// Recorded data about each trial of the plan, by trial id.
    pub trials: Vec<TrialRecord>,
    /// Host settings under which trials ran, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_settings: Vec<HostSettings>,
    /// Imported outputs of other programs; a record with imported outputs contains no measurement of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imported: Vec<Imported>,
    /// The message at which the run ends; absent if the run ends after its trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// The request to repeat the trials for a time; absent if each trial of the study ran once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Repeated>,
    /// All warnings that the run raised.
    pub warnings: Vec<Warning>,
}

impl Manifest {
    /// Returns the manifest of a run that begins now, with its plan and without results.
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
            until: None,
            repeated: None,
            warnings: Vec::new(),
        }
    }

    fn position(&self, trial: usize) -> usize {
        let found = self.trials.binary_search_by_key(&trial, |of| of.id);
        found.expect("a trial that runs is in the plan, and the trials are in the order of their ids")
    }

    /// The data of a trial that runs, which must be in the plan.
    pub fn trial(&self, id: usize) -> &TrialRecord {
        &self.trials[self.position(id)]
    }

    /// The data of a trial that runs, which must be in the plan, to be changed.
    pub fn trial_mut(&mut self, id: usize) -> &mut TrialRecord {
        let position = self.position(id);
        &mut self.trials[position]
    }

    /// Least time by which a message of the ping in this trial is due before its queue may give it to the device, ns; 0 without launch
    /// times, and if launch times are deadlines.
    pub fn launch_wait_ns(&self, trial: usize) -> i64 {
        let stream = self.plan.spec_of(trial).and_then(|spec| spec.stream);
        let done = self.trials.iter().find(|done| done.id == trial);
        // The launch times are on CLOCK_TAI, which is known in the clock of the samples to within this time.
        let within_ns = done.and_then(|done| done.stream.as_ref()).map_or(0, |stream| stream.within_ns);
        stream.map_or(0, |stream| (stream.least_wait().0 - within_ns).max(0))
    }

    /// True if the trial is older than the trials whose figures are reported, and was kept because of its incidents
    /// (`--rolling`).
    pub fn is_kept_for_incidents(&self, trial: usize) -> bool {
        self.repeated.as_ref().and_then(|repeated| repeated.rolling.as_ref()).is_some_and(|r| r.kept.contains(&trial))
    }
}

/// Recorded data about one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Id of the trial in the plan of the run.
    pub id: usize,
    /// Status of the trial.
    pub status: TrialStatus,
    /// Origin of the trial's figures: samples, or the output of another program.
    pub source: Source,
    /// Wall-clock time of slot 0 of the trial, ns since 1970.
    pub began_unix_ns: Option<i64>,
    /// Monotonic time at which slot 0 of the trial was due, ns.
    pub t0_ns: Option<i64>,
    /// Recorded data about each end, by the name of the end.
    pub ends: BTreeMap<String, EndRecord>,
    /// Results of the path check of the trial: plain datagrams, sent before the driver starts.
    pub path: Option<PathFacts>,
    /// The transport that messages used; absent if there were no messages, or if the trial used a scripted clock
    /// (virtual time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<PathProof>,
    /// Reason why no message was answered, if the driver knows the reason.
    pub finding: Option<String>,
    /// Figures that a tool printed, if a tool ran in place of a driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ToolSummary>,
    /// CPU time of the controller while the ends measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerUse>,
    /// The Kubernetes nodes on which the ends of the trial ran in pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeSeen>,
    /// Counters of the path between guests, for each end at the path's own interface, while messages were sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortCounted>,
    /// Observations of the guests during the trial, made from the host while messages were sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<GuestSeen>,
    /// Results of loads that ran in guests without an end, named by their guests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbour_loads: Vec<LoadDone>,
    /// Base of the due times of the ping's messages, and refused launch times; absent if the trial has no stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<tailbound_model::StreamFact>,
}

/// CPU time of the controller, and of the processes that pass on its control streams to other hosts, from the message
/// `go`, which starts the trial, until the last end has finished the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerUse {
    /// CPU time of all threads of the controller and of the processes that pass on its control streams, ns.
    pub cpu_ns: i64,
    /// Length of the time span in which the CPU time was used, ns.
    pub span_ns: i64,
}

/// Difference between the monotonic clock of an end and the controller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockApart {
    /// Clock of the end minus clock of the controller, ns.
    pub offset_ns: i64,
    /// Largest possible error of the difference between the clocks, ns; 0 if end and controller have the same clock.
    pub within_ns: i64,
}

/// Data about one end of one trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EndRecord {
    /// Name of the host (machine) on which the end ran.
    pub host: String,
    /// Identifier of the clock of the end's timestamps: boot id and time namespace of its kernel. Ends with equal
    /// identifiers have the same clock. Ends with an empty identifier also share one clock.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub clock: String,
    /// Effective QoS settings of the end, as read back from the driver.
    pub qos: BTreeMap<String, String>,
    /// The driver's description of the transport of the end.
    pub transport: Option<serde_json::Value>,
    /// The driver's description of the peers of the end.
    pub peers: Option<serde_json::Value>,
    /// Statistics that the middleware reports after the trial.
    pub stats: Option<serde_json::Value>,
    /// Size of one serialised message in bytes, if the driver reports it.
    #[serde(rename = "serialised_octets")]
    pub serialised_bytes: Option<u64>,
    /// Time from the opening of the session until the ends had found each other, ns.
    pub matched_after_ns: Option<i64>,
    /// Monotonic time at which the driver session of the end was opened, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_ns: Option<i64>,
    /// Settings and counters that the driver reports for a flow: batching, limits, retransmissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "flow_told")]
    pub flow_answer: Option<serde_json::Value>,
    /// Counters of the end's messages, if the trial measures a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowCounts>,
    /// Difference between the end's clock and the controller's clock, if several publishers begin at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_apart: Option<ClockApart>,
    /// Number of rows of samples that were lost because a buffer was full.
    pub rows_dropped: u64,
    /// Number of received messages that were dropped because the queue to the second thread of `hand_off` was full.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hand_off_dropped: u64,
    /// Number of answers that the driver refused to send.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answers_refused: u64,
    /// Number of bytes on the control stream of the end between the messages `go` (start of the trial) and `done` (end
    /// of the trial).
    #[serde(rename = "control_octets")]
    pub control_bytes: u64,
    /// Largest possible error of timestamps that were converted to monotonic time, ns; absent if no timestamp was
    /// converted.
    pub clock_width_ns: Option<i64>,
    /// Stages that the end's messages passed on its host; absent if they have no such stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<StageFact>,
    /// Time windows in which timestamps that were converted to monotonic time cannot be trusted.
    pub invalid_windows: Vec<InvalidWindow>,
    /// Change of each counter of the interface and of IP during the trial (value after minus value before), by counter
    /// name.
    pub counters: BTreeMap<String, i64>,
    /// Gate for the packets that the interface of the end received, and what the gate dropped while messages were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<tailbound_model::PoliceFact>,
    /// True if the memory pages of the end's process were locked.
    pub memory_locked: bool,
    /// Timer slack that was read back from the kernel, ns.
    pub timer_slack_ns: Option<u64>,
    /// What the loads in this end's place did, as the kernel and the loads report it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadDone>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
