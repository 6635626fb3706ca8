//! Exit codes of the command line.

/// What the process tells its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Done and valid.
    Done = 0,
    /// Something unexpected: a bug or an unforeseen refusal of the system.
    Unexpected = 1,
    /// Bad arguments or study file.
    BadInput = 2,
    /// The machine is not fit for what was asked.
    MachineNotFit = 3,
    /// An agent, a driver or the lab failed.
    RunFailed = 4,
    /// A budget was exceeded or a regression found.
    BudgetExceeded = 5,
    /// Finished, but the record is invalid or incomplete.
    RecordInvalid = 6,
    /// Not enough data to decide.
    Undecided = 7,
}
