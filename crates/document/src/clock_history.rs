//! History of the clock of a host during a trial, as its time service reported it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a time service (ptp4l or chrony) reported of the clock of a host during one trial. Times are ns of the host's
/// CLOCK_MONOTONIC. If `messages` is present, times are ns of the clock of the ping, into which the times of another host are
/// converted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockHistoryReport {
    /// Id of the trial.
    pub trial: usize,
    /// Index of the trial's condition.
    pub condition: usize,
    /// Name of the host.
    pub host: String,
    /// The time service that was asked, in words.
    pub service: String,
    /// Largest permitted distance between the clock and its master, ns, by the study.
    pub within_ns: i64,
    /// Begin of the history that is shown: the first message, or the begin of the trial.
    pub from_ns: i64,
    /// End of the history that is shown: the last message, or the end of the trial.
    pub to_ns: i64,
    /// Largest error of times that were converted from the clock of the host into the clock of the ping, ns; absent if the ping has
    /// the clock of the host, or if times were not converted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_width_ns: Option<i64>,
    /// Number of reported offsets.
    pub offsets: u64,
    /// Smallest, median and largest offset, clock minus master, ns; absent without an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<[i64; 3]>,
    /// Largest error of the clock that chrony states, ns: distance of the offset from 0, root dispersion and half of the root delay
    /// together; absent for ptp4l, which states no error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_error_ns: Option<i64>,
    /// Median of the path delay to the master, ns; absent if it was not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_delay_ns: Option<i64>,
    /// The last master: identity of the grandmaster, or the reference of chrony; empty if there was none.
    pub grandmaster: String,
    /// Number of clocks between the grandmaster and this clock, itself included (ptp4l), or the stratum (chrony).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_removed: Option<u16>,
    /// TAI minus UTC, s, if the master says that it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utc_offset_s: Option<i16>,
    /// States of the ports at the end, in words of the standard, by number of the port.
    pub ports: Vec<String>,
    /// Offsets over time: smallest and largest of equal parts of the trial. Parts without an offset are left out.
    pub parts: Vec<OffsetPart>,
    /// Time spans in which the clock was not known to be in step, in the order of time.
    pub windows: Vec<BadClockWindow>,
    /// The messages of the trial inside and outside of the windows; absent if they have another clock, or no answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesByWindow>,
    /// Readings of the clocks of the host, once a second.
    pub readings: Vec<ClockReadingsReport>,
}

/// Offsets in a part of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffsetPart {
    /// Time of the first offset of the part, ns.
    pub at_ns: i64,
    /// Smallest offset, ns.
    pub min_ns: i64,
    /// Largest offset, ns.
    pub max_ns: i64,
}

/// A time span in which a clock was not known to be in step with its master.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BadClockWindow {
    /// Last time before it at which the clock was known to be in step, ns, or the begin of the history.
    pub from_ns: i64,
    /// First time after it at which the clock was known to be in step, ns, or the end of the history.
    pub to_ns: i64,
    /// Kind of the reason.
    pub kind: BadClock,
    /// The reason, in words.
    pub why: String,
}

/// Reasons why a clock is not known to be in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BadClock {
    /// The offset was beyond the bound of the study.
    BeyondBound,
    /// No port of the service had a master.
    PortNotSlave,
    /// The service had no master.
    NoMaster,
    /// The service did not answer.
    Silent,
    /// The service answered, and reported no synchronisation.
    NoSynchronisation,
    /// Readings prove that the clock was stepped by more than the bound of the study.
    Stepped,
}

/// Figures of the messages of a trial, with and without the windows in which the clock was not known to be in step. No message
/// is removed from any other figure of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesByWindow {
    /// The latency: `from_intended`, or `round_trip` for stop-and-wait.
    pub metric: String,
    /// All messages after the warm-up.
    pub all: MessagesOfClock,
    /// Messages outside of all windows.
    pub outside: MessagesOfClock,
    /// Messages that were on their way, or due, in a window.
    pub inside: MessagesOfClock,
}

/// Figures of some messages of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesOfClock {
    /// Number of scheduled messages.
    pub messages: u64,
    /// Number of messages that were answered.
    pub answered: u64,
    /// Median over the scheduled messages, ns; absent with fewer than 6, or if it falls on messages without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<i64>,
    /// 99th percentile, ns; absent with fewer than 368 messages, or if it falls on messages without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<i64>,
    /// Longest time of an answered message, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
}

/// Readings of a clock of a host during a trial, beside CLOCK_REALTIME.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReadingsReport {
    /// The clock: `/dev/ptp0`, or `CLOCK_REALTIME`.
    pub clock: String,
    /// Network interfaces whose time stamps come from the clock.
    pub interfaces: Vec<String>,
    /// The interface of the kernel by which the clock was read.
    pub read_by: String,
    /// Number of readings.
    pub readings: u64,
    /// First and last difference from CLOCK_REALTIME, ns; absent for CLOCK_REALTIME itself, and without a reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<[i64; 2]>,
    /// Largest possible error of the difference, ns: its largest half width.
    pub half_width_max_ns: i64,
    /// Reason why the clock was not read, or no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_read: Option<String>,
}
