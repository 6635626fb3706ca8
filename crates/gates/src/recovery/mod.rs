//! Recovers the gate schedule that is in force on the way of messages, for example in a bridge that nobody can ask.
//!
//! Input: the times at which messages were sent and at which they arrived, on one clock. Output: the cycle and the windows of the
//! gate, with 95 % intervals, or the reason why they cannot be recovered.
//!
//! The way of a message has a shortest time, to which a wait for the gate and other delays are added. A message that arrived
//! soon has found its gate open; messages that were sent while it was closed arrive together, when it opens. The intervals
//! assume nothing about the shape of the other delays, which are taken from the messages that found their gate open.

mod comparison;
mod delays;
mod edges;
mod folded;
mod search;
#[cfg(test)]
mod simulated;
mod spectrum;

pub use comparison::{ConfiguredGate, NearestWindow};
pub use search::{recover, used_send_times};

use serde::Serialize;

/// A message that arrived. Both times are from the same clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Begin of the send call, ns.
    pub sent_ns: i64,
    /// Receipt, ns.
    pub arrived_ns: i64,
}

/// A figure that was recovered, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Recovered {
    /// Most likely value, ns.
    pub ns: f64,
    /// Lower end of the interval, ns.
    pub low_ns: f64,
    /// Upper end of the interval, ns.
    pub high_ns: f64,
}

/// A window of the gate. A window at the end of the cycle can last until after it, so that it closes at a time greater than the
/// cycle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RecoveredWindow {
    /// First time at which a message may pass, after the reference time.
    pub opens: Recovered,
    /// Last time at which a message may pass, after the reference time. (The gate closes later by the time that the frame needs
    /// on the wire.)
    pub closes: Recovered,
}

/// The schedule of the gate of the messages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recovery {
    /// Time to which the windows refer, ns, clock of the messages: about the middle of the messages.
    pub reference_ns: i64,
    /// Time after which the windows repeat.
    pub cycle: Recovered,
    /// Windows in the order of the times at which they open; not empty.
    pub windows: Vec<RecoveredWindow>,
    /// Number of messages from which the schedule was recovered.
    pub probes: u64,
    /// Shortest way, ns: the gate is somewhere on the way, so that the intervals of the windows are wider by this time.
    pub shortest_way_ns: i64,
    /// Longest part of the cycle in which no message was sent, ns.
    pub largest_gap_ns: f64,
}

/// The reason why no schedule was recovered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NotRecovered {
    /// There are fewer messages than are needed.
    TooFewProbes {
        /// Number of messages that arrived.
        probes: u64,
        /// Number of messages that are needed.
        needs: u64,
    },
    /// The waits do not depend on the phase in a cycle of 1 to 100 ms.
    NoGate {
        /// Number of messages that arrived.
        probes: u64,
    },
    /// A cycle explains the waits, but the gate opened too few times for messages that waited to find how exact the cycle is.
    TooFewCycles {
        /// Cycle that explains the waits, ns.
        cycle_ns: f64,
        /// Time from the first to the last message, ns.
        span_ns: f64,
    },
    /// The messages were sent at too few phases of the cycle.
    PhasesNotCovered {
        /// Cycle that explains the waits, ns, if it is not a multiple or a part of the true one.
        cycle_ns: f64,
        /// Longest part of this cycle in which no message was sent, ns.
        largest_gap_ns: f64,
    },
}
