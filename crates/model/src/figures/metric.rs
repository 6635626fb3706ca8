//! The latencies that are computed for each message and each wake-up.

use serde::{Deserialize, Serialize};

/// A latency that every slot has. The chapter "How the numbers are made" has the definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Round trip: time from the begin of the send call (send-begin) to the receipt of the answer.
    RoundTrip,
    /// Half of the round trip; only the median of this metric is printed.
    HalfRoundTrip,
    /// Leg from ping to pong: time from the begin of the send call at the ping end to the receipt of the message at the
    /// pong end.
    Out,
    /// Network part of the leg from ping to pong: time from the begin of the send call at the ping end to the kernel's
    /// receive timestamp of the message on the pong end's host.
    OutNetwork,
    /// Turnaround inside the pong end: time from the receipt of the message to the end of the send call for the answer.
    /// Out, turnaround and back add up to the round trip.
    Turnaround,
    /// Leg from pong to ping: time from the end of the pong end's send call for the answer to the receipt of the answer
    /// at the ping end.
    Back,
    /// Network part of the leg from pong to ping: time from the end of the pong end's send call for the answer to the
    /// kernel's receive timestamp of the answer on the ping end's host.
    BackNetwork,
    /// From intended: time from the moment at which the slot was due to the receipt of the answer.
    FromIntended,
    /// Send lateness: time from the moment at which the slot was due to the begin of the send call.
    SendLateness,
    /// Metric: duration of the send call, from its start to its return.
    SendDuration,
    /// M2: time from the wake-up of the sender to the return of the send call.
    WakeToSent,
    /// M4: time from the sender's wake-up for the previous slot to its wake-up for this slot.
    WakePeriod,
}

impl Metric {
    /// All metrics, in the order in which reports show them.
    pub const ALL: [Metric; 12] = [
        Metric::RoundTrip,
        Metric::HalfRoundTrip,
        Metric::Out,
        Metric::OutNetwork,
        Metric::Turnaround,
        Metric::Back,
        Metric::BackNetwork,
        Metric::FromIntended,
        Metric::SendLateness,
        Metric::SendDuration,
        Metric::WakeToSent,
        Metric::WakePeriod,
    ];
    /// Key of the metric in JSON and CSV, e.g. `round_trip`.
    pub fn key(self) -> &'static str {
        match self {
            Metric::RoundTrip => "round_trip",
            Metric::HalfRoundTrip => "half_round_trip",
            Metric::Out => "out",
            Metric::OutNetwork => "out_network",
            Metric::Turnaround => "turnaround",
            Metric::Back => "back",
            Metric::BackNetwork => "back_network",
            Metric::FromIntended => "from_intended",
            Metric::SendLateness => "send_lateness",
            Metric::SendDuration => "send_duration",
            Metric::WakeToSent => "wake_to_sent",
            Metric::WakePeriod => "wake_period",
        }
    }
}
