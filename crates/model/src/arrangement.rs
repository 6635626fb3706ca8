//! How the ends are spread over processes, participants and executors.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Processes, participants, and threads that wait and serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Arrangement {
    /// One for both ends, or one each.
    pub processes: u32,
    /// DDS participants of all processes together.
    pub participants: u32,
    /// Single-threaded executors of all processes together; 0 where the receive mode is none.
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
