//! Why a run ends before its plan.

use tailbound_model::ExitCode;
use tailbound_record::RecordError;

/// A run that cannot go on: what, where, what to do, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}{}", if mend.is_empty() { String::new() } else { format!("\n  what to do: {mend}") })]
pub struct RunError {
    /// Exit code.
    pub exit: ExitCode,
    /// What and where.
    pub text: String,
    /// What to do; may be empty.
    pub mend: String,
}

impl RunError {
    /// An error.
    pub fn new(exit: ExitCode, text: impl ToString, mend: impl ToString) -> RunError {
        RunError { exit, text: text.to_string(), mend: mend.to_string() }
    }
}

impl From<RecordError> for RunError {
    fn from(e: RecordError) -> RunError {
        let exit = if matches!(e, RecordError::Exists(_)) { ExitCode::BadInput } else { ExitCode::RunFailed };
        RunError::new(exit, e, "")
    }
}

impl From<tailbound_wire::Failed> for RunError {
    fn from(f: tailbound_wire::Failed) -> RunError {
        let exit = match f.exit {
            2 => ExitCode::BadInput,
            3 => ExitCode::MachineNotFit,
            _ => ExitCode::RunFailed,
        };
        RunError::new(exit, f.text, f.mend)
    }
}
