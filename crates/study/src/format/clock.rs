//! Keys of a study file for the clocks of the hosts of a run.

use super::Duration;
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// What the clock of the host on which Tailbound is started, and the clock of each host by ssh or libvirt, must keep before the
/// first trial begins. During the trials, their offsets from their masters are recorded.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClockKeys {
    /// The service that is asked for the offset of the clock. Default: `auto`.
    pub by: Option<At<TimeServiceChoice>>,
    /// Largest permitted distance between the clock and its master, at most 1 s.
    pub within: At<Duration>,
    /// The first trial begins when the offset has been within the bound for this time. Default: 10 s.
    #[serde(rename = "for")]
    pub held: Option<At<Duration>>,
    /// Longest time for which the run waits, after which it ends with an error. Default: 1 min, and the time of `for`.
    pub timeout: Option<At<Duration>>,
}

/// The service that is asked for the offset of a clock from its master.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TimeServiceChoice {
    /// `ptp4l`, if its usual socket `/var/run/ptp4l` exists; otherwise chrony.
    Auto,
    /// `ptp4l` of linuxptp, by its socket for management messages: one value for each synchronisation.
    Ptp4l(Ptp4lKeys),
    /// chrony, by its program `chronyc`: one value per second.
    Chrony,
}

/// How `ptp4l` is asked.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ptp4lKeys {
    /// Path of the socket (`uds_address` or `uds_ro_address` of ptp4l.conf). Default: `/var/run/ptp4l`.
    pub socket: Option<At<String>>,
    /// Number of the PTP domain (`domainNumber` of ptp4l.conf). Default: 0.
    #[schemars(range(max = 255))]
    pub domain: Option<At<u32>>,
}
