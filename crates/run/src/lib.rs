//! Running a plan: the controller, the agents, the schedule and the hot loops.
//!
//! What goes in: a plan. What comes out: a record. Statistics are none of its business.
//!
//! ```text
//! controller (tokio, one thread) --frames--> agent (supervisor) --frames--> measuring process
//!                                                   '------- sample memory -------'
//! ```
//! The supervisor and, on one host, the controller hold the sample memory too: whoever of the three is killed, the
//! samples are saved by another.

pub mod agent;
pub mod births;
pub mod controller;
pub mod govern;
pub mod hot;
mod live;
pub mod load;
pub mod measure;
mod pipe;
mod store;
pub mod vendor;

pub use controller::{Progress, ProgressEvent, RunError, RunOptions, dry_run, run};
