//! Keys of a study file for the stream of the ping: when its messages are due, and when they are launched.

use super::{Duration, ReplaceChoice};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Times of the clock of the gates at which the messages of the ping are due: CLOCK_TAI, or the hardware clock of the network card if the
/// gates are on it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamKeys {
    /// Each message is to leave this time after a multiple of the period, counted from the begin of the gates of the ping; without
    /// gates, from a whole second, if the period divides a second. Less than the period. Default: 0 s.
    pub offset: Option<At<Duration>>,
    /// Launch times: the ping gives each message to the kernel early, and the kernel sends it at its time (SO_TXTIME, queue
    /// discipline `etf`). Default: messages are sent at once.
    pub launch: Option<At<LaunchKeys>>,
}

/// Launch times of the messages of the ping.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LaunchKeys {
    /// Time before its launch time at which a message is due at the ping. It has to cover the wake-up and the send call.
    pub lead: At<Duration>,
    /// Time before its launch time at which the queue discipline gives a message to the device (`delta` of tc-etf(8)). Default:
    /// 300 us.
    pub ahead: Option<At<Duration>>,
    /// Meaning of the launch time. Default: `strict`.
    pub mode: Option<LaunchModeChoice>,
    /// Who sets up the queue with launch times. Default: `etf`.
    pub by: Option<At<LaunchByChoice>>,
    /// Whether a queue discipline that somebody has set up on the interface of `path: existing` is replaced for the trials, and
    /// restored afterwards. The kernel's default one is always replaced. If the ping has `gates`, their key `replace` decides.
    /// Default: `no`.
    pub replace: Option<At<ReplaceChoice>>,
}

/// Who sets up the queue with launch times of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LaunchByChoice {
    /// The queue disciplines `mqprio` and `etf`, which Tailbound sets; with `gates`, `taprio` and `etf`.
    Etf,
    /// What was set up before: the queue of the interface of `path: existing` is read and compared with `ahead` and `mode`, and nothing is
    /// changed.
    Existing,
}

/// Meaning of a launch time.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LaunchModeChoice {
    /// The message leaves at its launch time.
    Strict,
    /// The message leaves at its launch time or earlier.
    Deadline,
}
