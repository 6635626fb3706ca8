//! The `udp` driver: plain datagrams over IPv4 or IPv6, the least that can lie under any middleware.
//!
//! In: the calls of the driver table. Out: one datagram per sample and reader, eight octets of sequence number (little
//! endian) and the payload, nothing else on the wire while measuring. One system call per message and direction. It knows
//! no host type but the ABI.
//!
//! - Ports follow from domain and topic ([`wire`]), so nothing is configured. Before matching, a writer asks the candidate
//!   ports of its peers for the topic, a reader answers; after that there is no background traffic and no thread but the
//!   receive thread of a listener.
//! - `block`: `wait` itself blocks in `recvmsg` and `take` hands the datagram out without another system call.
//! - `spin`: `take` is a `recvmsg` that does not block. `listener`: a thread `tb-udp-rx` per reader.

mod discovery;
mod endpoint;
mod error;
mod net;
mod options;
mod query;
mod reader;
mod receive;
mod session;
mod wait;
mod wire;
mod writer;

use tailbound_abi::{side, tb_driver};

static TABLE: tb_driver = side::table::<session::Session>();

/// The driver table of `udp`; constant for the life of the process.
pub fn table() -> *const tb_driver {
    &raw const TABLE
}
