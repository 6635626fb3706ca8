//! The journal on disk of every change to a host: written before the deed, kept until it is undone.
//!
//! In: an [`Undo`](tailbound_model::Undo) before each change, and its completed identity after. Out: one file per run, and
//! the cleanup of what runs left behind that did not end by themselves. It knows nothing of why something was changed.
//!
//! One file `<run>.jsonl`: a header, then one line per event, in the order of events:
//!
//! ```text
//! {"boot_id":"…","pid":4711,"start_ticks":98841,"run":"…","uid":0,"command":"tailbound run x.yaml","started":…,…}
//! {"number":1,"undo":{"delete-interface":{"name":"tb1-a","ifindex":null,"netns_inode":4026532001}}}
//! {"update":1,"undo":{"delete-interface":{"name":"tb1-a","ifindex":7,"netns_inode":4026532001}}}
//! {"done":1}
//! ```
//!
//! A line that a crash cut short is no line: its deed was never begun. The owner holds a lock (flock) on the file as long
//! as it lives; so does a cleanup while it works, so that two never meet. A journal whose owner lives is never touched; one
//! of an earlier boot is void but for containers and pods, for nothing else that it lists survived; one of another machine (a home directory on a file
//! server) or of another process-id namespace is left to those who can see its processes.

mod cleanup;
mod directory;
mod error;
mod file;
mod store;

#[cfg(test)]
mod tests;

pub use cleanup::{CleanupReport, JournalState, cleanup, list};
pub use directory::{STATE_DIR_VARIABLE, journal_dir};
pub use error::JournalError;
pub use file::Header;
pub use store::{EntryId, Journal};
