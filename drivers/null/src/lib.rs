//! The `null` driver: a network inside the process, whose latencies are known.
//!
//! Input: calls of the driver table. Output: samples that go from writer to reader inside the process, immediately
//! (`clock=real`), or after delays, losses and stalls that a script sets in virtual time (`clock=scripted`). The driver
//! is used to calibrate Tailbound, and to measure the overhead of Tailbound itself. The driver knows no host type
//! except the ABI.
//!
//! - `clock=real`: `send` calls the listeners of the topic in the sender's thread with the sender's memory; nothing is
//!   allocated, copied or locked. Readers in other modes have a queue.
//! - `clock=scripted`: each domain has one thread, one queue of events and one virtual clock; see [`script`] for the
//!   format of scripts and for the functions with which a test computes the true values independently.

mod endpoint;
mod endpoints;
mod lock;
mod network;
mod options;
mod query;
mod queue;
mod real;
pub mod script;
mod session;
mod topic;
mod world;

use tailbound_abi::{side, tb_driver};

static TABLE: tb_driver = side::table::<session::Session>();

/// Returns the driver table of `null`, which is constant until the process ends.
pub fn table() -> *const tb_driver {
    &raw const TABLE
}
