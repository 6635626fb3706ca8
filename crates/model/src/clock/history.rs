//! What a time service reported of its clock during a trial, and readings of the clocks of this host.

use crate::{ClockOffset, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Largest number of offsets in a history: 900 s at 128 per second.
pub const MOST_OFFSETS: usize = 115_200;

/// History of the clocks of one host during one trial. All times `at_ns`, `from_ns` and `to_ns` are CLOCK_MONOTONIC of this
/// host, ns: when the answer of the service was received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockHistory {
    /// Name of the host.
    pub host: String,
    /// Identifier of the host's monotonic clock.
    pub clock: String,
    /// The service that was asked, in words.
    pub service: String,
    /// Largest permitted distance between the clock and its master.
    pub within: Nanos,
    /// Begin of the history.
    pub from_ns: i64,
    /// End of the history.
    pub to_ns: i64,
    /// One value for each synchronisation (ptp4l), or for each second (chrony).
    pub offsets: Vec<ClockOffsetFromMaster>,
    /// Number of values beyond [`MOST_OFFSETS`], which were not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offsets_not_kept: u64,
    /// What chrony states of the error of its reference, for each of its offsets; empty for ptp4l and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub root_errors: Vec<RootError>,
    /// State of each port of the service at the begin, and each change of a state.
    pub ports: Vec<PortChange>,
    /// From which clock each port of ptp4l takes its time stamps, and each change; empty for chrony, for a socket for readers, and in
    /// older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port_clocks: Vec<PortClock>,
    /// The master at the begin, and each change.
    pub masters: Vec<MasterChange>,
    /// Time spans in which the service did not answer.
    pub silences: Vec<ServiceSilence>,
    /// Readings of the clocks of this host, once a second.
    pub readings: Vec<ClockReadings>,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC, read before the history began and at its end; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime: Option<[ClockOffset; 2]>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Offset of a clock from its master, as the time service reports it. In JSON: `[at_ns, offset_ns, path_delay_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, i64, Option<i64>)", into = "(i64, i64, Option<i64>)")]
pub struct ClockOffsetFromMaster {
    /// When the value was received.
    pub at_ns: i64,
    /// Clock minus master, ns.
    pub offset_ns: i64,
    /// Mean delay of the path to the master, ns, if it was reported for this synchronisation.
    pub path_delay_ns: Option<i64>,
}

impl From<(i64, i64, Option<i64>)> for ClockOffsetFromMaster {
    fn from((at_ns, offset_ns, path_delay_ns): (i64, i64, Option<i64>)) -> Self {
        ClockOffsetFromMaster { at_ns, offset_ns, path_delay_ns }
    }
}

impl From<ClockOffsetFromMaster> for (i64, i64, Option<i64>) {
    fn from(value: ClockOffsetFromMaster) -> Self {
        (value.at_ns, value.offset_ns, value.path_delay_ns)
    }
}

/// What chrony states of the error of its reference (RFC 5905). In JSON: `[at_ns, delay_ns, dispersion_ns, rate_error_ppb]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[i64; 4]", into = "[i64; 4]")]
pub struct RootError {
    /// When the value was received: the time of the offset that was reported with it.
    pub at_ns: i64,
    /// Root delay: time there and back to the clock at the head of the chain, ns.
    pub delay_ns: i64,
    /// Root dispersion: error that all clocks of the chain have gathered, ns.
    pub dispersion_ns: i64,
    /// Largest error of the rate of the clock: skew and residual frequency, ppb.
    pub rate_error_ppb: i64,
}

impl RootError {
    /// Largest error of the time that chrony estimates, ns: root dispersion and half of the root delay (chronyc(1), RFC 5905). The
    /// error of the clock is at most this error and the offset of the clock.
    pub fn most_ns(&self) -> i64 {
        let stated_ns = self.dispersion_ns.saturating_add(self.delay_ns.saturating_add(1) / 2);
        // chrony sends both numbers with 25 significant bits, and chronyc prints whole ns.
        stated_ns.saturating_add(2 + stated_ns / (1 << 24))
    }
}

impl From<[i64; 4]> for RootError {
    fn from([at_ns, delay_ns, dispersion_ns, rate_error_ppb]: [i64; 4]) -> Self {
        RootError { at_ns, delay_ns, dispersion_ns, rate_error_ppb }
    }
}

impl From<RootError> for [i64; 4] {
    fn from(root: RootError) -> Self {
        [root.at_ns, root.delay_ns, root.dispersion_ns, root.rate_error_ppb]
    }
}

/// State of a port of the time service from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortChange {
    /// When the state was reported first.
    pub at_ns: i64,
    /// Number of the port, from 1.
    pub port: u16,
    /// State of the port from then on.
    pub state: PortState,
}

