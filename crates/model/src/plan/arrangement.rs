//! Arrangement of a trial: how the ends are spread over processes, DDS participants and executors.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Arrangement of a trial: number of processes, DDS participants and executors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arrangement {
    /// Number of processes: one for both ends, or one for each end.
    pub processes: u32,
    /// Number of DDS participants in all processes of the trial together.
    pub participants: u32,
    /// Number of single-threaded executors in all processes together; 0 if the receive mode is not `executor`.
    pub executors: u32,
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |n: u32, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
        let (processes, participants) =
            (many(self.processes, "process", "processes"), many(self.participants, "participant", "participants"));
        write!(f, "{processes}, {participants}")?;
        if self.executors > 0 {
            write!(f, ", {}", many(self.executors, "executor", "executors"))?;
        }
        Ok(())
    }
}
