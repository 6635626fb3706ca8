//! The `zenoh` driver: publishers and subscribers of Eclipse zenoh, between peers or through a router.
//!
//! Input: calls of the driver table. Output: samples and JSON. The driver knows nothing of studies, pacing, clocks or
//! records.
//!
//! A payload is put with its sequence number in front (8 bytes, little-endian). End points are counted by liveliness tokens,
//! because a publisher of zenoh only knows whether there is a subscriber. Scouting by multicast is off: the first session at an
//! address listens on the port of the domain; sessions at larger addresses, and further ones at the same address, connect to it,
//! and learn about each other (gossip).

mod alive;
mod calls;
mod describe;
mod endpoint;
mod event;
mod message;
mod network;
mod options;
mod qos;
mod query;
mod queue;
mod reader;
mod session;
mod wait;
mod writer;

// The same source as in the driver `ros2`.
#[path = "../../ros2/src/deadline.rs"]
mod deadline;

use tailbound_abi::{side, tb_driver};

static TABLE: tb_driver = side::table::<session::Session>();

/// Entry point of the driver ABI, version 1: returns the driver's table.
#[unsafe(no_mangle)]
pub extern "C" fn tailbound_driver_v1() -> *const tb_driver {
    &raw const TABLE
}