/// The clock from which a port of ptp4l takes its time stamps, and whose offset from the master ptp4l therefore reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortClock {
    /// Number of the port, from 1.
    pub port: u16,
    /// Network interface of the port.
    pub interface: String,
    /// True if the time stamps come from a hardware clock; false if the kernel makes them by CLOCK_REALTIME.
    pub is_hardware: bool,
    /// Number of the hardware clock (N of /dev/ptpN), if ptp4l reports it (since linuxptp 4.0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
}

/// State of a PTP port (IEEE 1588-2019, table 20).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortState {
    /// The port begins.
    Initializing,
    /// The port has failed.
    Faulty,
    /// The port is switched off.
    Disabled,
    /// The port waits for announcements of a master.
    Listening,
    /// The port will be a master.
    PreMaster,
    /// The port is a master.
    Master,
    /// The port is neither a master nor a slave.
    Passive,
    /// The port has a master, with which its clock is not in step yet.
    Uncalibrated,
    /// The clock of the port is in step with a master.
    Slave,
    /// A number that the standard does not define.
    Unknown,
}

impl PortState {
    /// The state with this number of the standard.
    pub fn from_number(number: u8) -> PortState {
        match number {
            1 => PortState::Initializing,
            2 => PortState::Faulty,
            3 => PortState::Disabled,
            4 => PortState::Listening,
            5 => PortState::PreMaster,
            6 => PortState::Master,
            7 => PortState::Passive,
            8 => PortState::Uncalibrated,
            9 => PortState::Slave,
            _ => PortState::Unknown,
        }
    }
}

impl fmt::Display for PortState {
    /// The name of the standard.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PortState::Initializing => "INITIALIZING",
            PortState::Faulty => "FAULTY",
            PortState::Disabled => "DISABLED",
            PortState::Listening => "LISTENING",
            PortState::PreMaster => "PRE_MASTER",
            PortState::Master => "MASTER",
            PortState::Passive => "PASSIVE",
            PortState::Uncalibrated => "UNCALIBRATED",
            PortState::Slave => "SLAVE",
            PortState::Unknown => "UNKNOWN",
        })
    }
}

/// The master of a clock from a time on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MasterChange {
    /// When the master was reported first.
    pub at_ns: i64,
    /// The master.
    #[serde(flatten)]
    pub master: ClockMaster,
}

/// The master of a clock, as the time service reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockMaster {
    /// Identity of the grandmaster (ptp4l), or the reference of chrony; empty if there is none.
    pub grandmaster: String,
    /// Number of clocks between the grandmaster and this clock, itself included (ptp4l), or the stratum (chrony).
    pub steps_removed: Option<u16>,
    /// TAI minus UTC, s, if the master says that it is valid.
    pub utc_offset_s: Option<i16>,
    /// True if the time of the master is TAI (the timescale of PTP).
    pub is_tai: Option<bool>,
}

/// A time span in which the time service did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSilence {
    /// Last answer before it.
    pub from_ns: i64,
    /// First answer after it, or the end of the history.
    pub to_ns: i64,
    /// The reason, in words.
    pub why: String,
}

/// Readings of one clock of a host beside CLOCK_REALTIME, or of CLOCK_REALTIME beside CLOCK_MONOTONIC_RAW.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReadings {
    /// The clock that was read: `/dev/ptp0`, or `CLOCK_REALTIME`.
    pub clock: String,
    /// Network interfaces whose time stamps come from the clock.
    pub interfaces: Vec<String>,
    /// The interface of the kernel by which the clock was read.
    pub read_by: String,
    /// The readings.
    pub readings: Vec<BracketedReading>,
    /// Reason why the clock was not read, or no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_read: Option<String>,
}

/// A reading of a clock between two readings of another clock. In JSON: `[at_ns, offset_ns, half_width_ns, clock_ns,
/// unadjusted_before_ns, unadjusted_after_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[i64; 6]", into = "[i64; 6]")]
pub struct BracketedReading {
    /// CLOCK_MONOTONIC of this host at about the time of the reading.
    pub at_ns: i64,
    /// Clock minus CLOCK_REALTIME, ns: the middle of the possible values; 0 for CLOCK_REALTIME itself.
    pub offset_ns: i64,
    /// Largest possible error of the offset, ns.
    pub half_width_ns: i64,
    /// Time of the clock, ns.
    pub clock_ns: i64,
    /// CLOCK_MONOTONIC_RAW before and after the clock was read, ns.
    pub unadjusted_ns: [i64; 2],
}

impl From<[i64; 6]> for BracketedReading {
    fn from([at_ns, offset_ns, half_width_ns, clock_ns, before, after]: [i64; 6]) -> Self {
        BracketedReading { at_ns, offset_ns, half_width_ns, clock_ns, unadjusted_ns: [before, after] }
    }
}

impl From<BracketedReading> for [i64; 6] {
    fn from(r: BracketedReading) -> Self {
        [r.at_ns, r.offset_ns, r.half_width_ns, r.clock_ns, r.unadjusted_ns[0], r.unadjusted_ns[1]]
    }
}
