//! Local pages over a folder of records: a list with a filter, and the report of each.
//!
//! In: a folder, an address to listen on. Out: pages over HTTP, read only. What a request names is looked up among the
//! records that were found, never put together into a path; a request whose `Host` is a name of somebody else is refused,
//! so that no other page in the browser can read these through a name that it lets point here (DNS rebinding).
//! Must not know: labs, drivers, how anything was measured.

mod answer;
mod guard;
mod list;
mod records;
mod server;
mod target;

pub use server::{Compare, Options, Server};
