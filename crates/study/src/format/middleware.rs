//! Settings that the threads of the middleware inherit from the measuring process.

use schemars::JsonSchema;
use serde::Deserialize;

/// Settings that the threads of the middleware inherit from the measuring process.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MiddlewareKeys {
    /// Timer slack of the threads of the middleware. Default: `least`.
    pub timer_slack: Option<TimerSlackChoice>,
    /// Whether the memory of the measuring process is locked. Default: `locked`.
    pub memory: Option<MemoryChoice>,
}

/// Timer slack of the threads of the middleware: the tolerance with which the kernel may delay their timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TimerSlackChoice {
    /// 1 ns, as for Tailbound's own threads.
    Least,
    /// The slack with which the measuring process was started, 50 us by default. Tailbound's own threads have 1 ns.
    Default,
}

/// Whether the memory of the measuring process is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MemoryChoice {
    /// The memory is locked, so that no thread waits for a page that was moved to a disk.
    Locked,
    /// The memory is not locked, as in a program that does not call `mlockall`.
    Unlocked,
}
