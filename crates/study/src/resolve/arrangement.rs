//! Resolves the numbers of processes, participants and executors that a study asks for.

use crate::error::Fault;
use crate::format::ArrangementKeys;
use crate::read::At;
use tailbound_model::{Arrangement, ReceiveMode};

/// Checks that the numbers of processes, participants and executors are consistent, and fills in defaults.
pub(crate) fn arrangement(keys: &At<ArrangementKeys>, receive: ReceiveMode) -> Result<Arrangement, Fault> {
    let ArrangementKeys { processes, participants, executors } = keys.value;
    let fault = |reason: String, help: &str| Err(Fault::new(keys.at, reason).help(help));
    let executor = receive == ReceiveMode::Executor;
    let threads = if executor { executors.unwrap_or(processes) } else { 0 };
    let numbers = [
        ("processes", processes, 1),
        ("participants", participants.unwrap_or(processes), processes),
        ("executors", executors.unwrap_or(processes), processes),
    ];
    if let Some((what, n, least)) = numbers.into_iter().find(|(_, n, least)| n < least || *n > 2) {
        let help = if least == 2 {
            "with two processes, write 2 for `participants` and for `executors`"
        } else {
            "write 1 or 2, because there are two ends"
        };
        return fault(format!("an arrangement with {processes} processes and {n} {what} is not possible"), help);
    }
    if let (Some(n), false) = (executors, executor) {
        let help = "write `receive: executor` in `measure`, or leave `executors` out";
        return fault(format!("{n} executors need the receive mode `executor`"), help);
    }
    Ok(Arrangement { processes, participants: participants.unwrap_or(processes), executors: threads })
}
