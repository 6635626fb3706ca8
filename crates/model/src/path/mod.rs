//! Paths between the ends: what a study asks for, how the ends find each other, and the proof of the path that messages
//! took.

mod discovery;
mod gates;
mod launch;
mod node;
mod police;
mod proof;
mod shaping;
mod spec;
mod vlan;

pub use discovery::{Discovery, DiscoveryFacts};
pub use gates::*;
pub use launch::LaunchQueueFact;
pub use node::*;
pub use police::*;
pub use proof::*;
pub use shaping::*;
pub use spec::{ExistingEnd, PathSpec, SwitchPorts, XdpMode};
pub use vlan::VlanSpec;
