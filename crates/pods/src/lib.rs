//! Pods of a Kubernetes cluster as places: how they are made, reached, watched and removed.
//!
//! In: a [`PodSpec`](tailbound_model::PodSpec) of the plan, and what the run wants of the pod. Out: a pod that runs, two
//! streams to any process in it, the reason when it cannot run or runs no more, and what the cluster tells of it; or the
//! address of a service for all pods of a run. Nothing here knows agents, labs or what goes over the streams.

mod cluster;
mod config;
mod error;
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
pub use error::PodError;
pub use exec::{ExecInput, ExecOutput};
pub use facts::{Asked, unenforced};
pub use leftovers::Leftover;
pub use name::NameRequest;
pub use object::{MANAGED_BY, PodRequest, RUN_LABEL, TOKEN_LABEL};
pub use pod::Pod;
pub use rights::{RIGHTS, Right};
pub use service::ServiceRequest;
