//! Quality-of-service policies (QoS) with the terms of DDS.

use super::Duration;
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Quality-of-service policies of all writers and readers of a trial.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Qos {
    /// Reliability: whether lost messages are sent again.
    pub reliability: Option<ReliabilityChoice>,
    /// History: number of messages that are kept for an instance.
    pub history: Option<HistoryChoice>,
    /// Durability: which earlier messages a late-joining reader gets.
    pub durability: Option<DurabilityChoice>,
    /// Deadline: longest time between two messages that the writer promises.
    pub deadline: Option<At<Duration>>,
    /// Latency budget: delay that the middleware may add to a message in order to send less often.
    pub latency_budget: Option<At<Duration>>,
    /// Lifespan: age at which a message is dropped.
    pub lifespan: Option<At<Duration>>,
    /// Liveliness: how readers detect that a writer no longer exists.
    pub liveliness: Option<LivelinessChoice>,
    /// Transport priority: priority of messages that the transport may use.
    pub transport_priority: Option<i32>,
}

/// Reliability: whether lost messages are sent again.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReliabilityChoice {
    /// The writer sends lost messages again, until they are acknowledged.
    Reliable(ReliableKeys),
    /// Lost messages are not sent again.
    BestEffort,
}

/// Options of the reliability `reliable`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReliableKeys {
    /// Longest time for which a write call may wait for space in the writer's history.
    pub max_blocking_time: Option<At<Duration>>,
}

/// History: number of messages that are kept for an instance.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HistoryChoice {
    /// The history keeps all messages, as far as resources permit.
    KeepAll,
    /// The history keeps this number of the latest messages of an instance.
    #[schemars(example = 1)]
    KeepLast(At<u32>),
}

/// Durability: which earlier messages a late-joining reader gets.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DurabilityChoice {
    /// A late-joining reader gets no earlier messages.
    Volatile,
    /// A late-joining reader gets the messages that the writer still keeps.
    TransientLocal,
    /// A late-joining reader gets the messages that a service keeps in memory.
    Transient,
    /// A late-joining reader gets the messages that a service keeps on disk.
    Persistent,
}

/// Liveliness: how readers detect that a writer no longer exists.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LivelinessChoice {
    /// The middleware reports automatically that the writer exists.
    Automatic(LeaseKeys),
    /// The participant reports that its writers exist.
    ManualByParticipant(LeaseKeys),
    /// Each writer itself reports that the writer exists.
    ManualByTopic(LeaseKeys),
}

/// Options of liveliness: how a writer proves that it still exists.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaseKeys {
    /// Time without a liveliness report after which the writer counts as lost.
    pub lease_duration: Option<At<Duration>>,
}
