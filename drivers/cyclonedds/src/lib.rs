//! The `cyclonedds` driver: Eclipse Cyclone DDS behind the driver ABI, linked statically.
//!
//! What goes in: calls of the driver table. What comes out: samples, statuses and JSON. It knows nothing of studies,
//! pacing, clocks or records.
//!
//! # Wire type
//! Module `tailbound`, `@final struct Sample { unsigned long long seq; sequence<octet> payload; }`, keyless, XCDR1.
//! With `naming=ros2` the topic is `rt/<topic>` and the type name `tailbound_msgs::msg::dds_::Sample_`.
//!
//! # Copies
//! A `send` serialises straight into Cyclone's own sample (one copy of the payload); a receive hands out a pointer into
//! that same representation (no copy of ours: Cyclone makes one when it assembles the sample from its datagrams).
//!
//! # Domains
//! By default every session is a Cyclone domain instance of its own, with its own sockets and threads, that appears
//! on the network under the number given as `domain`. Two sessions in one process so meet over the network like
//! two processes. With `instance=shared` sessions of equal configuration and domain share one instance; Cyclone then
//! delivers between them directly, on the sending thread.
//!
//! The configuration is always given explicitly: the environment variable `CYCLONEDDS_URI` is never read. A user's
//! own configuration is passed with the key `config` and is then used exactly as it is.
//!
//! # Callbacks
//! `on_sample` runs on Cyclone's receive thread (or on the sending thread for delivery inside a shared instance), with
//! no lock held that `send` or `take` needs.

mod config;
mod describe;
mod domain;
mod endpoint;
mod error;
mod ffi;
mod flow;
mod listener;
mod log;
mod peers;
mod qos;
mod query;
mod receive;
mod sample;
mod send;
mod session;
mod threads;
mod unmatched;
mod wait;

use tailbound_abi::{side, tb_driver};

/// The configuration that these options of `open` come to, as a file for CYCLONEDDS_URI.
///
/// # Errors
/// The option that is not valid, and why.
pub fn configuration(options: &[(&str, &str)]) -> Result<String, String> {
    let pairs: Vec<side::Pair> = options.iter().map(|&(key, value)| side::Pair { key, value }).collect();
    config::Options::parse(&pairs).map(|o| o.exported()).map_err(|fail| fail.text.into_owned())
}

static TABLE: tb_driver = side::table::<session::Session>();

/// The driver table of Cyclone DDS; constant for the life of the process.
pub fn table() -> *const tb_driver {
    &raw const TABLE
}
