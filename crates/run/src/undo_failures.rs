//! Reasons why entries of the undo journal could not be undone.

use tailbound_host::journal::JournalError;

/// Reasons of a journal error, one for each journal entry that could not be undone.
pub(crate) fn undo_failures(error: &JournalError) -> Vec<String> {
    match error {
        JournalError::NotUndone(reasons) => reasons.clone(),
        other => vec![other.to_string()],
    }
}
