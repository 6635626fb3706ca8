//! Keys of a study file for the gates of the interface of an end.

use super::Duration;
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Gates of the interface of an end (IEEE 802.1Q, time-aware shaping): a schedule opens and closes the gate of each traffic
/// class.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GatesKeys {
    /// What opens and closes the gates. Default: `software`.
    pub by: Option<GatesByChoice>,
    /// The traffic classes, at most 16, in the order of their numbers, which begin at 0. One class may have no
    /// `priorities`: it has all those that the other classes do not name.
    pub classes: Option<At<Vec<GateClassKeys>>>,
    /// The gate control list: which gates are open, and for how long, one entry after another.
    pub entries: Option<At<Vec<GateEntryKeys>>>,
    /// Time after which the list begins again. Default: the sum of the entries.
    pub cycle: Option<At<Duration>>,
    /// The schedule begins this time after a whole second of TAI (CLOCK_TAI); with `by: offload`, of the hardware clock of the
    /// network card. Default: 0 s.
    pub base: Option<At<Duration>>,
    /// Whether a queue discipline that somebody has set up on the interface of `path: existing` is replaced for the trials, and
    /// restored afterwards. The kernel's default one is always replaced. Default: `no`.
    pub replace: Option<At<ReplaceChoice>>,
}

/// Whether a queue discipline of the user is replaced for the trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReplaceChoice {
    /// A queue discipline of the user is replaced for the trials, and restored afterwards.
    Yes,
    /// A queue discipline of the user is an error.
    No,
}

/// What opens and closes the gates of an interface.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum GatesByChoice {
    /// The queue discipline `taprio` of the kernel, by a timer.
    Software,
    /// The queue discipline `taprio` gives each frame a launch time within its window (txtime-assist), at which the queue discipline
    /// `etf` sends it. Without a network card that launches frames, they leave up to `ahead` too early.
    Assist(AssistKeys),
    /// The network card opens and closes the gates by its hardware clock (full offload of `taprio`), on an interface of
    /// `path: existing`. A driver that cannot do this refuses.
    Offload,
    /// What was set up before: the gates of the interface of `path: existing` are read, and nothing is changed. The other keys have no
    /// effect and are refused.
    Existing,
}

/// Launch times of frames by `taprio`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssistKeys {
    /// Time before its launch time at which a frame is given to the device (`delta` of tc-etf(8)). Default: 300 us.
    pub ahead: Option<At<Duration>>,
}

/// A traffic class of an interface.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateClassKeys {
    /// Name of the class, for the entries.
    pub name: At<String>,
    /// Priorities (SO_PRIORITY, 0 to 15) of the sockets whose frames belong to the class.
    pub priorities: Option<At<Vec<At<u32>>>>,
    /// Number of transmit queues of the class, 1 to 16. Default: 1.
    #[schemars(range(min = 1, max = 16))]
    pub queues: Option<At<u32>>,
    /// Whether frames of other classes may interrupt a frame of the class while the network card sends it (frame preemption, IEEE
    /// 802.1Qbu). Only for gates with `by: offload`, because only a network card can interrupt a frame. Never run on a card.
    /// Default: `no`.
    pub preemptible: Option<At<PreemptibleChoice>>,
}

/// Whether frames of a traffic class are preemptible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PreemptibleChoice {
    /// Frames of other classes may interrupt a frame of the class.
    Yes,
    /// A frame of the class is sent as a whole, and may interrupt frames of preemptible classes (express frame).
    No,
}

/// An entry of a gate control list.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateEntryKeys {
    /// Names of the classes whose gates are open.
    pub open: At<Vec<At<String>>>,
    /// Time for which the entry is in force.
    #[serde(rename = "for")]
    pub time: At<Duration>,
}
