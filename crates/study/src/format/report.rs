//! Keys of a study file that describe how the report shows the study.

use super::{Duration, HistogramKeys, Named, PublishedKeys, Quantile};
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// How the report shows the result of the study.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportKeys {
    /// Title of the report. Default: the question of the study.
    pub title: Option<String>,
    /// Quantiles that the report shows. Default: 0.5, 0.9, 0.99, 0.999, 0.9999.
    pub quantiles: Option<At<Vec<Quantile>>>,
    /// Factor on the horizontal axis of the report's main chart. Default: `payload`.
    pub x: Option<At<String>>,
    /// A factor and its baseline level, such as `{ place.network: host }`: a table and a figure show the difference of
    /// each other level to the baseline level, in %.
    pub against: Option<At<Named<At<String>>>>,
    /// A table that counts messages in bins of equal width from zero.
    pub histogram: Option<At<HistogramKeys>>,
    /// Rarity of the messages for which the tail estimate gives a latency. Default: one message in a power of ten,
    /// which is 3 to 30 times the number of messages.
    pub tail: Option<TailKeys>,
    /// A time range of every trial for which the report shows separate figures, in addition to the figures for the
    /// whole trial.
    pub range: Option<At<RangeKeys>>,
    /// Latency limit: the report counts the messages above this limit, for each metric, over the whole trial and in the
    /// range.
    pub above: Option<At<Duration>>,
    /// A message is late if the time from its due time to its answer (stop-and-wait: its round trip) is above this
    /// limit. Default, for each trial: p50 + max(5 x (p50 - p10), p50, 50 us).
    pub late_above: Option<At<Duration>>,
    /// Windows of consecutive messages: the report counts the windows with too many late or lost messages. Default: at
    /// most 1 of 10 (`{ m: 1, k: 10 }`).
    pub misses: Option<MissesKeys>,
    /// Results that other people published, measured on other hardware. The report shows these results next to the
    /// measured figures and marks them.
    pub published: Option<Vec<At<PublishedKeys>>>,
}

/// A time range of each trial, counted from the moment at which the first slot (slot 0) was due.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RangeKeys {
    /// Begin of the time range, counted from the moment at which slot 0 was due.
    pub from: Duration,
    /// End of the time range of each trial; the moment of the end itself is not included.
    pub to: Duration,
}

/// Windows of `k` consecutive messages, of which at most `m` may be late or lost. A trial has recovered at the first of
/// `k` consecutive messages on time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MissesKeys {
    /// Largest number of late or lost messages that a window may have; less than `k`.
    pub m: At<u64>,
    /// Number of consecutive messages in a window.
    #[schemars(range(min = 1, max = 10000))]
    pub k: At<u64>,
}

/// Rarity of the messages for which the tail estimate gives a latency.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TailKeys {
    /// Rarity: one message in this number. If this number is larger than 100 times the number of messages of a
    /// condition, there is no estimate.
    #[schemars(range(min = 100))]
    pub one_in: At<u64>,
}
