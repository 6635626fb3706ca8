//! Places of ends.

use super::{ContainerKeys, DomainKeys, PodKeys, SshKeys, VmKeys};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Where an end of a trial runs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlaceChoice {
    /// Both ends of a trial share one process.
    SameProcess,
    /// The end is a separate process in the network namespace in which Tailbound was started.
    Process,
    /// The end is a separate process in a network namespace that is created for the end.
    Netns,
    /// The end is a separate process in an existing network namespace, given by its `ip netns` name or by a path.
    ExistingNetns(At<String>),
    /// The end runs on another host, which is reached by your own `ssh`.
    Ssh(SshKeys),
    /// The end runs in a pod of a Kubernetes cluster, which is created for the run and deleted after the run.
    Pod(Box<PodKeys>),
    /// The end runs in a container of this host, which is created for the run and removed after the run.
    Container(Box<ContainerKeys>),
    /// The end runs in a virtual machine of this host, which is started for the run and ended after the run.
    Vm(Box<VmKeys>),
    /// The end runs in an existing libvirt domain on this host, which is reached by your own `ssh` or over its
    /// virtio-serial channels.
    Domain(Box<DomainKeys>),
}
