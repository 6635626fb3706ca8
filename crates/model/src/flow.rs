//! A flow: one publisher and its subscribers, and what each of them counts.

use crate::{Nanos, ReceiveMode};
use serde::{Deserialize, Serialize};

/// A ping within a flow that is answered later than this is `after_timeout`.
pub const FLOW_TIMEOUT: Nanos = Nanos::from_secs(1);
/// Most subscribers of one publisher.
pub const MOST_SUBSCRIBERS: u32 = 64;

/// Parameters of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Length of the window that counts.
    pub window: Nanos,
    /// The publisher sends for this long before the window.
    pub ramp_up: Nanos,
    /// It goes on sending for this long after it, so that the end of the flow lies outside.
    pub drain: Nanos,
    /// How many receive.
    pub subscribers: u32,
    /// Payloads in one message.
    pub pack: u32,
    /// Messages may wait in the driver for others to go with them.
    #[serde(default)]
    pub batching: bool,
    /// Messages that may be sent and not acknowledged before the publisher waits; `None` = as the driver has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unacked_limit: Option<u32>,
    /// Each subscriber has a network namespace of its own.
    #[serde(default)]
    pub apart: bool,
    /// What is kept of single messages.
    pub rows: FlowRows,
    /// How the subscribers receive.
    pub receive: ReceiveMode,
}

impl Flow {
    /// One message in so many has rows; `None` = none has.
    pub fn row_every(&self) -> Option<u64> {
        match self.rows {
            FlowRows::None => None,
            FlowRows::Pings { every } => Some(every),
            FlowRows::OneWay => Some(1),
        }
    }

    /// The publisher takes answers.
    pub fn has_answers(&self) -> bool {
        matches!(self.rows, FlowRows::Pings { .. })
    }

    /// All that the publisher sends takes this long.
    pub fn whole(&self) -> Nanos {
        Nanos(self.ramp_up.0.saturating_add(self.window.0).saturating_add(self.drain.0))
    }
}

/// Which messages of a flow have rows beside the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowRows {
    /// None.
    None,
    /// One in so many is a ping: the first subscriber answers it.
    Pings {
        /// So many.
        every: u64,
    },
    /// All: each subscriber keeps when it received them. Nothing is answered.
    OneWay,
}

/// The parts of a flow. A message carries its part beside the counter, so that a subscriber counts by what was sent when,
/// not by when it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum FlowPart {
    /// Before the window.
    RampUp = 0,
    /// What counts.
    Window = 1,
    /// After it.
    Drain = 2,
}

/// What one end counted of one part. Messages, not payloads: one message may hold several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartCounts {
    /// Sent, or received for the first time.
    pub messages: u64,
    /// Octets of their payloads.
    pub octets: u64,
    /// Counter of the first; of a publisher.
    pub first: u64,
    /// Monotonic time of the first, ns; 0 = there was none.
    pub first_ns: i64,
    /// Monotonic time of the last, ns.
    pub last_ns: i64,
    /// CPU time of the process, all its threads, when the part began, ns; 0 = not read.
    pub cpu_began_ns: i64,
}

/// One second of the monotonic clock, as one end saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SecondCounts {
    /// Whole seconds of the monotonic clock at its beginning.
    pub second: i64,
    /// Messages sent, or received for the first time.
    pub messages: u64,
    /// Octets of their payloads.
    pub octets: u64,
    /// Counters that were passed over: lost, or still to come out of order.
    #[serde(default)]
    pub missing: u64,
    /// Messages that came after a later one.
    #[serde(default)]
    pub out_of_order: u64,
    /// Messages that came again.
    #[serde(default)]
    pub duplicates: u64,
    /// Time that the publisher was blocked, ns.
    #[serde(default)]
    pub blocked_ns: i64,
}

/// What one end counted of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowCounts {
    /// By [`FlowPart`].
    pub parts: [PartCounts; 3],
    /// Seconds in which something was counted.
    pub seconds: Vec<SecondCounts>,
    /// Messages that came after a later one, in the window.
    #[serde(default)]
    pub out_of_order: u64,
    /// Messages that came again, in the window.
    #[serde(default)]
    pub duplicates: u64,
    /// Messages so old that a duplicate cannot be told any more.
    #[serde(default)]
    pub stale: u64,
    /// Messages that are not of this flow.
    #[serde(default)]
    pub foreign: u64,
    /// Counters passed over in all and never seen, up to the highest that came.
    #[serde(default)]
    pub missing: u64,
    /// Counter after the highest that was sent, or came.
    #[serde(default)]
    pub next: u64,
    /// CPU time of the process at the end, ns; 0 = not read.
    #[serde(default)]
    pub cpu_ended_ns: i64,
    /// Publisher: time within calls that send, in the window, ns.
    #[serde(default)]
    pub send_ns: i64,
    /// Publisher: the part of it in calls of 100 us or longer, or that were refused, ns.
    #[serde(default)]
    pub blocked_ns: i64,
    /// Publisher: the longest such call, ns.
    #[serde(default)]
    pub longest_ns: i64,
    /// Publisher: calls that the driver refused, in the window.
    #[serde(default)]
    pub refused: u64,
    /// Publisher: the same over all parts.
    #[serde(default)]
    pub refused_in_all: u64,
    /// Publisher: the last refusal, a `TB_E*` code; 0 = none.
    #[serde(default)]
    pub refusal: i64,
}

impl FlowCounts {
    /// Of one part.
    pub fn part(&self, part: FlowPart) -> &PartCounts {
        &self.parts[part as usize]
    }

    /// Messages of all parts.
    pub fn messages(&self) -> u64 {
        self.parts.iter().map(|p| p.messages).sum()
    }

    /// CPU time of the process over the window, ns.
    pub fn cpu_ns(&self) -> Option<i64> {
        let began = self.part(FlowPart::Window).cpu_began_ns;
        let ended = match self.part(FlowPart::Drain).cpu_began_ns {
            0 => self.cpu_ended_ns,
            drain => drain,
        };
        (began > 0 && ended >= began).then_some(ended - began)
    }
}

/// Words of the subscribers after the first.
#[rustfmt::skip]
const FURTHER: [&str; MOST_SUBSCRIBERS as usize - 1] = [
    "pong2", "pong3", "pong4", "pong5", "pong6", "pong7", "pong8", "pong9",
    "pong10", "pong11", "pong12", "pong13", "pong14", "pong15", "pong16", "pong17",
    "pong18", "pong19", "pong20", "pong21", "pong22", "pong23", "pong24", "pong25",
    "pong26", "pong27", "pong28", "pong29", "pong30", "pong31", "pong32", "pong33",
    "pong34", "pong35", "pong36", "pong37", "pong38", "pong39", "pong40", "pong41",
    "pong42", "pong43", "pong44", "pong45", "pong46", "pong47", "pong48", "pong49",
    "pong50", "pong51", "pong52", "pong53", "pong54", "pong55", "pong56", "pong57",
    "pong58", "pong59", "pong60", "pong61", "pong62", "pong63", "pong64",
];

/// The name of a subscriber's end: `pong`, `pong2` to `pong64`.
pub fn subscriber_end(number: u8) -> &'static str {
    FURTHER.get(usize::from(number).wrapping_sub(2)).copied().unwrap_or("pong")
}
