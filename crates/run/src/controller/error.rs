//! The error that ends a run before all trials of its plan have run.

use tailbound_lab::LabError;
use tailbound_model::{ExitCode, Problem};
use tailbound_record::RecordError;

/// Error of a run that cannot continue: the problem, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", problem.paragraph())]
pub struct RunError {
    /// Exit code of the command `tailbound` for this error.
    pub exit: ExitCode,
    /// Problem because of which the run cannot continue: what is wrong and where, and what the user can do.
    pub problem: Problem,
    /// Reasons why changes to a host could not be undone that the text of `problem` already contains. The list prevents
    /// that a reason is added twice.
    pub(super) not_undone: Box<[String]>,
}

impl RunError {
    /// Makes an error with an exit code, a text that says what is wrong, and a remedy.
    pub fn new(exit: ExitCode, what: impl ToString, remedy: impl ToString) -> RunError {
        RunError::of(exit, Problem::new("run_failed", what.to_string(), remedy.to_string()))
    }

    /// Makes an error from a problem.
    pub fn of(exit: ExitCode, problem: impl Into<Problem>) -> RunError {
        RunError { exit, problem: problem.into(), not_undone: Box::default() }
    }
}

impl From<RecordError> for RunError {
    fn from(e: RecordError) -> RunError {
        let exit = if matches!(e, RecordError::Exists(_)) { ExitCode::BadInput } else { ExitCode::RunFailed };
        RunError::of(exit, e)
    }
}

impl From<LabError> for RunError {
    fn from(e: LabError) -> RunError {
        let lacks = matches!(e, LabError::Lacks(_));
        RunError::of(if lacks { ExitCode::MachineNotFit } else { ExitCode::RunFailed }, e)
    }
}

impl From<tailbound_wire::Failed> for RunError {
    fn from(f: tailbound_wire::Failed) -> RunError {
        let exit = match f.exit {
            2 => ExitCode::BadInput,
            3 => ExitCode::MachineNotFit,
            _ => ExitCode::RunFailed,
        };
        RunError::of(exit, f.problem)
    }
}
