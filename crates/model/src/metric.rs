//! The latencies of one message and of one wake-up.

use serde::{Deserialize, Serialize};

/// A figure that each slot yields. Definitions: the chapter "How the numbers are made".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// receive - send-begin.
    RoundTrip,
    /// Half of it: a figure of location only, printed for the median.
    HalfRoundTrip,
    /// echo-in - send-begin.
    Out,
    /// The kernel's receive stamp at the pong - send-begin: the message has reached the pong's host.
    OutNetwork,
    /// echo-end - echo-in: receive to answer sent, so that the three legs add up to the round trip.
    Turnaround,
    /// receive - echo-end.
    Back,
    /// The kernel's receive stamp at the ping - echo-end: the answer has reached the ping's host.
    BackNetwork,
    /// receive - intended.
    FromIntended,
    /// send-begin - intended.
    SendLateness,
    /// send-end - send-begin.
    SendDuration,
    /// send-end - wake: from the wake-up until the call that publishes has returned.
    WakeToSent,
    /// wake - wake of the slot before.
    WakePeriod,
}

impl Metric {
    /// All metrics, in the order of reports.
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
    /// The key in JSON and CSV.
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
