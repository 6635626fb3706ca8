//! Labs: the places of a trial, the path that joins them, and the check that the path carries datagrams.
//!
//! In: a [`LabSpec`] (path and places, from the plan) and the journal. Out: for each end its interface, address and
//! driver options ([`EndNet`]), commands that start inside the end's network namespace, [`PathFacts`] and counters. It
//! knows nothing of drivers, agents, samples or records.
//!
//! Everything that is made lies in network namespaces without a name, held open only by descriptors of this process and
//! by the processes started inside: the namespace of the controller is never touched, and the kernel removes all of it
//! once those processes are gone, also after SIGKILL. What the user has set up (`existing`) is only read here.
//!
//! An end may be on another host ([`Far`]), which answers for itself ([`Answers`]) what the lab asks of it
//! ([`tailbound_model::Ask`]): this host is asked in the same way. How such a host is reached is somebody else's matter.
//!
//! Five verbs: [`LabSpec::check`] before anything is made, [`Lab::up`], [`Lab::probe`], [`Lab::counters`],
//! [`Lab::down`]; [`LabSpec::describe`] prints the very steps that `up` takes.
//!
//! [`PathFacts`]: tailbound_model::PathFacts

mod answer;
mod apply;
mod check;
mod counters;
mod end;
mod error;
mod existing;
mod interface;
mod lab;
mod links;
mod netem;
mod netlink;
pub mod netns;
mod probe;
mod site;
mod spec;
mod step;
pub mod under;
pub mod userns;
mod verify;
mod vlan;
mod way;

pub use answer::Answers;
pub use counters::{THROTTLED_NS, THROTTLED_TIMES};
pub use end::EndNet;
pub use error::{LabError, Lack};
pub use existing::Hosts;
pub use interface::{interfaces_here, interfaces_of};
pub use lab::Lab;
pub use site::Far;
pub use spec::LabSpec;
pub use userns::Privilege;
pub use way::{Begin, way};
