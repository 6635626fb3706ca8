//! The drivers of the ROS 2 that is sourced: `rcl`, by its C library, without an executor; and `rclcpp`, with executors.
//!
//! Input: calls of the driver table. Output: samples, statuses and JSON. The driver knows nothing of studies, pacing,
//! clocks or records.
//!
//! No header and no library of ROS 2 is needed to build the driver `rcl`: its functions are found by name when a session is opened
//! (`dlopen`), so that one driver serves every distribution from Humble on, with any middleware of ROS 2 (RMW). Where
//! distributions have structures of different sizes, the driver gives them more room, and verifies that nothing is written
//! beyond it.
//!
//! Messages of `rcl` are serialized `std_msgs/msg/UInt8MultiArray`. The first 8 of their bytes are the sequence number, the others the
//! payload.

mod calls;
mod context;
mod deadline;
mod describe;
mod endpoint;
mod entity;
mod environment;
mod facts;
mod guarded;
mod library;
mod listen;
mod log;
mod message;
mod options;
mod probe;
mod qos;
mod query;
mod rclcpp;
mod reader;
mod session;
mod set;
mod types;
mod until;
mod wait;

use tailbound_abi::{side, tb_driver};

/// What is known of the ROS 2 that is sourced, without loading it.
pub mod sourced {
    pub use crate::environment::{distribution, lacks, version};
    pub use crate::rclcpp::directory as rclcpp_directory;
}

pub use rclcpp::LIBRARY as RCLCPP_LIBRARY;

static TABLE: tb_driver = side::table::<session::Session>();
static RCLCPP: tb_driver = side::table::<rclcpp::Session>();

/// Returns the driver table of `rcl`, which is constant until the process ends.
pub fn table() -> *const tb_driver {
    &raw const TABLE
}

/// Returns the driver table of `rclcpp`, which is constant until the process ends.
pub fn rclcpp_table() -> *const tb_driver {
    &raw const RCLCPP
}
