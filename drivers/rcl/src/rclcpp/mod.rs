//! The driver `rclcpp`: nodes of the ROS 2 that is sourced, with executors and callbacks as its users write them.
//!
//! What needs the headers of ROS 2 is in `drivers/rclcpp`, a small library that `tailbound driver build rclcpp` compiles on the
//! machine of the user. Everything else is here: options, checks of the environment, QoS, and the end points of the driver table.

mod calls;
mod describe;
mod endpoint;
mod options;
mod query;
mod session;
mod shim;
mod taken;

pub use session::Session;
pub use shim::{LIBRARY, directory};
