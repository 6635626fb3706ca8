//! Errors of writing and reading journals of changes to a host.

use std::io;
use std::path::{Path, PathBuf};
use tailbound_model::Problem;

/// A journal that could not be written, or whose entries could not all be undone. `Display` writes
/// [`JournalError::problem`] on one line.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Error: the file or the directory of a journal could not be used.
    File {
        /// The action that failed, such as `create` or `write to`.
        what: &'static str,
        /// Path of the journal file or directory that could not be used.
        path: PathBuf,
        /// Error of the operating system for the failed action on the journal.
        reason: io::Error,
    },
    /// Error: no directory can be used for journals; the text gives the reason.
    NoPlace(String),
    /// Error: the id of the run cannot be the name of a journal file.
    BadRunId(String),
    /// Error: a journal of another run with this id already exists.
    Exists {
        /// Id that both the new run and the run of the existing journal have.
        run: String,
        /// Path of the journal that exists already.
        path: PathBuf,
    },
    /// Error: the journal has no open entry with this number.
    NoSuchEntry(u64),
    /// Error: some changes of the run to the host are not undone; the texts say which changes.
    NotUndone(Vec<String>),
}

impl JournalError {
    /// Returns what is wrong with the journal, and what the user can do.
    pub fn problem(&self) -> Problem {
        match self {
            JournalError::File { what, path, reason } => {
                let text = format!(
                    "could not {what} {}: {reason}; nothing on this host is changed without a journal",
                    path.display()
                );
                let remedy = match reason.kind() {
                    io::ErrorKind::StorageFull => "free some space on this file system",
                    io::ErrorKind::PermissionDenied => "give this user the right to write there",
                    _ => "",
                };
                Problem::new("journal_file", text, remedy)
            }
            JournalError::NoPlace(why) => {
                Problem::new("journal_directory", format!("no directory can be used for the journal: {why}"), "")
            }
            JournalError::BadRunId(run) => Problem::new(
                "journal_name",
                format!("`{run}` cannot name a journal"),
                "use only letters, digits, `-`, `_` and `.`, and no `.` at the beginning",
            ),
            JournalError::Exists { run, path } => {
                let what = format!("a journal of the run `{run}` already exists at {}", path.display());
                Problem::new("journal_exists", what, "")
            }
            JournalError::NoSuchEntry(number) => {
                Problem::new("journal_entry", format!("the journal has no open entry {number}"), "")
            }
            JournalError::NotUndone(reasons) => Problem::new(
                "not_undone",
                format!("some changes are not undone yet: {}", reasons.join("; ")),
                "`tailbound lab cleanup` tries again",
            ),
        }
    }

    pub(super) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.to_owned();
        move |reason| JournalError::File { what, path, reason }
    }
}

tailbound_model::display_as_problem!(JournalError);
