//! Settings that the threads of the middleware inherit from the measuring process.

use serde::{Deserialize, Serialize};

/// Settings of the measuring process that threads of the middleware inherit. The default is what Tailbound's own threads
/// need: a timer slack of 1 ns, and locked memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MiddlewareSettings {
    /// Threads of the middleware keep the timer slack that the process was started with, 50 us by default. Tailbound's
    /// own threads have 1 ns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default_timer_slack: bool,
    /// The memory of the measuring process is not locked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlocked_memory: bool,
}

impl MiddlewareSettings {
    /// True if the threads of the middleware have the same settings as Tailbound's own threads.
    pub fn is_default(&self) -> bool {
        *self == MiddlewareSettings::default()
    }
}
