//! How a command ends badly.

use crate::say::errln;
use std::process;
use tailbound_model::ExitCode;

/// What the user is told, and the exit code.
#[derive(Debug)]
pub struct Failure {
    pub exit: ExitCode,
    pub text: String,
}

impl Failure {
    pub fn new(exit: ExitCode, text: impl ToString) -> Failure {
        Failure { exit, text: text.to_string() }
    }

    /// Writes the text to standard error.
    pub fn tell(&self) -> process::ExitCode {
        errln!("tailbound: {}", self.text.trim_end());
        process::ExitCode::from(self.exit as u8)
    }
}

impl From<tailbound_run::RunError> for Failure {
    fn from(e: tailbound_run::RunError) -> Failure {
        Failure::new(e.exit, e)
    }
}

/// A command's end.
pub type Outcome = Result<ExitCode, Failure>;
