//! A container of this host as a place.

use crate::CpuList;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A container that is made for the run, and removed after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// Ends whose container has the same name and is otherwise equal share it; by default the name of the end.
    pub name: String,
    /// Which program makes it; absent = the first that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ContainerClient>,
    /// Image with Tailbound; absent = `localhost/tailbound:RELEASE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Its network.
    #[serde(default)]
    pub network: ContainerNetwork,
    /// CPUs of its control group; absent = all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuList>,
    /// Memory of its control group, MiB; absent = no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Capabilities beside those that its client gives by default, without `CAP_`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

/// The network of a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerNetwork {
    /// That of the host.
    Host,
    /// A network namespace with nothing in it: the lab makes its path into it.
    #[default]
    None,
    /// A network that the client knows by this name.
    Named(String),
}

/// A program by which containers are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerClient {
    /// podman.
    Podman,
    /// ctr, the client of containerd.
    Ctr,
}

impl ContainerClient {
    /// All, in the order in which they are looked for.
    pub const ALL: [ContainerClient; 2] = [ContainerClient::Podman, ContainerClient::Ctr];

    /// Its program.
    pub fn program(self) -> &'static str {
        match self {
            ContainerClient::Podman => "podman",
            ContainerClient::Ctr => "ctr",
        }
    }
}

/// A client with the part of its environment that says which containers it knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerAccess {
    /// The program.
    pub client: ContainerClient,
    /// Variables that it reads, as they were set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

impl fmt::Display for ContainerNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContainerNetwork::Host => f.write_str("network host"),
            ContainerNetwork::None => f.write_str("network none"),
            ContainerNetwork::Named(name) => write!(f, "network {name}"),
        }
    }
}

impl fmt::Display for ContainerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container {} ({}", self.name, self.network)?;
        if let Some(cpus) = &self.cpus {
            write!(f, ", CPUs {cpus}")?;
        }
        if let Some(mib) = self.memory_mib {
            write!(f, ", {mib} MiB")?;
        }
        f.write_str(")")
    }
}
