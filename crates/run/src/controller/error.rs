//! The error that ends a run before all trials of its plan have run.

use tailbound_lab::LabError;
use tailbound_model::ExitCode;
use tailbound_record::RecordError;

/// Error of a run that cannot continue: what is wrong and where, what the user can do, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", if remedy.is_empty() { String::new() } else { format!("\n  help: {remedy}") })]
pub struct RunError {
    /// Exit code of the command `tailbound` for this error.
    pub exit: ExitCode,
    /// Text of the error: what is wrong, and where.
    pub what: String,
    /// Remedy of the error: what the user can do; empty = no advice.
    pub remedy: String,
}

impl RunError {
    /// Makes an error with an exit code, a text that says what is wrong, and a remedy.
    pub fn new(exit: ExitCode, what: impl ToString, remedy: impl ToString) -> RunError {
        RunError { exit, what: what.to_string(), remedy: remedy.to_string() }
    }
}

impl From<RecordError> for RunError {
    fn from(e: RecordError) -> RunError {
        let exit = if matches!(e, RecordError::Exists(_)) { ExitCode::BadInput } else { ExitCode::RunFailed };
        RunError::new(exit, e, "")
    }
}

impl From<LabError> for RunError {
    fn from(e: LabError) -> RunError {
        let lacks = matches!(e, LabError::Lacks(_));
        RunError::new(if lacks { ExitCode::MachineNotFit } else { ExitCode::RunFailed }, e, "")
    }
}

impl From<tailbound_wire::Failed> for RunError {
    fn from(f: tailbound_wire::Failed) -> RunError {
        let exit = match f.exit {
            2 => ExitCode::BadInput,
            3 => ExitCode::MachineNotFit,
            _ => ExitCode::RunFailed,
        };
        RunError::new(exit, f.what, f.remedy)
    }
}
