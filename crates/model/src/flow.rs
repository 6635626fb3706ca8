//! A flow: publishers of one topic and their subscribers, and what each of them counts.

use crate::{Nanos, ReceiveMode};
use serde::{Deserialize, Serialize};

/// A ping within a flow that is answered later than this is `after_timeout`.
pub const FLOW_TIMEOUT: Nanos = Nanos::from_secs(1);
/// Most subscribers of a flow.
pub const MOST_SUBSCRIBERS: u32 = 64;
/// Most publishers of a flow.
pub const MOST_PUBLISHERS: u32 = 64;

/// Parameters of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Length of the window that counts.
    pub window: Nanos,
    /// The publisher sends for this long before the window.
    pub ramp_up: Nanos,
    /// It goes on sending for this long after it, so that the end of the flow lies outside.
    pub drain: Nanos,
    /// How many send, each what the study says. The first is the one whose messages have rows.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
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
    /// Each end has a place of its own: a network namespace, or a pod.
    #[serde(default)]
    pub apart: bool,
    /// What is kept of single messages.
    pub rows: FlowRows,
    /// How the subscribers receive.
    pub receive: ReceiveMode,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_one(n: &u32) -> bool {
    *n == 1
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

    /// What several ends counted, as one: numbers are sums, times from the first to the last. `None` = there is none.
    pub fn of_all<'a>(mut ends: impl Iterator<Item = &'a FlowCounts>) -> Option<FlowCounts> {
        let first = ends.next()?.clone();
        Some(ends.fold(first, FlowCounts::with))
    }

    fn with(mut self, other: &FlowCounts) -> FlowCounts {
        // 0 = not read, of one and so of all.
        let sum_of_read = |a: i64, b: i64| if a == 0 || b == 0 { 0 } else { a + b };
        for (part, other) in self.parts.iter_mut().zip(&other.parts) {
            *part = PartCounts {
                messages: part.messages + other.messages,
                octets: part.octets + other.octets,
                first: part.first,
                first_ns: match (part.first_ns, other.first_ns) {
                    (0, ns) | (ns, 0) => ns,
                    (a, b) => a.min(b),
                },
                last_ns: part.last_ns.max(other.last_ns),
                cpu_began_ns: sum_of_read(part.cpu_began_ns, other.cpu_began_ns),
            };
        }
        for theirs in &other.seconds {
            match self.seconds.iter_mut().find(|s| s.second == theirs.second) {
                None => self.seconds.push(*theirs),
                Some(s) => {
                    s.messages += theirs.messages;
                    s.octets += theirs.octets;
                    s.missing += theirs.missing;
                    s.out_of_order += theirs.out_of_order;
                    s.duplicates += theirs.duplicates;
                    s.blocked_ns += theirs.blocked_ns;
                }
            }
        }
        self.seconds.sort_by_key(|s| s.second);
        self.out_of_order += other.out_of_order;
        self.duplicates += other.duplicates;
        self.stale += other.stale;
        self.foreign += other.foreign;
        self.missing += other.missing;
        self.next += other.next;
        self.cpu_ended_ns = sum_of_read(self.cpu_ended_ns, other.cpu_ended_ns);
        self.send_ns += other.send_ns;
        self.blocked_ns += other.blocked_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.refused += other.refused;
        self.refused_in_all += other.refused_in_all;
        if other.refusal != 0 {
            self.refusal = other.refusal;
        }
        self
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

/// `pong2` to `pong64`, and the same of another word.
macro_rules! further {
    ($word:literal) => {
        further!(@ $word
            2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33
            34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64)
    };
    (@ $word:literal $($number:literal)+) => {
        [$(concat!($word, $number)),+]
    };
}

/// Words of the subscribers after the first.
const FURTHER_SUBSCRIBERS: [&str; MOST_SUBSCRIBERS as usize - 1] = further!("pong");

/// Words of the publishers after the first.
const FURTHER_PUBLISHERS: [&str; MOST_PUBLISHERS as usize - 1] = further!("ping");

/// The name of a subscriber's end: `pong`, `pong2` to `pong64`.
pub fn subscriber_end(number: u8) -> &'static str {
    FURTHER_SUBSCRIBERS.get(usize::from(number).wrapping_sub(2)).copied().unwrap_or("pong")
}

/// The name of a publisher's end: `ping`, `ping2` to `ping64`.
pub fn publisher_end(number: u8) -> &'static str {
    FURTHER_PUBLISHERS.get(usize::from(number).wrapping_sub(2)).copied().unwrap_or("ping")
}

/// An end of this name sends.
pub fn is_publisher(end: &str) -> bool {
    end.starts_with("ping")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_apart_by_their_numbers() {
        assert_eq!([1, 2, 64].map(subscriber_end), ["pong", "pong2", "pong64"]);
        assert_eq!([1, 2, 64].map(publisher_end), ["ping", "ping2", "ping64"]);
        assert!(is_publisher("ping12") && !is_publisher("pong12"));
    }

    #[test]
    fn counts_of_two_are_their_sum() {
        let part = |messages, first_ns, last_ns, cpu_began_ns| PartCounts {
            messages,
            octets: messages * 64,
            first: 0,
            first_ns,
            last_ns,
            cpu_began_ns,
        };
        let second = |second, messages| SecondCounts { second, messages, ..SecondCounts::default() };
        let one = |messages, begin, cpu, seconds: &[SecondCounts]| FlowCounts {
            parts: [part(1, begin - 9, begin - 1, 0), part(messages, begin, begin + 100, cpu), part(0, 0, 0, 0)],
            seconds: seconds.to_vec(),
            next: messages + 1,
            cpu_ended_ns: cpu + 40,
            longest_ns: begin,
            ..FlowCounts::default()
        };
        let (a, b) = (one(10, 1000, 5, &[second(1, 10)]), one(20, 1003, 7, &[second(0, 4), second(1, 16)]));
        let both = FlowCounts::of_all([&a, &b].into_iter()).unwrap();
        let window = both.part(FlowPart::Window);
        assert_eq!((window.messages, window.octets, window.first_ns, window.last_ns), (30, 1920, 1000, 1103));
        assert_eq!((both.messages(), both.next, both.longest_ns), (32, 32, 1003));
        assert_eq!(both.cpu_ns(), Some(80), "40 ns of each");
        assert_eq!(both.seconds, [second(0, 4), second(1, 26)]);
        // A part in which one of them sent nothing begins with the other.
        assert_eq!(both.part(FlowPart::Drain).first_ns, 0);
        let silent = FlowCounts { parts: [part(0, 0, 0, 0); 3], ..FlowCounts::default() };
        let one_of_two = FlowCounts::of_all([&silent, &a].into_iter()).unwrap();
        assert_eq!(one_of_two.part(FlowPart::Window).first_ns, 1000);
        assert_eq!(one_of_two.cpu_ns(), None, "of one it was not read");
    }
}
