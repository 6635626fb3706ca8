//! Keys of a study file for a table of bins of equal width.

use super::Duration;
use crate::read::At;
use schemars::JsonSchema;
use serde::Deserialize;
use tailbound_model::Metric;

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

impl HistogramMetric {
    /// Metric of the model that a study file names; the round trip if it names none.
    pub fn metric(of: Option<HistogramMetric>) -> Metric {
        match of.unwrap_or(HistogramMetric::RoundTrip) {
            HistogramMetric::RoundTrip => Metric::RoundTrip,
            HistogramMetric::HalfRoundTrip => Metric::HalfRoundTrip,
            HistogramMetric::Out => Metric::Out,
            HistogramMetric::OutNetwork => Metric::OutNetwork,
            HistogramMetric::Back => Metric::Back,
            HistogramMetric::BackNetwork => Metric::BackNetwork,
            HistogramMetric::FromIntended => Metric::FromIntended,
            HistogramMetric::WakeToSent => Metric::WakeToSent,
        }
    }
}
