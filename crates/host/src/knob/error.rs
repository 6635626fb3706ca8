//! Reasons why a host setting could not be read or set.

use crate::journal::JournalError;
use std::io;

/// Reason why a host setting could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// Error: the host setting does not exist on this host.
    #[error("{key}: {what} does not exist here: {why}")]
    Absent {
        /// Path of the host setting's key in the study file.
        key: String,
        /// The file, interface, interrupt or thread of the host setting that does not exist.
        what: String,
        /// Reason why the host setting does not exist on this host.
        why: String,
    },
    /// Error: this user may not read or set the host setting.
    #[error("{key}: {what} may not be {action} by this user ({reason}); run as root")]
    NotPermitted {
        /// Path of the host setting's key in the study file.
        key: String,
        /// The file, interface, interrupt or thread that this user may not read or set.
        what: String,
        /// The action on the host setting that is not permitted: `read` or `set`.
        action: &'static str,
        /// Error of the kernel when the host setting was read or written.
        reason: String,
    },
    /// Error: the kernel refused the requested value of a host setting.
    #[error("{key}: {what} does not take `{wanted}`: {reason}")]
    Refused {
        /// Path of the host setting's key in the study file.
        key: String,
        /// The file, interface, interrupt or thread whose setting was refused.
        what: String,
        /// Requested value of the host setting, which the kernel refused.
        wanted: String,
        /// Error of the kernel for the requested value of the host setting.
        reason: String,
    },
    /// Error: the value of a host setting that was read back from the kernel differs from the requested value.
    #[error("{key}: {what} was set to `{wanted}`, but reads `{found}`")]
    Differs {
        /// Path of the host setting's key in the study file.
        key: String,
        /// The file, interface, interrupt or thread whose setting was changed.
        what: String,
        /// Requested value of the host setting.
        wanted: String,
        /// Value of the host setting that was read back and is in force.
        found: String,
    },
    /// Error: the journal could not be written, so no host setting was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl KnobError {
    /// Converts a failed read or write of a host setting to an error.
    pub(super) fn of(key: &str, what: String, action: &'static str, wanted: &str, error: &io::Error) -> KnobError {
        let (key, reason) = (key.to_owned(), error.to_string());
        match error.kind() {
            io::ErrorKind::NotFound => {
                KnobError::Absent { key, what, why: "this kernel or network namespace has no such setting".into() }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                KnobError::NotPermitted { key, what, action, reason }
            }
            _ => KnobError::Refused { key, what, wanted: wanted.to_owned(), reason },
        }
    }
}
