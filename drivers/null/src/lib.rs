//! The `null` driver: an in-process network whose latencies are known.
//!
//! In: the calls of the driver table. Out: samples, handed from writer to reader inside the process, at once
//! (`clock=real`) or after delays, losses and stalls that a script fixes in virtual time (`clock=scripted`). It is what
//! the instrument is calibrated against, and the measure of the instrument's own cost. It knows no host type but the ABI.
//!
//! - `clock=real`: `send` calls the listener readers of the topic in the sender's thread with the sender's own octets;
//!   nothing is allocated, copied or locked. Readers of the other modes have a queue.
//! - `clock=scripted`: one thread, one queue of events and one virtual clock per domain; see [`script`] for the format and
//!   for the functions by which a test computes the truth on its own.

mod endpoint;
mod network;
mod options;
mod query;
mod queue;
mod real;
pub mod script;
mod session;
mod world;

use tailbound_abi::{side, tb_driver};

static TABLE: tb_driver = side::table::<session::Session>();

/// The driver table of `null`; constant for the life of the process.
pub fn table() -> *const tb_driver {
    &raw const TABLE
}
