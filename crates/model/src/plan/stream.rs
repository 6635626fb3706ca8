//! The stream of a sender: at which times of a clock its messages are due, and when the kernel launches them.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Times at which the messages of the ping are due, on the clock of the gates (CLOCK_TAI).
///
/// With a period p, message k is to leave at `base + k p + offset`. The base is the begin of the gate schedule of the ping; without
/// gates it is the year 1970 of CLOCK_TAI, so that a period that divides a second begins with each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSpec {
    /// Time after the base, and after each multiple of the period, at which a message is to leave.
    pub offset: Nanos,
    /// Launch times of the messages; `None` = the kernel sends each message at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchSpec>,
}

/// Launch times: the sender gives each message to the kernel early, with the time at which it is to leave (SO_TXTIME).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// Time before the launch time at which a message is due at the sender.
    pub lead: Nanos,
    /// Time before the launch time at which the queue discipline `etf` gives a message to the device (`delta` of tc-etf(8)).
    pub ahead: Nanos,
    /// Meaning of the launch time.
    pub mode: LaunchMode,
    /// Priority (SO_PRIORITY) of the messages, whose queue has launch times.
    pub priority: u8,
    /// Who sets up the queue with launch times.
    #[serde(default, skip_serializing_if = "LaunchBy::is_etf")]
    pub by: LaunchBy,
    /// Whether a queue discipline of the interface that is not the kernel's default one is replaced for the trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
}

/// Who sets up the queue with launch times of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchBy {
    /// Tailbound sets the queue discipline `etf`.
    #[default]
    Etf,
    /// The user or another program has set it up: the queue is only read.
    Existing,
}

impl LaunchBy {
    fn is_etf(&self) -> bool {
        *self == LaunchBy::Etf
    }
}

/// Meaning of a launch time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchMode {
    /// The message leaves at its launch time.
    #[default]
    Strict,
    /// The message leaves at its launch time or earlier (deadline mode of tc-etf(8)).
    Deadline,
}

impl LaunchMode {
    /// The word of the study, and of the option `launch` of drivers.
    pub fn word(self) -> &'static str {
        match self {
            LaunchMode::Strict => "strict",
            LaunchMode::Deadline => "deadline",
        }
    }
}

impl StreamSpec {
    /// Time by which a message is due at the sender before it is to leave.
    pub fn lead(&self) -> Nanos {
        self.launch.map_or(Nanos(0), |launch| launch.lead)
    }

    /// Time by which a message is due at the sender before its queue may give it to the device. Zero without launch times, and if
    /// launch times are deadlines, before which a message may leave at any time.
    pub fn least_wait(&self) -> Nanos {
        let strict = self.launch.filter(|launch| launch.mode == LaunchMode::Strict);
        strict.map_or(Nanos(0), |launch| Nanos((launch.lead.0 - launch.ahead.0).max(0)))
    }
}

impl fmt::Display for StreamSpec {
    /// For example `offset 100 us, launch times 1 ms ahead`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}", self.offset)?;
        let Some(launch) = self.launch else { return Ok(()) };
        write!(f, ", launch times {} ahead", launch.lead)?;
        if launch.mode == LaunchMode::Deadline {
            f.write_str(" (deadline)")?;
        }
        if launch.by == LaunchBy::Existing { f.write_str(" (existing queue)") } else { Ok(()) }
    }
}

/// Base of the due times of a trial's messages, and what became of their launch times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamFact {
    /// Time from which the periods of the messages are counted, ns of CLOCK_TAI or of the hardware clock `card`.
    pub base_ns: i64,
    /// Time by which CLOCK_TAI was ahead of CLOCK_MONOTONIC when the due times were computed, ns.
    pub ahead_ns: i64,
    /// The time in `ahead_ns` is wrong by at most this much, ns.
    pub within_ns: i64,
    /// The hardware clock by which messages are due; `None` = they are due by CLOCK_TAI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<StreamCard>,
    /// Messages whose launch time the kernel refused, in the order of their slots; at most [`StreamFact::MOST_REFUSED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedLaunch>,
    /// Number of refused launch times that are not in `refused`.
    #[serde(default)]
    pub refused_more: u64,
    /// Whether the kernel had no room for more reports of refused launch times.
    #[serde(default)]
    pub reports_full: bool,
}

/// Hardware clock of a stream, in comparison with CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCard {
    /// Number of the clock: N of /dev/ptpN.
    pub number: u32,
    /// Time by which the clock was ahead of CLOCK_MONOTONIC when the due times were computed, ns.
    pub ahead_ns: i64,
    /// The time in `ahead_ns` is wrong by at most this much, ns.
    pub within_ns: i64,
    /// Time by which the clock moved against CLOCK_MONOTONIC until the trial ended, ns: by so much later (or, if negative, earlier) by
    /// this clock the last message was due. `None` = the clock could not be read again.
    pub moved_ns: Option<i64>,
}

impl StreamFact {
    /// Largest number of messages in [`StreamFact::refused`].
    pub const MOST_REFUSED: usize = 100_000;
}

/// A message whose launch time the kernel refused, so that it was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedLaunch {
    /// Number of the slot of the message.
    pub slot: u64,
    /// Why the message was not sent.
    pub why: LaunchRefusal,
}

/// Why the kernel did not send a message with a launch time (`ee_code` with the origin SO_EE_ORIGIN_TXTIME of linux/errqueue.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchRefusal {
    /// The launch time had passed when the message reached the queue, or its clock or its mode is not the one of the queue.
    Invalid,
    /// The launch time passed while the message waited in the queue.
    Missed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_a_level_of_a_factor() {
        let launch = LaunchSpec { lead: Nanos(1_000_000), ahead: Nanos(300_000), priority: 3, ..LaunchSpec::default() };
        let stream = StreamSpec { offset: Nanos(100_000), launch: Some(launch) };
        assert_eq!(stream.to_string(), "offset 100 us, launch times 1 ms ahead");
        let deadline = StreamSpec { launch: Some(LaunchSpec { mode: LaunchMode::Deadline, ..launch }), ..stream };
        assert_eq!(deadline.to_string(), "offset 100 us, launch times 1 ms ahead (deadline)");
        let existing = StreamSpec { launch: Some(LaunchSpec { by: LaunchBy::Existing, ..launch }), ..stream };
        assert_eq!(existing.to_string(), "offset 100 us, launch times 1 ms ahead (existing queue)");
        assert_eq!(
            [stream, deadline, StreamSpec { launch: None, ..stream }].map(|of| of.least_wait().0),
            [700_000, 0, 0]
        );
        assert_eq!((stream.lead(), StreamSpec { launch: None, ..stream }.lead()), (Nanos(1_000_000), Nanos(0)));
        let text = serde_json::to_string(&stream).unwrap();
        assert_eq!(serde_json::from_str::<StreamSpec>(&text).unwrap(), stream);
    }
}
