//! Places of ends: processes, other hosts, containers, pods, guests.

mod container;
mod guest;
mod pod;
mod spec;
mod ssh;
mod vm;

pub use container::{ContainerAccess, ContainerClient, ContainerNetwork, ContainerSpec};
pub use guest::*;
pub use pod::{ClusterAnswer, NameOrder, NodeChoice, PodMade, PodOrder, PodSpec, Pull, ServerOrder};
pub use spec::PlaceSpec;
pub use ssh::SshSpec;
pub use vm::{Accelerator, DomainSpec, KernelChoice, VmChannel, VmSpec};
