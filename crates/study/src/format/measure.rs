//! Kinds of measurement and their options.

use super::{Cpus, Duration, UnackedLimit, WarmUp};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Kind of measurement: `ping-pong`, `throughput` or `fan-out`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MeasureChoice {
    /// Ping-pong: the ping end sends a message, and the pong end sends an answer.
    PingPong(PingPongKeys),
    /// Throughput: one or more publishers send as fast as the driver accepts messages, or at a rate, and the
    /// subscribers count the messages that arrive.
    Throughput(ThroughputKeys),
    /// Fan-out: one publisher sends at a rate, and each subscriber records when every message arrived.
    FanOut(FanOutKeys),
}

/// Options of the measurement `throughput`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThroughputKeys {
    /// Length of the window: the time in which messages are counted. Default: `10 s`.
    pub duration: Option<At<Duration>>,
    /// Time for which the publisher sends before the window. Default: `1 s`.
    pub ramp_up: Option<At<Duration>>,
    /// Time for which the publisher continues to send after the window. Default: `200 ms`.
    pub drain: Option<At<Duration>>,
    /// Number of publishers. All publishers use the same topic; each sends at the rate of the study, and all begin at
    /// the same time. Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub publishers: Option<At<u32>>,
    /// Number of subscribers. Each subscriber receives the messages of all publishers. Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub subscribers: Option<At<u32>>,
    /// Number of payloads in one message. Tailbound packs the payloads, not the driver; each payload counts as a
    /// sample. Default: 1.
    #[schemars(range(min = 1, max = 65_535))]
    pub pack: Option<At<u32>>,
    /// Whether messages may wait in the driver, which then sends several messages together, if the driver supports
    /// this. Default: `off`.
    pub batching: Option<BatchingChoice>,
    /// Number of messages that may be sent and not acknowledged before the publisher waits, if the driver supports such
    /// a limit. Needs `qos: { reliability: reliable, history: keep-all }`. Default: `none`, which means the driver's
    /// own limit.
    pub unacked_limit: Option<At<UnackedLimit>>,
    /// Where the ends run if there are more than two ends. Default: `processes`.
    pub spread: Option<SpreadChoice>,
    /// Number of messages between pings: one message in this number is a ping. The first subscriber answers the ping,
    /// and the report shows the latency under load as a round trip. Default: no pings.
    #[schemars(range(min = 1))]
    pub ping_every: Option<At<u64>>,
    /// How the subscribers receive messages. Default: `listener`.
    pub receive: Option<At<ReceiveChoice>>,
}

/// Whether the driver of a publisher sends several messages together.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BatchingChoice {
    /// The driver sends each message immediately.
    Off,
    /// A message waits in the driver until there are enough messages for a packet. A driver without batching cannot run
    /// the condition.
    On,
}

/// Where the ends of a flow run if there are more than two ends.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SpreadChoice {
    /// Publishers are processes at the place of the ping end, subscribers are processes at the place of the pong end.
    Processes,
    /// Each end has its own network namespace; `path: bridge` joins the namespaces.
    Namespaces,
    /// Each end has its own pod, created as described by the place of the ping end for publishers, or of the pong end
    /// for subscribers. Both places must be pods.
    Pods,
}

/// Options of the measurement `fan-out`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FanOutKeys {
    /// Length of the window: the time in which messages are counted. Default: `10 s`.
    pub duration: Option<At<Duration>>,
    /// Time for which the publisher sends before the window. Default: `1 s`.
    pub ramp_up: Option<At<Duration>>,
    /// Time for which the publisher continues to send after the window. Default: `200 ms`.
    pub drain: Option<At<Duration>>,
    /// Number of subscribers. Default: 1.
    #[schemars(range(min = 1, max = 64))]
    pub subscribers: Option<At<u32>>,
    /// Where the ends run if there are more than two ends. Default: `processes`.
    pub spread: Option<SpreadChoice>,
    /// How the subscribers receive messages. Default: `listener`.
    pub receive: Option<At<ReceiveChoice>>,
}

/// Options of the measurement `ping-pong`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PingPongKeys {
    /// Length of each trial as a number of measured slots. It cannot be combined with `duration` or `loops`.
    #[schemars(range(min = 1))]
    pub slots: Option<At<u64>>,
    /// Length of each trial as a time, not counting the warm-up. It cannot be combined with `slots` or `loops`. Default: `10 s`.
    pub duration: Option<At<Duration>>,
    /// Length of each trial as a number of messages that are sent after the warm-up. Missed slots do not count, so that a
    /// sender that was held up for a minute ends a minute later. Needs `on_overrun: skip`. A trial has at most four slots for
    /// each loop. It cannot be combined with `slots` or `duration`.
    #[schemars(range(min = 1))]
    pub loops: Option<At<u64>>,
    /// Length of the warm-up, as a number of slots or as a time. Warm-up slots are recorded and marked, but statistics
    /// leave them out. Default: `200 ms`; with `rate: max`, 1000 slots.
    pub warm_up: Option<At<WarmUp>>,
    /// Timeout: an answer that takes longer counts as `after_timeout`. Default: `1 s`.
    pub timeout: Option<At<Duration>>,
    /// What the sender does with slots that it missed because it was delayed. Default: `catch-up`.
    pub on_overrun: Option<At<OverrunChoice>>,
    /// How the ends receive messages. Default: `listener`.
    pub receive: Option<ReceiveChoice>,
    /// Whether the receiving thread passes messages to a second thread. Default: `none`.
    pub hand_off: Option<At<HandOffChoice>>,
}

/// What the sender does with slots that it missed because it was delayed.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OverrunChoice {
    /// Each missed slot is sent immediately, with its own intended time.
    CatchUp,
    /// Slots that the sender missed are not sent and count as `not_sent`.
    Skip,
}

/// How the ends receive messages.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReceiveChoice {
    /// Messages are received in a callback on a thread of the middleware.
    Listener,
    /// A thread of the end blocks until a message arrives.
    Block,
    /// A thread of the end polls for messages without pause.
    Spin,
    /// A single-threaded executor: one thread waits for the next slot and for messages at the same time, and handles
    /// them one after the other. `arrangement` says whether both ends share the executor.
    Executor,
}

/// Whether the receiving thread also processes the messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HandOffChoice {
    /// The receiving thread also processes the messages.
    None,
    /// The receiving thread wakes a second thread, which processes the messages.
    Thread(HandOffKeys),
}

/// Options of the second thread, which processes the received messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandOffKeys {
    /// CPUs of the second thread. Default: the CPUs of the end.
    pub cpus: Option<At<Cpus>>,
}
