//! Existing domains (virtual machines) of libvirt, used by the program `virsh`.
//!
//! Input: the connection to libvirt, the name of a libvirt domain, and the scheduling of its threads. Output: facts
//! about the libvirt domain, and its threads with the requested scheduling, read back. The undo of each change is
//! written to the journal before the change. CPUs are set by libvirt in the running libvirt domain (`--live`, the
//! definition of the libvirt domain is not changed), because libvirt remembers them. Policies are set directly on the
//! threads, because libvirt sets policies only when a libvirt domain starts.

mod apply;
mod domain;
mod error;
mod facts;
mod state;
mod threads;

pub use crate::virsh::VirshError;
pub use domain::Domain;
pub use error::DomainError;
pub use state::DomainState;
pub use threads::DomainThreads;
