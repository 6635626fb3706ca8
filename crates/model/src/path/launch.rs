//! The queue of an interface for messages with launch times.

use serde::{Deserialize, Serialize};

/// Queue with launch times of an interface, as the kernel reports it (queue discipline `etf`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchQueueFact {
    /// Time before the launch time at which a message is given to the device, ns.
    pub ahead_ns: i64,
    /// Number of the clock of the launch times: 11 = CLOCK_TAI (clock_gettime(2)).
    pub clock: i32,
    /// Whether launch times are deadlines.
    pub deadline: bool,
    /// Whether the network card launches the messages.
    pub offload: bool,
}
