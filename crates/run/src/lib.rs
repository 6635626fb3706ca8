//! Runs a plan of trials: contains the controller, the agents, the schedule and the hot loops.
//!
//! The input is a plan, the output a record. This crate computes no statistics.
//!
//! ```text
//! controller (tokio, one thread) --frames--> agent (supervisor) --frames--> measuring process
//!                                                   '------- sample memory -------'
//! ```
//! The supervisor and a controller on the same host also map the sample memory. If one of the three processes is
//! killed, another process saves the samples.

pub mod agent;
mod cause_numbers;
mod clock_watch;
mod connection;
pub mod controller;
mod creation_list;
mod end_plan;
mod host_problems;
pub mod hot;
mod kept_windows;
mod live_collect;
pub mod load;
pub mod log;
pub mod measure;
mod priorities;
mod scratch;
mod security_files;
mod store;
pub mod thread_creation;
pub mod thread_policy;
pub mod vendor_threads;

pub use controller::{KnownCause, KnownCauses, LateSoFar, Progress, ProgressEvent, RunError, RunOptions, dry_run, run};
pub use priorities::priorities_behind;
