//! The failure of a command: the message for the user, and the exit code.

use crate::output::errln;
use std::process;
use tailbound_model::{ExitCode, Problem};

/// The message that a failed command prints, and the exit code of the command.
#[derive(Debug)]
pub struct Failure {
    exit: ExitCode,
    problem: Problem,
}

impl Failure {
    pub fn new(exit: ExitCode, what: impl ToString) -> Failure {
        let code = match exit {
            ExitCode::BadInput => "bad_input",
            ExitCode::MachineNotFit => "machine_not_fit",
            ExitCode::RunFailed => "run_failed",
            _ => "unexpected",
        };
        Failure { exit, problem: Problem::new(code, what.to_string().trim(), "") }
    }

    /// What is wrong, without what to do.
    pub fn text(&self) -> &str {
        &self.problem.what
    }

    /// Creates a failure because of wrong arguments, or of an input file that cannot be used.
    pub fn bad_input(what: impl ToString) -> Failure {
        Failure::new(ExitCode::BadInput, what)
    }

    /// Creates a failure because this machine cannot do what the command needs.
    pub fn not_fit(what: impl ToString) -> Failure {
        Failure::new(ExitCode::MachineNotFit, what)
    }

    /// Creates a failure of an agent, a driver, the lab, or a file of the command.
    pub fn run_failed(what: impl ToString) -> Failure {
        Failure::new(ExitCode::RunFailed, what)
    }

    pub fn unexpected(what: impl ToString) -> Failure {
        Failure::new(ExitCode::Unexpected, what)
    }

    /// Adds to a failure a sentence about what the user can do.
    pub fn help(self, remedy: impl Into<String>) -> Failure {
        Failure { problem: self.problem.with_remedy(remedy), ..self }
    }

    /// Adds a sentence about what the user can do, unless the failure has one.
    pub fn help_or(self, remedy: &str) -> Failure {
        if self.problem.remedy.is_empty() { self.help(remedy) } else { self }
    }

    /// Creates the failure of a command from a problem that another crate found, or from an error that contains a
    /// problem.
    pub fn of(exit: ExitCode, problem: impl Into<Problem>) -> Failure {
        Failure { exit, problem: problem.into() }
    }

    /// The first line of the text that says what failed and has words.
    pub fn first_line(&self) -> String {
        let is_word = |line: &&str| line.contains(char::is_alphabetic);
        let line = self.problem.what.lines().find(is_word).unwrap_or_default();
        line.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`').to_owned()
    }

    /// Text that says what failed, without the remedy.
    pub fn what(&self) -> &str {
        &self.problem.what
    }

    /// Writes the message of the failure to standard error and returns the exit code.
    pub fn print(&self) -> process::ExitCode {
        let text = format!("error: {}", self.problem.paragraph());
        errln!("{}", crate::output::wrapped_for_errors(&text));
        process::ExitCode::from(self.exit as u8)
    }
}

impl From<tailbound_run::RunError> for Failure {
    fn from(e: tailbound_run::RunError) -> Failure {
        Failure::of(e.exit, e.problem)
    }
}

/// Result of a command: its exit code, or its failure.
pub type CommandResult = Result<ExitCode, Failure>;
