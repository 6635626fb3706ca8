//! Errors of writing and reading journals of changes to a host.

use std::io;
use std::path::{Path, PathBuf};

/// A journal that could not be written, or whose entries could not all be undone.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Error: the file or the directory of a journal could not be used.
    #[error("could not {what} {}: {reason}; nothing on this host is changed without a journal", path.display())]
    File {
        /// The action that failed, such as `create` or `write to`.
        what: &'static str,
        /// Path of the journal file or directory that could not be used.
        path: PathBuf,
        /// Error of the operating system for the failed action on the journal.
        reason: io::Error,
    },
    /// Error: no directory can be used for journals; the text gives the reason.
    #[error("no directory can be used for the journal: {0}")]
    NoPlace(String),
    /// Error: the id of the run cannot be the name of a journal file.
    #[error("`{0}` cannot name a journal: use only letters, digits, `-`, `_` and `.`, and no `.` at the beginning")]
    BadRunId(String),
    /// Error: a journal of another run with this id already exists.
    #[error("a journal of the run `{run}` already exists at {}", path.display())]
    Exists {
        /// Id that both the new run and the run of the existing journal have.
        run: String,
        /// Path of the journal that exists already.
        path: PathBuf,
    },
    /// Error: the journal has no open entry with this number.
    #[error("the journal has no open entry {0}")]
    NoSuchEntry(u64),
    /// Error: some changes of the run to the host are not undone; the texts say which changes.
    #[error("some changes are not undone yet: {}; `tailbound lab cleanup` tries again", .0.join("; "))]
    NotUndone(Vec<String>),
}

impl JournalError {
    pub(super) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.to_owned();
        move |reason| JournalError::File { what, path, reason }
    }
}
