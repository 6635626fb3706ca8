//! The journal on disk of all changes to a host: an entry is written before each change and kept until the change is
//! undone.
//!
//! Input: an [`Undo`](tailbound_model::Undo) before each change, and the complete identity of the changed object after
//! the change. Output: one file for each run, and the cleanup after runs that were killed. This module does not know
//! why something was changed.
//!
//! A run has one file `<run>.jsonl`: a header, then one line for each event, in the order of events:
//!
//! ```text
//! {"boot_id":"…","pid":4711,"start_ticks":98841,"run":"…","uid":0,"command":"tailbound run x.yaml","started":…,…}
//! {"number":1,"undo":{"delete-interface":{"name":"tb1-a","ifindex":null,"netns_inode":4026532001}}}
//! {"update":1,"undo":{"delete-interface":{"name":"tb1-a","ifindex":7,"netns_inode":4026532001}}}
//! {"done":1}
//! ```
//!
//! A line that a crash truncated is ignored, because its change was never made. The owner (the process of the run)
//! locks the file (flock) as long as it runs, and a cleanup locks the file while it works, so they never work on the
//! same journal. The journal of a running owner is never changed. After a boot, the entries of a journal are void
//! except entries for containers, pods and files, because no other change survives a boot. A journal of another machine
//! (in a home directory on a file server) or of another PID namespace is left to processes that can see its owner.
//!
//! If the user confirms changes ([`Journal::keep`]), their journal gets the ending `.kept`: a cleanup leaves it alone, and
//! [`revert`] undoes its entries.

mod cleanup;
mod directory;
mod error;
mod file;
mod store;

#[cfg(test)]
mod tests;

pub use cleanup::{CleanupReport, JournalState, cleanup, kept, list, revert};
pub use directory::{STATE_DIR_VARIABLE, journal_dir};
pub use error::JournalError;
pub use file::Header;
pub use store::{EntryId, Journal};
