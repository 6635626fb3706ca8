//! Quality of service in the words of DDS.

use super::Duration;
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Quality of service of all writers and readers of a trial.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Qos {
    /// Whether lost messages are sent again.
    pub reliability: Option<ReliabilityChoice>,
    /// How many messages are kept for an instance.
    pub history: Option<HistoryChoice>,
    /// What a reader that comes late still gets.
    pub durability: Option<DurabilityChoice>,
    /// Longest time between two messages that is promised.
    pub deadline: Option<At<Duration>>,
    /// Delay that the middleware may add in order to send less often.
    pub latency_budget: Option<At<Duration>>,
    /// Age at which a message is dropped.
    pub lifespan: Option<At<Duration>>,
    /// How it is found out that a writer is gone.
    pub liveliness: Option<LivelinessChoice>,
    /// Priority that the transport may use.
    pub transport_priority: Option<i32>,
}

/// Whether lost messages are sent again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReliabilityChoice {
    /// They are, until they are acknowledged.
    Reliable(ReliableKeys),
    /// They are not.
    BestEffort,
}

/// Options of `reliable`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReliableKeys {
    /// How long a write may wait for room.
    pub max_blocking_time: Option<At<Duration>>,
}

/// How many messages are kept.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HistoryChoice {
    /// All, as far as resources go.
    KeepAll,
    /// The last so many of an instance.
    #[schemars(example = 1)]
    KeepLast(At<u32>),
}

/// What a reader that comes late still gets.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DurabilityChoice {
    /// Nothing.
    Volatile,
    /// What the writer still holds.
    TransientLocal,
    /// What a service holds in memory.
    Transient,
    /// What a service holds on disk.
    Persistent,
}

/// How it is found out that a writer is gone.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LivelinessChoice {
    /// The middleware sees to it.
    Automatic(LeaseKeys),
    /// The participant says so.
    ManualByParticipant(LeaseKeys),
    /// Each writer says so.
    ManualByTopic(LeaseKeys),
}

/// Options of liveliness.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaseKeys {
    /// Silence after which the writer counts as gone.
    pub lease_duration: Option<At<Duration>>,
}
