//! Serves local web pages about a folder of records: a list with a filter, and the report of each record.
//!
//! Input: a folder, and an address to listen on. Output: pages over HTTP, which can only be read. The record that a
//! request names is looked up among the records that were found; the name is never used as a path. A request whose
//! `Host` header is not a name of this server is refused, so that another website in the browser cannot read these
//! pages through a name that points to this server (DNS rebinding). The crate does not know labs or drivers, or how
//! anything was measured.

mod answer;
mod guard;
mod list;
mod options;
mod picture;
mod records;
mod server;
mod short;
mod target;
mod verdicts;

pub use options::{Compare, Options};
pub use records::has_records;
pub use server::Server;
