//! Labs: the places of a trial, the path that joins them, and the check that the path carries datagrams.
//!
//! Input: a [`LabSpec`] (path and places, from the plan) and the journal. Output: for each end its interface, address
//! and driver options ([`EndNet`]), commands that start inside the end's network namespace, [`PathFacts`] and counters.
//! This crate knows nothing of drivers, agents, samples or records.
//!
//! All interfaces that a lab makes lie in network namespaces without a name, kept open only by descriptors of this
//! process and by the processes started inside. The namespace of the controller is not changed, and the kernel removes
//! the lab when these processes have ended, also after SIGKILL. An existing path is only read, except the
//! queue disciplines of interfaces whose gates, traffic classes or launch times a study sets: the journal has what was there
//! before.
//!
//! An end can be on another host ([`Far`]). The lab sends requests ([`tailbound_model::Ask`]) to the host of each end,
//! and the code that answers the requests ([`Answers`]) is the same for this host and for other hosts. The caller
//! connects to other hosts.
//!
//! Five operations: [`LabSpec::check`] before anything is made, [`Lab::up`], [`Lab::probe`], [`Lab::counters`],
//! [`Lab::down`]. [`LabSpec::describe`] prints the same steps that `up` executes.
//!
//! [`PathFacts`]: tailbound_model::PathFacts

mod answer;
mod apply;
mod check;
mod counters;
mod datagram_socket;
mod end;
mod error;
mod existing;
mod failure;
mod gates;
mod hops;
mod interface;
mod lab;
mod launch;
mod links;
mod lookup;
mod netem;
mod netlink;
pub mod netns;
mod police;
mod preemption;
mod probe;
mod qdisc;
mod replaced;
mod rooms;
mod shaping;
mod site;
mod spec;
mod step;
mod user_interface;
pub mod userns;
mod verify;
mod vlan;
mod wanted;

pub mod wiring;

pub use answer::Answers;
pub use counters::{THROTTLED_NS, THROTTLED_TIMES};
pub use end::EndNet;
pub use error::LabError;
pub use existing::Hosts;
pub use hops::{HopsStart, hops};
pub use interface::{interfaces_here, interfaces_of};
pub use lab::Lab;
pub use site::Far;
pub use spec::LabSpec;
pub use userns::Privilege;
