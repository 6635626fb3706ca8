//! Exit codes of the command-line program.

/// Exit code of the process `tailbound`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Exit code: the command finished and the result is valid.
    Done = 0,
    /// Exit code: an unexpected error occurred, that is, a bug or an unforeseen refusal of the system.
    Unexpected = 1,
    /// Exit code: the arguments or the study file are not valid.
    BadInput = 2,
    /// Exit code: the machine lacks something that the study needs.
    MachineNotFit = 3,
    /// Exit code: an agent, a driver or the lab failed during the run.
    RunFailed = 4,
    /// Exit code: a limit of a budget was exceeded, or a regression was found.
    BudgetExceeded = 5,
    /// Exit code: the command finished, but the record is invalid or incomplete.
    RecordInvalid = 6,
    /// Exit code: there are not enough data to decide whether a limit holds or a value became worse, or no message
    /// fulfilled the condition at which a run would have ended.
    Undecided = 7,
}
