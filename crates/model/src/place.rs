//! Where an end runs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A place as a study names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceSpec {
    /// Together with the other ends in one process.
    SameProcess,
    /// A process of its own in the network namespace of the controller.
    Process,
    /// A process of its own in a network namespace made for it.
    Netns,
    /// A process of its own in a network namespace that exists already (`ip netns` name or a path); changed by
    /// nothing but settings of the host.
    ExistingNetns(String),
}

impl fmt::Display for PlaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceSpec::SameProcess => f.write_str("same-process"),
            PlaceSpec::Process => f.write_str("process"),
            PlaceSpec::Netns => f.write_str("netns"),
            PlaceSpec::ExistingNetns(name) => write!(f, "existing netns {name}"),
        }
    }
}
