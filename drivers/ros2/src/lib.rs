//! The `ros2` driver: a real ROS 2 node, by the crate `ros2-client` over the DDS implementation RustDDS.
//!
//! What goes in: calls of the driver table. What comes out: samples, statuses and JSON. It knows nothing of studies,
//! pacing, clocks or records.
//!
//! Each session is a ROS 2 context with one node; writers and readers are publishers and subscriptions of that node, so
//! that other programs of ROS 2 see both in their graph. Topic `rt/<topic>`, type `tailbound_msgs/msg/Sample` with the
//! members `uint64 seq` and `uint8[] payload`: what the other DDS drivers send with `naming=ros2`, octet for octet.

mod describe;
mod endpoint;
mod events;
mod graph;
mod options;
mod qos;
mod query;
mod sample;
mod session;
mod wait;

use tailbound_abi::{side, tb_driver};

static TABLE: tb_driver = side::table::<session::Session>();

/// Entry point of the driver ABI, version 1.
#[unsafe(no_mangle)]
pub extern "C" fn tailbound_driver_v1() -> *const tb_driver {
    &raw const TABLE
}
