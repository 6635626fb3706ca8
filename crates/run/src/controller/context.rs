//! Data that every step of a run of the controller needs.

use super::security::Security;
use super::stop_signal::StopSignal;
use std::path::PathBuf;
use tailbound_host::journal::Journal;

/// Identity, undo journal, stop signal and log directory of one run.
pub(super) struct RunContext {
    /// Identifier of the run, which is part of interface names, topic names and tokens.
    pub run_id: String,
    /// Undo journal of the run. Every change to a host is written there first.
    pub journal: Journal,
    /// State of the signals that ask the controller to end the run normally.
    pub stop: StopSignal,
    /// Path of the directory `logs` in the record of the run.
    pub logs: PathBuf,
    /// Whether agents report round trips while a trial runs.
    pub figures: bool,
    /// Certificates and signed documents of DDS Security for the ends.
    pub security: Security,
}

impl RunContext {
    /// Makes the token of an object that the run creates, from the run id and the number of the object.
    pub fn token(&self, number: impl std::fmt::Display) -> String {
        format!("{}-{number}", self.run_id)
    }
}
