//! What a study demands of the clocks of the hosts of a run.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Socket on which `ptp4l` listens for management messages, if its configuration names no other.
pub const PTP4L_SOCKET: &str = "/var/run/ptp4l";

/// What a study demands of the clock of each host that has a time service, and how long the run waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSpec {
    /// The service that is asked for the offset of the clock from its master.
    pub by: TimeService,
    /// Largest permitted distance between the clock and its master.
    pub within: Nanos,
    /// Time for which the offset must have been within the bound before the first trial begins.
    #[serde(rename = "for")]
    pub held: Nanos,
    /// Longest time for which the run waits.
    pub timeout: Nanos,
}

/// A program that keeps a clock of a host in step with a master.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeService {
    /// `ptp4l`, if its socket exists; otherwise chrony.
    Auto,
    /// `ptp4l` of linuxptp.
    Ptp4l {
        /// Path of the socket for management messages.
        socket: String,
        /// Number of the PTP domain.
        #[serde(default)]
        domain: u8,
    },
    /// chrony, asked by its program `chronyc`.
    Chrony,
}

impl fmt::Display for TimeService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeService::Auto => f.write_str("ptp4l or chrony"),
            TimeService::Ptp4l { socket, domain: 0 } => write!(f, "ptp4l at {socket}"),
            TimeService::Ptp4l { socket, domain } => write!(f, "ptp4l at {socket}, domain {domain}"),
            TimeService::Chrony => f.write_str("chrony"),
        }
    }
}
