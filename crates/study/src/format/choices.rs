//! Choices of a study that need no module of their own: collection of samples, context switches, discovery.

use schemars::JsonSchema;
use serde::Deserialize;

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

/// Whether context switches are recorded, to find out why the worst messages were late.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AttributionChoice {
    /// Context switches are recorded: of all threads on the CPUs of the ends if that is allowed, otherwise only of the
    /// ends' threads.
    On,
    /// Context switches of threads are not recorded.
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
