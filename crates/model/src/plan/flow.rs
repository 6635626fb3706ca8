//! Flows: messages from the publishers of one topic to its subscribers, and the counters that each end of a flow keeps.

use crate::{Nanos, ReceiveMode};
use serde::{Deserialize, Serialize};

/// Timeout of the messages of a flow that are answered (pings): a later answer counts as `after_timeout`.
pub const FLOW_TIMEOUT: Nanos = Nanos::from_secs(1);
/// Largest number of subscribers that a flow can have.
pub const MOST_SUBSCRIBERS: u32 = 64;
/// Largest number of publishers that a flow can have.
pub const MOST_PUBLISHERS: u32 = 64;

/// Parameters of a flow, as the study asks for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Length of the window: the middle part of the flow, in which messages are counted for the figures.
    pub window: Nanos,
    /// Time for which the publisher sends before the window, in which messages are counted, begins.
    pub ramp_up: Nanos,
    /// Time for which the publisher continues to send after the window, so that the end of the flow is not in the
    /// window.
    pub drain: Nanos,
    /// Number of publishers; each publisher sends at the rate and with the payload of the study. Only messages of the
    /// first publisher have rows.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
    /// Number of subscribers of the flow.
    pub subscribers: u32,
    /// Number of payloads that one message of the flow contains.
    pub pack: u32,
    /// True if messages may wait in the driver, which then sends several messages together.
    #[serde(default)]
    pub batching: bool,
    /// Number of messages that may be sent and not acknowledged before the publisher waits; `None` means the driver's
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unacked_limit: Option<u32>,
    /// True if each end has its own place: a network namespace or a pod.
    #[serde(default)]
    pub apart: bool,
    /// Which messages of the flow are recorded one by one, as rows with their times.
    pub rows: FlowRows,
    /// Receive mode: how the subscribers of the flow receive messages.
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
    /// Distance, in messages, from one message that has a row to the next message that has a row. `None` if no message
    /// has a row.
    pub fn row_every(&self) -> Option<u64> {
        match self.rows {
            FlowRows::None => None,
            FlowRows::Pings { every } => Some(every),
            FlowRows::OneWay => Some(1),
        }
    }

    /// True if some messages of the flow are answered.
    pub fn has_answers(&self) -> bool {
        matches!(self.rows, FlowRows::Pings { .. })
    }

    /// Total time for which a publisher sends: before the window (ramp-up), in the window, and after it (drain).
    pub fn whole(&self) -> Nanos {
        Nanos(self.ramp_up.0.saturating_add(self.window.0).saturating_add(self.drain.0))
    }
}

/// Which messages of a flow are recorded one by one, as rows with their times, in addition to the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowRows {
    /// No message of the flow has a row; there are only counters.
    None,
    /// One message in `every` has a row and is a ping, which the first subscriber answers.
    Pings {
        /// Number of messages from one answered message (ping) to the next.
        every: u64,
    },
    /// All messages have rows: each subscriber records the time at which it received each message. No message is
    /// answered.
    OneWay,
}

/// Part of a flow: before, in or after the window. The sequence number of a message contains the part and a counter of
/// the publisher's messages (the message counter). A subscriber therefore counts each message in the part in which the
/// message was sent, not in the part in which the message arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum FlowPart {
    /// The part of a flow before the window in which messages are counted.
    RampUp = 0,
    /// The window: the part of a flow that the figures count.
    Window = 1,
    /// The part of a flow after the window in which messages are counted.
    Drain = 2,
}

/// Counters of one end for one part of a flow (before, in or after the window). The counters count messages, not
/// payloads: one message may contain several payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartCounts {
    /// Number of messages that the publisher sent, or that the subscriber received for the first time.
    pub messages: u64,
    /// Number of payload bytes in the counted messages of this part of the flow.
    #[serde(rename = "octets")]
    pub bytes: u64,
    /// Message counter (the position in the sequence of the publisher's messages, from 0) of the first message that was
    /// sent or received in this part of the flow.
    pub first: u64,
    /// Monotonic time of the first message of this part of the flow, ns; 0 if there was no message.
    pub first_ns: i64,
    /// Monotonic time of the last message of this part of the flow, ns.
    pub last_ns: i64,
    /// CPU time that all threads of the process had used when this part of the flow began, ns; 0 if the CPU time was
    /// not read.
    pub cpu_began_ns: i64,
}

/// Counters of one end for one second of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SecondCounts {
    /// Time of the second: whole seconds of the monotonic clock.
    pub second: i64,
    /// Number of messages that the publisher sent, or that the subscriber received for the first time.
    pub messages: u64,
    /// Number of payload bytes in the counted messages of this second.
    #[serde(rename = "octets")]
    pub bytes: u64,
    /// Number of messages that were skipped in this second, because a message that was sent later arrived first. A
    /// skipped message is lost, or may still arrive out of order.
    #[serde(default)]
    pub missing: u64,
    /// Number of messages that arrived after a message that was sent later.
    #[serde(default)]
    pub out_of_order: u64,
    /// Number of messages that arrived although the same message had already arrived.
    #[serde(default)]
    pub duplicates: u64,
    /// For a publisher: time of the send calls of this second that took 100 us or longer, or that were refused, ns.
    #[serde(default)]
    pub blocked_ns: i64,
}

