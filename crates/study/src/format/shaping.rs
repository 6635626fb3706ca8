//! Keys of a study file for the shaping of the frames that the interface of an end sends.

use super::{GateClassKeys, ReplaceChoice};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Traffic classes of the interface of an end, with transmit queues of their own (queue discipline `mqprio`), and credits of some
/// of them (IEEE 802.1Qav, queue discipline `cbs`).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShapingKeys {
    /// The traffic classes, at most 16, in the order of their numbers, which begin at 0. One class may have no
    /// `priorities`: it has all those that the other classes do not name.
    pub classes: At<Vec<GateClassKeys>>,
    /// Credits of classes, by the name of the class. A class without credits is not shaped.
    #[serde(default)]
    pub credits: BTreeMap<String, At<CreditKeys>>,
    /// Whether a queue discipline that somebody has set up on the interface of `path: existing` is replaced for the trials, and
    /// restored afterwards. The kernel's default one is always replaced. Default: `no`.
    pub replace: Option<At<ReplaceChoice>>,
}

/// Credits of a traffic class (IEEE 802.1Qav).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreditKeys {
    /// Rate at which credit grows while frames wait: the share of the link that the class gets, kbit/s.
    pub idle_slope_kbit_s: At<i32>,
    /// Rate at which credit changes while a frame is sent, kbit/s, below 0. Default: the idle slope minus the speed of the link.
    pub send_slope_kbit_s: Option<At<i32>>,
    /// Largest credit, bytes. Default: what grows while the largest other frame is sent.
    pub high_credit_bytes: Option<At<i32>>,
    /// Smallest credit, bytes, below 0. Default: what the largest frame of the class needs.
    pub low_credit_bytes: Option<At<i32>>,
}
