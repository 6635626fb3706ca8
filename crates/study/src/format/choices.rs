//! Choices of a study that need no module of their own: collection of samples, context switches, discovery.

use crate::read::At;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;

/// When the ends send the samples to the controller.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CollectChoice {
    /// The ends send the samples to the controller after the trial.
    After,
    /// Samples are sent to the controller during the trial, by a thread on a CPU that is not measured. A trial may then
    /// have more samples than fit into memory.
    Live,
}

/// Which events of the kernel are recorded, to find out why messages were late.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AttributionChoice {
    /// The level `packets` if it costs at most a fifth of a message, else `machine` if it costs at most a tenth, which
    /// Tailbound measures before the trial, and if it is permitted; otherwise the level `threads`.
    Auto,
    /// Context switches, wake-ups, interrupts and soft interrupts of the CPUs of the ends are recorded. This needs root,
    /// or the capabilities CAP_PERFMON and CAP_BPF.
    Machine,
    /// As `machine`; also the way of each message through queue disciplines, devices, soft interrupts and sockets of this
    /// host. This needs root, or the capabilities CAP_PERFMON and CAP_BPF, and the tracer.
    Packets,
    /// Context switches and wake-ups are recorded: of all threads on the CPUs of the ends if that is permitted,
    /// otherwise context switches of the ends' threads alone.
    Threads,
    /// No events of the kernel are recorded.
    Off,
    /// Same as `auto`, as in studies for earlier releases.
    On,
}

/// The level of `attribution`, alone or in a map with the check of its cost. The map is replaced by its level before the
/// study is read.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(transparent)]
pub(crate) struct AttributionKey(pub AttributionChoice);

impl JsonSchema for AttributionKey {
    fn schema_name() -> Cow<'static, str> {
        "AttributionKey".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let words = generator.subschema_for::<AttributionChoice>();
        let keys = AttributionKeys::json_schema(generator);
        json_schema!({ "oneOf": [words, keys] })
    }
}

/// Which events of the kernel are recorded, and whether the cost of the recording is checked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributionKeys {
    /// Which events of the kernel are recorded. Default: `auto`.
    pub level: Option<At<AttributionChoice>>,
    /// Whether each condition is also run without the recording, in the same random order, so that the report gives the
    /// overhead of the recording with its interval. The conditions without the recording are conditions of their own.
    /// Default: `off`.
    pub check: Option<At<CheckChoice>>,
}

/// Whether the cost of the recording is checked.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CheckChoice {
    /// Each condition is run with and without the recording.
    On,
    /// The conditions are run with the recording only.
    Off,
}

/// How the ends of a trial find each other.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DiscoveryChoice {
    /// Each driver gets the addresses of the other ends, and uses multicast too, unless the path check has shown that
    /// multicast does not pass.
    Auto,
    /// The ends find each other by multicast only.
    Multicast,
    /// Each driver gets the addresses of the other ends and does not use multicast.
    Peers,
    /// Each driver gets a DNS name instead of addresses and does not use multicast. Both ends must be pods, and
    /// Tailbound creates a headless Service for them; the cluster's DNS resolves the Service's name to the addresses of
    /// all pods.
    Dns,
    /// A discovery server informs each end about the other ends. Both ends must be pods, and Tailbound creates the
    /// server in the pods' cluster. Only for drivers with the option `discovery_server`.
    Server,
}
