//! What can go wrong with a journal.

use std::io;
use std::path::{Path, PathBuf};

/// The journal could not be written, or not everything in it could be undone.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file or directory refused.
    #[error("could not {what} {}: {reason}; nothing on this host is changed without a journal", path.display())]
    File {
        /// E.g. `create`, `write to`.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// No place for it.
    #[error("there is no place for the journal: {0}")]
    NoPlace(String),
    /// The run's id cannot be a file name.
    #[error("`{0}` cannot name a journal: letters, digits, `-`, `_` and `.` only, and no `.` in front")]
    BadRunId(String),
    /// Another run has this id.
    #[error("a journal of a run `{run}` exists already at {}", path.display())]
    Exists {
        /// The id.
        run: String,
        /// The file.
        path: PathBuf,
    },
    /// No such open entry.
    #[error("the journal has no open entry {0}")]
    NoSuchEntry(u64),
    /// Changes that were not undone.
    #[error("not undone yet: {}; `tailbound lab cleanup` tries again", .0.join("; "))]
    NotUndone(Vec<String>),
}

impl JournalError {
    pub(super) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.to_owned();
        move |reason| JournalError::File { what, path, reason }
    }
}
