//! A container of this host as a place, that is, as a location where an end runs.

use crate::CpuList;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A container that is created for the run and removed after the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// Name of the container; by default the name of the end. Ends whose containers have the same name and equal
    /// settings share one container.
    pub name: String,
    /// Program that creates the container; if absent, the first installed program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ContainerClient>,
    /// Container image that contains Tailbound; if absent, `localhost/tailbound:RELEASE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Network that the container uses.
    #[serde(default)]
    pub network: ContainerNetwork,
    /// CPUs of the container's control group; if absent, all CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuList>,
    /// Memory limit of the container's control group in MiB; if absent, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Capabilities, without `CAP_`, in addition to the capabilities that the container program gives by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

/// The network that a container uses: the network of the host, or a separate network.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerNetwork {
    /// The container uses the network namespace of the host.
    Host,
    /// An empty network namespace, in which the lab makes its path.
    #[default]
    None,
    /// A network that was created earlier with the container program, given by its name.
    Named(String),
}

/// A program that creates containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerClient {
    /// Container program: podman.
    Podman,
    /// Container program: ctr, the client of containerd.
    Ctr,
}

impl ContainerClient {
    /// All container programs, in the order in which Tailbound looks for an installed program.
    pub const ALL: [ContainerClient; 2] = [ContainerClient::Podman, ContainerClient::Ctr];

    /// File name of the container program, e.g. `podman`.
    pub fn program(self) -> &'static str {
        match self {
            ContainerClient::Podman => "podman",
            ContainerClient::Ctr => "ctr",
        }
    }
}

/// A program that creates containers (for example `podman`), with the environment variables that decide which
/// containers it finds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerAccess {
    /// The program with which Tailbound creates containers.
    pub client: ContainerClient,
    /// Environment variables that the container program reads, with their values.
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
