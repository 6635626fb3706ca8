//! The place where an end (a measuring process) runs.

use crate::{ContainerSpec, DomainSpec, PodSpec, SshSpec, VmSpec};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A place where an end runs, as a study asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceSpec {
    /// All ends run in one measuring process.
    SameProcess,
    /// The end is a separate process in the network namespace of the controller.
    Process,
    /// The end is a separate process in a network namespace that is created for the end.
    Netns,
    /// The end is a separate process in an existing network namespace (a name of `ip netns` or a path). Tailbound
    /// changes only host settings in this namespace.
    ExistingNetns(String),
    /// The end runs on another host, which is reached by the user's own ssh.
    Ssh(SshSpec),
    /// The end runs in a pod of a Kubernetes cluster, which is created for the run.
    Pod(Box<PodSpec>),
    /// The end runs in a container of this host, which is created for the run.
    Container(Box<ContainerSpec>),
    /// The end runs in a virtual machine of this host, which is started for the run.
    Vm(Box<VmSpec>),
    /// The end runs in a libvirt domain that exists already.
    Domain(Box<DomainSpec>),
}

impl PlaceSpec {
    /// True if the place does not use the kernel of the controller's host.
    pub fn is_remote(&self) -> bool {
        matches!(self, PlaceSpec::Ssh(_) | PlaceSpec::Pod(_) | PlaceSpec::Vm(_) | PlaceSpec::Domain(_))
    }

    /// True if Tailbound must create the place or connect to it before a process can run at the place; an agent at the
    /// place then answers the requests of the lab ([`Ask`](crate::Ask)).
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
