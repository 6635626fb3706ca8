//! The `udp` driver: plain datagrams over IPv4 or IPv6, the smallest basis for any middleware.
//!
//! Input: calls of the driver table. Output: one datagram for each sample and reader, with eight bytes of sequence
//! number (little endian) and the payload. During a measurement nothing else is sent, and there is one system call for
//! each message and direction. The driver knows no host type except the ABI.
//!
//! - Ports follow from domain and topic ([`wire`]), so nothing must be configured. Before matching, a writer asks the
//!   candidate ports of its peers for the topic, and a reader answers. After that there is no background traffic, and
//!   the only threads are the receive thread of a listener, and, with `timestamps: stages` or `hardware`, the one that reads the
//!   stamps of sent messages ([`stamps`]).
//! - `block`: `wait` blocks in `recvmsg`, and `take` returns the datagram without another system call.
//! - `spin`: `take` is a `recvmsg` that does not block. `listener`: each reader has a thread `tb-udp-rx`.

mod buffers;
mod discovery;
mod endpoint;
mod endpoints;
mod error;
mod lock;
mod net;
mod options;
mod query;
mod reader;
mod session;
mod socket;
mod stamps;
mod wait;
mod wire;
mod writer;

use tailbound_abi::{side, tb_driver};

static TABLE: tb_driver = side::table::<session::Session>();

/// Returns the driver table of `udp`, which is constant until the process ends.
pub fn table() -> *const tb_driver {
    &raw const TABLE
}
