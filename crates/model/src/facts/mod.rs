//! Facts about hosts, paths and interfaces.

mod fact;
mod interface;
mod security;

pub use fact::{
    Attached, AttachedInterface, ClockOffset, Fact, FactValue, HostFacts, InvalidWindow, PathEnd, PathFacts,
};
pub use interface::{BridgeState, Interface};
pub use security::SecurityFacts;
