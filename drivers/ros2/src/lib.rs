//! The `ros2` driver: a real ROS 2 node, made by the crate `ros2-client` on the DDS implementation RustDDS.
//!
//! Input: calls of the driver table. Output: samples, statuses and JSON. The driver knows nothing of studies, pacing,
//! clocks or records.
//!
//! Each session is a ROS 2 context with one node. Writers and readers are publishers and subscriptions of the node, so
//! other ROS 2 programs see them in their graph. The topic is `rt/<topic>` and the type `tailbound_msgs/msg/Sample`
//! with the members `uint64 seq` and `uint8[] payload`: the bytes are the same that the other DDS drivers send with
//! `naming=ros2`.

mod calls;
mod deadline;
mod describe;
mod endpoint;
mod error;
mod events;
mod flag;
mod graph;
mod options;
mod qos;
mod query;
mod sample;
mod session;
mod wait;

use tailbound_abi::{side, tb_driver};

static TABLE: tb_driver = side::table::<session::Session>();

/// Entry point of the driver ABI, version 1: returns the driver's table.
#[unsafe(no_mangle)]
pub extern "C" fn tailbound_driver_v1() -> *const tb_driver {
    &raw const TABLE
}
