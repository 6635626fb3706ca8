//! The `iceoryx2` driver: shared memory of one host by Eclipse iceoryx2, without a daemon and without a thread of its own.
//!
//! Input: calls of the driver table. Output: samples and JSON. The driver knows nothing of studies, pacing, clocks or
//! records.
//!
//! Each session is one node. A topic is a service for messages (publish-subscribe) and, for readers that block, a service for
//! events. The payload is a slice of bytes in the memory of the writer, and the sequence number is the user header. A writer
//! copies the payload once, into that memory; readers read it there.

mod calls;
mod describe;
mod endpoint;
mod node;
mod options;
mod qos;
mod query;
mod reader;
mod service;
mod session;
mod wait;
mod writer;

// The same sources as in the driver `ros2`, which waits on descriptors too.
#[path = "../../ros2/src/deadline.rs"]
mod deadline;
#[path = "../../ros2/src/error.rs"]
mod error;
#[path = "../../ros2/src/flag.rs"]
mod flag;

use tailbound_abi::{side, tb_driver};

static TABLE: tb_driver = side::table::<session::Session>();

/// Entry point of the driver ABI, version 1: returns the driver's table.
#[unsafe(no_mangle)]
pub extern "C" fn tailbound_driver_v1() -> *const tb_driver {
    &raw const TABLE
}
