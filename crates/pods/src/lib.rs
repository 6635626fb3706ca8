//! Pods of a Kubernetes cluster as places: creates, reaches, watches and removes them.
//!
//! Input: a [`PodSpec`](tailbound_model::PodSpec) of the plan, and the run's request for the pod. Output: a running
//! pod, the standard streams of any process in the pod, the reason why the pod cannot run or no longer runs, and facts
//! that the cluster reports about the pod; or the address of a service for all pods of a run. The crate knows nothing
//! of agents, labs or the contents of the streams.

mod cluster;
mod config;
mod exec;
mod explain;
mod facts;
mod leftovers;
mod name;
mod object;
mod observer;
mod pod;
mod rights;
mod service;
mod start;

pub use cluster::Cluster;
pub use exec::{ExecInput, ExecOutput};
pub use facts::{Asked, unenforced};
pub use leftovers::Leftover;
pub use name::NameRequest;
pub use object::{MANAGED_BY, PodRequest, RUN_LABEL, TOKEN_LABEL};
pub use pod::Pod;
pub use rights::{RIGHTS, Right};
pub use service::ServiceRequest;
