//! How the report shows a study.

use super::{Duration, Named, Quantile};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// How the report shows the study.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportKeys {
    /// Title; the question when absent.
    pub title: Option<String>,
    /// Quantiles to show. Default: 0.5, 0.9, 0.99, 0.999, 0.9999.
    pub quantiles: Option<At<Vec<Quantile>>>,
    /// Factor on the x axis of the main figure. Default: `payload`.
    pub x: Option<At<String>>,
    /// A factor and one of its levels, such as `{ place.network: host }`: what each other level costs against it, in %,
    /// as a table and a figure.
    pub against: Option<At<Named<At<String>>>>,
    /// A table that counts messages in bins of equal width from zero.
    pub histogram: Option<At<HistogramKeys>>,
    /// How rare a message the tail estimate is about. Default: 1 in a power of ten, 3 to 30 times the messages.
    pub tail: Option<TailKeys>,
    /// A range of every trial that has figures of its own, beside those over the whole.
    pub range: Option<At<RangeKeys>>,
    /// A limit: how many messages are above it, by metric, over the whole and in the range.
    pub above: Option<At<Duration>>,
    /// What others found on other hardware: shown beside what was measured, and marked so.
    pub published: Option<Vec<At<PublishedKeys>>>,
}

/// A table of equal bins, and an open one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistogramKeys {
    /// What is counted. Default: `round-trip`.
    pub metric: Option<HistogramMetric>,
    /// Width of a bin.
    pub bin: At<Duration>,
    /// How many bins there are below the open one.
    #[schemars(range(min = 1, max = 100))]
    pub bins: At<u32>,
}

/// From when until when, after slot 0 of the trial was due.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RangeKeys {
    /// Its begin.
    pub from: Duration,
    /// Its end, not included.
    pub to: Duration,
}

/// What the tail estimate is about.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TailKeys {
    /// One message in so many. Nothing is told beyond 100 times the messages of a condition.
    #[schemars(range(min = 100))]
    pub one_in: At<u64>,
}

/// What a table of bins counts.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HistogramMetric {
    /// Until the answer is received.
    RoundTrip,
    /// Half of it.
    HalfRoundTrip,
    /// From the ping end to the pong end: one way.
    Out,
    /// From the ping end until the kernel of the pong end has the message; needs receive stamps of the kernel.
    OutNetwork,
    /// From the pong end to the ping end.
    Back,
    /// From the pong end until the kernel of the ping end has the answer; needs receive stamps of the kernel.
    BackNetwork,
    /// From when the message was due until its answer is received.
    FromIntended,
    /// From the wake-up until the call that publishes has returned.
    WakeToSent,
}

/// What others found: `name`, and at least one of the rest.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedKeys {
    /// Which of their rows or cases it is.
    pub name: String,
    /// What they say.
    pub text: Option<String>,
    /// Counts in the bins of `histogram`, the open bin last.
    pub histogram: Option<At<Vec<u64>>>,
    /// In how many of their runs each pattern was seen.
    pub patterns: Option<PatternKeys>,
}

/// Runs by what became of communication.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatternKeys {
    /// Discovery did not complete while the load ran.
    pub discovery_starved: Option<u64>,
    /// A call that publishes blocked.
    pub publish_blocked: Option<u64>,
    /// The thread that publishes waited for a CPU itself.
    pub sender_starved: Option<u64>,
    /// The thread that publishes stood still between its calls, and did not wait for a CPU.
    pub main_thread_blocked: Option<u64>,
    /// Messages were never answered, or never sent.
    pub messages_lost: Option<u64>,
    /// Answers took long, and nothing else did.
    pub answers_late: Option<u64>,
    /// The whole took longer for another reason.
    pub total_time_longer: Option<u64>,
    /// Nothing of it.
    pub no_effect: Option<u64>,
}