/// Counters of the messages that one end of a flow sent or received.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowCounts {
    /// Counters of each part of the flow, in the order of [`FlowPart`].
    pub parts: [PartCounts; 3],
    /// Counters of each second in which the end sent or received a message.
    pub seconds: Vec<SecondCounts>,
    /// Number of messages of the window that arrived after a message that was sent later.
    #[serde(default)]
    pub out_of_order: u64,
    /// Number of messages of the window that arrived although the same message had already arrived.
    #[serde(default)]
    pub duplicates: u64,
    /// Number of messages that were too old to decide whether they are duplicates.
    #[serde(default)]
    pub stale: u64,
    /// Number of messages that do not belong to this flow.
    #[serde(default)]
    pub foreign: u64,
    /// Number of missing messages: messages that never arrived, although a message of the same publisher that was sent
    /// later arrived.
    #[serde(default)]
    pub missing: u64,
    /// For a publisher: number of messages of its flow so far, that is, its last message counter plus one. For a
    /// subscriber: highest received message counter plus one, summed over the publishers.
    #[serde(default)]
    pub next: u64,
    /// CPU time that the process had used at the end of the flow, ns; 0 if the CPU time was not read.
    #[serde(default)]
    pub cpu_ended_ns: i64,
    /// For a publisher: total time that the send calls of the window took, ns.
    #[serde(default)]
    pub send_ns: i64,
    /// For a publisher: the part of `send_ns` that was spent in send calls that took 100 us or longer, or that were
    /// refused, ns.
    #[serde(default)]
    pub blocked_ns: i64,
    /// For a publisher: duration of the longest send call in the window, ns.
    #[serde(default)]
    pub longest_ns: i64,
    /// For a publisher: number of send calls in the window of the flow that the driver refused.
    #[serde(default)]
    pub refused: u64,
    /// For a publisher: number of send calls in all parts of the flow that the driver refused.
    #[serde(default)]
    pub refused_in_all: u64,
    /// For a publisher: error code `TB_E*` of the last refused send call; 0 if no call was refused.
    #[serde(default)]
    pub refusal: i64,
}

impl FlowCounts {
    /// Counters for the given part of the flow (before, in or after the window).
    pub fn part(&self, part: FlowPart) -> &PartCounts {
        &self.parts[part as usize]
    }

    /// Number of messages in all parts of the flow together.
    pub fn messages(&self) -> u64 {
        self.parts.iter().map(|p| p.messages).sum()
    }

    /// Adds up the counters of several ends: numbers are added, and the period from the first to the last time covers
    /// the times of all ends. `None` if there are no ends.
    pub fn of_all<'a>(mut ends: impl Iterator<Item = &'a FlowCounts>) -> Option<FlowCounts> {
        let first = ends.next()?.clone();
        Some(ends.fold(first, FlowCounts::with))
    }

    fn with(mut self, other: &FlowCounts) -> FlowCounts {
        // 0 means that a time was not read; then the sum is not known either.
        let sum_of_read = |a: i64, b: i64| if a == 0 || b == 0 { 0 } else { a + b };
        for (part, other) in self.parts.iter_mut().zip(&other.parts) {
            *part = PartCounts {
                messages: part.messages + other.messages,
                bytes: part.bytes + other.bytes,
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
                    s.bytes += theirs.bytes;
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

    /// CPU time that the process used during the window, ns; `None` if the CPU time was not read.
    pub fn cpu_ns(&self) -> Option<i64> {
        let began = self.part(FlowPart::Window).cpu_began_ns;
        let ended = match self.part(FlowPart::Drain).cpu_began_ns {
            0 => self.cpu_ended_ns,
            drain => drain,
        };
        (began > 0 && ended >= began).then_some(ended - began)
    }
}

/// Expands to an array of end names: the given word with the numbers 2 to 64, e.g. `pong2` to `pong64`.
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

/// Names of the subscribers of a flow after the first subscriber.
const FURTHER_SUBSCRIBERS: [&str; MOST_SUBSCRIBERS as usize - 1] = further!("pong");

/// Names of the publishers of a flow after the first publisher.
const FURTHER_PUBLISHERS: [&str; MOST_PUBLISHERS as usize - 1] = further!("ping");

/// Name of the end of the subscriber with this number, from 1: `pong`, `pong2` to `pong64`.
pub fn subscriber_end(number: u8) -> &'static str {
    FURTHER_SUBSCRIBERS.get(usize::from(number).wrapping_sub(2)).copied().unwrap_or("pong")
}

/// Name of the end of the publisher with this number, from 1: `ping`, `ping2` to `ping64`.
pub fn publisher_end(number: u8) -> &'static str {
    FURTHER_PUBLISHERS.get(usize::from(number).wrapping_sub(2)).copied().unwrap_or("ping")
}

/// True if the end with this name is a publisher, that is, if its name begins with `ping`.
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
            bytes: messages * 64,
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
        assert_eq!((window.messages, window.bytes, window.first_ns, window.last_ns), (30, 1920, 1000, 1103));
        assert_eq!((both.messages(), both.next, both.longest_ns), (32, 32, 1003));
        assert_eq!(both.cpu_ns(), Some(80), "40 ns of each");
        assert_eq!(both.seconds, [second(0, 4), second(1, 26)]);
        // If one end sent nothing in a part, the part begins with the other end's first message.
        assert_eq!(both.part(FlowPart::Drain).first_ns, 0);
        let silent = FlowCounts { parts: [part(0, 0, 0, 0); 3], ..FlowCounts::default() };
        let one_of_two = FlowCounts::of_all([&silent, &a].into_iter()).unwrap();
        assert_eq!(one_of_two.part(FlowPart::Window).first_ns, 1000);
        assert_eq!(one_of_two.cpu_ns(), None, "of one it was not read");
    }
}
