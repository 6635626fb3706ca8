//! Results of undoing one change to a host.

use std::fmt;

/// Result of undoing a change to a host, if the undo did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// The change to the host was undone; the text is a sentence for the user.
    Did(String),
    /// Nothing to undo: the changed object does not exist any more, or has its former value.
    AlreadyGone,
    /// The changed object does not belong to the run (any more), so it was left alone; the sentence gives the reason.
    /// The undo is not tried again.
    LeftAlone(String),
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undone::Did(text) | Undone::LeftAlone(text) => f.write_str(text),
            Undone::AlreadyGone => f.write_str("nothing was left to undo"),
        }
    }
}

/// Error of an undo that failed and can be tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not {what}: {reason}")]
pub struct UndoError {
    /// Description of the attempted undo, such as `delete interface tb1-a`.
    pub what: String,
    /// Reason why the change to the host could not be undone.
    pub reason: String,
}
