//! Why a setting was not read or set.

use crate::journal::JournalError;
use std::io;

/// Why a setting was not read or set. `key` is its path in the study.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// It is not there.
    #[error("{key}: {what} does not exist here: {why}")]
    Absent {
        /// Path in the study.
        key: String,
        /// The file, interrupt or thread.
        what: String,
        /// What that means.
        why: String,
    },
    /// No privilege.
    #[error("{key}: {what} may not be {deed} by this user ({reason}); run as root")]
    NotPermitted {
        /// Path in the study.
        key: String,
        /// The file, interrupt or thread.
        what: String,
        /// `read` or `set`.
        deed: &'static str,
        /// The kernel's word.
        reason: String,
    },
    /// The kernel refused the value.
    #[error("{key}: {what} does not take `{wanted}`: {reason}")]
    Refused {
        /// Path in the study.
        key: String,
        /// The file, interrupt or thread.
        what: String,
        /// What was asked for.
        wanted: String,
        /// The kernel's word.
        reason: String,
    },
    /// The kernel took the value and kept another.
    #[error("{key}: {what} was set to `{wanted}`, but reads `{found}`")]
    Differs {
        /// Path in the study.
        key: String,
        /// The file, interrupt or thread.
        what: String,
        /// What was asked for.
        wanted: String,
        /// What is in force.
        found: String,
    },
    /// The undo could not be written down, so nothing was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl KnobError {
    /// What a reading or a writing that failed means.
    pub(super) fn of(key: &str, what: String, deed: &'static str, wanted: &str, error: &io::Error) -> KnobError {
        let (key, reason) = (key.to_owned(), error.to_string());
        match error.kind() {
            io::ErrorKind::NotFound => {
                KnobError::Absent { key, what, why: "this kernel or network namespace has no such setting".into() }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                KnobError::NotPermitted { key, what, deed, reason }
            }
            _ => KnobError::Refused { key, what, wanted: wanted.to_owned(), reason },
        }
    }
}
