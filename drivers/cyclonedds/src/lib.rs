//! The `cyclonedds` driver: Eclipse Cyclone DDS through the driver ABI, linked statically.
//!
//! Input: calls of the driver table. Output: samples, statuses and JSON. The driver knows nothing of studies, pacing,
//! clocks or records.
//!
//! # Wire type
//! Module `tailbound`, `@final struct Sample { unsigned long long seq; sequence<octet> payload; }`,
//! keyless, XCDR1. With `naming=ros2` the topic is `rt/<topic>` and the type name `tailbound_msgs::msg::dds_::Sample_`.
//!
//! # Copies
//! `send` serialises directly into Cyclone's own sample, which is one copy of the payload. On the receiving side the
//! loading program gets a pointer into the same representation: the driver makes no copy; Cyclone makes one when it
//! assembles the sample from its datagrams.
//!
//! # Domains
//! By default every session has its own Cyclone domain instance with its own sockets and threads; on the
//! network it uses the number given as `domain`. So two sessions in one process communicate over the network like two
//! processes. With `instance=shared`, sessions with equal configuration and domain share one instance; Cyclone then
//! delivers samples between them directly, on the sending thread.
//!
//! The configuration is always given explicitly: the environment variable `CYCLONEDDS_URI` is never read. The user's
//! own configuration is given with the key `config` and is passed on unchanged.
//!
//! # Callbacks
//! `on_sample` runs on Cyclone's receive thread (or on the sending thread inside a shared instance). No
//! lock that `send` or `take` needs is held during the call.

mod calls;
mod config;
mod create;
mod deadline;
mod describe;
mod domain;
mod endpoint;
mod error;
mod ffi;
mod flow;
mod listener;
mod log;
mod naming;
mod nodes;
mod peers;
mod qos;
mod query;
mod receive;
mod sample;
mod security;
mod send;
mod session;
mod statistics;
mod threads;
mod unmatched;
mod wait;
mod watermarks;

use tailbound_abi::side::Outcome;
use tailbound_abi::{side, tb_driver};

/// Makes the Cyclone configuration that results from these options of `open`, as the content of a file for
/// CYCLONEDDS_URI.
///
/// # Errors
/// An option is not valid; the text of the failure names the option and the reason.
pub fn configuration(options: &[(&str, &str)]) -> Outcome<String> {
    let pairs: Vec<side::Pair> = options.iter().map(|&(key, value)| side::Pair { key, value }).collect();
    config::Options::parse(&pairs).map(|o| o.exported())
}

static TABLE: tb_driver = side::table::<session::Session>();

/// Returns the driver table of Cyclone DDS, which is constant until the process ends.
pub fn table() -> *const tb_driver {
    &raw const TABLE
}
