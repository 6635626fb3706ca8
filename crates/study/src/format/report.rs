//! Keys of a study file that describe how the report shows the study.

use super::{Duration, Named, Quantile};
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

/// A table of bins of equal width, with an open bin for all larger values.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistogramKeys {
    /// Metric whose values are counted in the bins. Default: `round-trip`.
    pub metric: Option<HistogramMetric>,
    /// Width of each bin of the table.
    pub bin: At<Duration>,
    /// Number of bins of the table below its open bin, which counts all larger values.
    #[schemars(range(min = 1, max = 100))]
    pub bins: At<u32>,
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

/// Metric whose values a table of bins counts.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HistogramMetric {
    /// Round trip: time from the begin of the send call to the receipt of the answer.
    RoundTrip,
    /// Half of the round trip of each message.
    HalfRoundTrip,
    /// Time from the begin of the send call at the ping end to the receipt at the pong end.
    Out,
    /// Time from the begin of the send call at the ping end until the kernel of the pong end's host has received the
    /// message; needs receive timestamps of the kernel.
    OutNetwork,
    /// Time from the end of the pong end's send call to the receipt of the answer at the ping end.
    Back,
    /// Time from the end of the pong end's send call until the kernel of the ping end's host has received the answer;
    /// needs receive timestamps of the kernel.
    BackNetwork,
    /// Time from the moment at which the message was due to the receipt of the answer.
    FromIntended,
    /// Time from the wake-up of the sender to the return of the send call (M2).
    WakeToSent,
}

/// A result that other people published: `name`, and at least one other key.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedKeys {
    /// Name that the publication gives to the published row of results, or to the published case.
    pub name: String,
    /// Statement of the publication about the published result, as text.
    pub text: Option<String>,
    /// Histogram of the published result: number of messages in each bin of `report.histogram`, in the same order. The
    /// last bin has no upper limit.
    pub histogram: Option<At<Vec<u64>>>,
    /// For each pattern of disturbed communication: number of published runs in which the pattern was found.
    pub patterns: Option<PatternKeys>,
    /// Mean, standard deviation and maximum of the published result: shown in the table of these figures that
    /// `report.against` asks for.
    pub figures: Option<At<FiguresKeys>>,
}

/// Published figures of one metric. Each is one time, or the smallest and the largest published time: `[7 us, 27 us]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FiguresKeys {
    /// Metric of the report that comes nearest to the published latency. Default: `round-trip`.
    pub metric: Option<HistogramMetric>,
    /// Published mean.
    pub mean: Option<At<Vec<Duration>>>,
    /// Published difference of the mean to the mean of the publication's baseline.
    pub mean_above: Option<At<Vec<Duration>>>,
    /// Published standard deviation.
    pub stddev: Option<At<Vec<Duration>>>,
    /// Published maximum.
    pub max: Option<At<Vec<Duration>>>,
}

/// Number of published runs in which a load had each effect (pattern) on communication.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatternKeys {
    /// Number of published runs in which discovery did not complete while the load ran.
    pub discovery_starved: Option<u64>,
    /// Number of published runs in which a send call blocked.
    pub publish_blocked: Option<u64>,
    /// Number of published runs in which the publishing thread waited for a CPU.
    pub sender_starved: Option<u64>,
    /// Number of published runs in which the publishing thread stopped between its send calls and did not wait for a
    /// CPU.
    pub main_thread_blocked: Option<u64>,
    /// Number of published runs in which messages were lost or not sent.
    pub messages_lost: Option<u64>,
    /// Number of published runs in which answers took long, and none of the other effects was found.
    pub answers_late: Option<u64>,
    /// Number of published runs in which the trial took longer for another reason.
    pub total_time_longer: Option<u64>,
    /// Number of published runs in which the load had no effect on communication.
    pub no_effect: Option<u64>,
}
