//! Problems of host settings that the controller and an agent report in the same words.

use tailbound_host::journal::JournalError;
use tailbound_model::Problem;

/// Reasons of a journal error, one for each journal entry that could not be undone.
pub(crate) fn undo_failures(error: &JournalError) -> Vec<String> {
    match error {
        JournalError::NotUndone(reasons) => reasons.clone(),
        other => vec![other.to_string()],
    }
}

/// Makes the [`Problem`] for a host setting that no longer has the value that Tailbound set; `text` names the setting.
pub(crate) fn changed_again(text: String) -> Problem {
    let remedy = "check whether another setting of the study or another program changes the setting again";
    Problem::new("host_setting_changed", text, remedy)
}
