//! Reasons why a host setting could not be read or set.

use crate::journal::JournalError;
use std::io;
use tailbound_model::Problem;

/// Reason why a host setting could not be read or set. `Display` writes [`KnobError::problem`] on one line.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// Error: the host setting does not exist on this host.
    Absent {
        /// Path of the host setting's key in the study file.
        key: String,
        /// The file, interface, interrupt or thread of the host setting that does not exist.
        what: String,
        /// Reason why the host setting does not exist on this host.
        why: String,
    },
    /// Error: other programs of the host need the interface, so its settings are never changed.
    Needed {
        /// Path of the host setting's key in the study file.
        key: String,
        /// The interface that other programs need.
        what: String,
        /// Reason why other programs need the interface.
        why: String,
    },
    /// Error: what the interface has could not be restored exactly after the trials, so that it is left as it is.
    NotRestorable {
        /// Path of the host setting's key in the study file.
        key: String,
        /// The interface that is left as it is.
        what: String,
        /// What could not be restored.
        why: String,
    },
    /// Error: this user may not read or set the host setting.
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
    Journal(#[from] JournalError),
}

impl KnobError {
    /// Returns what is wrong with the host setting, and what the user can do.
    pub fn problem(&self) -> Problem {
        match self {
            KnobError::Absent { key, what, why } => {
                Problem::new("host_setting_absent", format!("{key}: {what} does not exist here: {why}"), "")
            }
            KnobError::Needed { key, what, why } => Problem::new(
                "host_setting_needed",
                format!("{key}: {what} is never changed, because {why}"),
                "name another interface, or one in a network namespace of its own (`place: { existing-netns: NAME }`)",
            ),
            KnobError::NotRestorable { key, what, why } => Problem::new(
                "host_setting_not_restorable",
                format!("{key}: {what} is not changed, because what it has could not be restored exactly: {why}"),
                "remove what it has, and set it up again afterwards, or name another interface",
            ),
            KnobError::NotPermitted { key, what, action, reason } => {
                let text = format!("{key}: {what} may not be {action} by this user ({reason})");
                Problem::new("host_setting_not_permitted", text, "run as root")
            }
            KnobError::Refused { key, what, wanted, reason } => {
                Problem::new("host_setting_refused", format!("{key}: {what} does not take `{wanted}`: {reason}"), "")
            }
            KnobError::Differs { key, what, wanted, found } => Problem::new(
                "host_setting_differs",
                format!("{key}: {what} was set to `{wanted}`, but reads `{found}`"),
                "",
            ),
            KnobError::Journal(error) => error.problem(),
        }
    }

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

tailbound_model::display_as_problem!(KnobError);
