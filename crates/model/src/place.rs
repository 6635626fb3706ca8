//! Where an end runs.

use crate::{ContainerSpec, DomainSpec, PodSpec, VmSpec};
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
    /// On another host, reached by the user's own ssh.
    Ssh(SshSpec),
    /// In a pod of a Kubernetes cluster, made for the run.
    Pod(Box<PodSpec>),
    /// In a container of this host, made for the run.
    Container(Box<ContainerSpec>),
    /// In a virtual machine of this host, started for the run.
    Vm(Box<VmSpec>),
    /// In a domain of libvirt that exists already.
    Domain(Box<DomainSpec>),
}

/// Another host, as ssh reaches it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SshSpec {
    /// What `ssh` is called with: a name of its configuration, `user@host`.
    pub host: String,
    /// Directory there for the bundle; absent = `$XDG_CACHE_HOME/tailbound` there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// A Tailbound that is installed there is used instead of a bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The bundle is removed after the run.
    #[serde(default)]
    pub remove: bool,
}

impl PlaceSpec {
    /// It has a kernel other than that of the controller's host.
    pub fn is_remote(&self) -> bool {
        matches!(self, PlaceSpec::Ssh(_) | PlaceSpec::Pod(_) | PlaceSpec::Vm(_) | PlaceSpec::Domain(_))
    }

    /// It is not there for a process of this host before it was reached or made, and answers for itself then.
    pub fn is_reached(&self) -> bool {
        self.is_remote() || matches!(self, PlaceSpec::Container(_))
    }
}

impl fmt::Display for PlaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceSpec::SameProcess => f.write_str("same-process"),
            PlaceSpec::Process => f.write_str("process"),
            PlaceSpec::Netns => f.write_str("netns"),
            PlaceSpec::ExistingNetns(name) => write!(f, "existing netns {name}"),
            PlaceSpec::Ssh(ssh) => write!(f, "ssh {}", ssh.host),
            PlaceSpec::Pod(pod) => write!(f, "{pod}"),
            PlaceSpec::Container(container) => write!(f, "{container}"),
            PlaceSpec::Vm(vm) => write!(f, "{vm}"),
            PlaceSpec::Domain(domain) => write!(f, "{domain}"),
        }
    }
}
