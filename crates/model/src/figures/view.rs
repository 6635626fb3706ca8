//! How the report shows a study.

use super::published::Published;
use crate::{Metric, Nanos};
use serde::{Deserialize, Serialize};

/// How the report shows the result of the study.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportSpec {
    /// Title of the report; if absent, the question of the study.
    pub title: Option<String>,
    /// Quantiles that the report shows, as decimal text such as `0.999`; if empty, 0.5, 0.9, 0.99, 0.999 and 0.9999.
    pub quantiles: Vec<String>,
    /// Factor on the x axis of the report's main chart; if absent, `payload`.
    pub x: Option<String>,
    /// The level with which all other levels of its factor are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstSpec>,
    /// Table of latencies in bins of equal width that the report shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<HistogramSpec>,
    /// Rarity of the late messages for which the report estimates the latency (tail estimate).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailSpec>,
    /// Time range of every trial for which the report shows separate figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeSpec>,
    /// Latency limit: the report counts the messages with a latency above this limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Nanos>,
    /// A message whose latency is above this limit is late; if absent, a limit from the quantiles of each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_above: Option<Nanos>,
    /// Windows of messages for which the report counts too many late and lost ones; if absent, 1 of 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<MissWindow>,
    /// Results that other people published, measured on other hardware.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

impl ReportSpec {
    /// The windows for which the report counts late and lost messages.
    pub fn miss_window(&self) -> MissWindow {
        self.misses.unwrap_or_default()
    }
}

/// Windows of `k` consecutive messages, of which at most `m` may be late or lost. A trial has recovered at the first of
/// `k` consecutive messages on time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissWindow {
    /// Largest number of late or lost messages that a window may have; less than `k`.
    pub m: u32,
    /// Number of consecutive messages in a window, from 1 to [`MissWindow::LONGEST`].
    pub k: u32,
}

impl MissWindow {
    /// Largest number of messages in a window.
    pub const LONGEST: u32 = 10_000;
}

impl Default for MissWindow {
    fn default() -> MissWindow {
        MissWindow { m: 1, k: 10 }
    }
}

/// A time range of every trial, counted from the intended time of slot 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSpec {
    /// Begin of the time range, counted from the intended time of slot 0.
    pub from: Nanos,
    /// End of the time range of a trial; the moment of the end itself is not included.
    pub to: Nanos,
}

/// A level of a factor with which the report compares the other levels of the factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgainstSpec {
    /// Path, in the study, of the factor whose levels are compared, e.g. `place.network`.
    pub factor: String,
    /// The baseline level of the factor, written as in the conditions of the plan.
    pub level: String,
}

/// A table of latencies in bins: bins of equal width from zero, and one open bin for all larger values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramSpec {
    /// Metric whose values are counted in the bins of the table.
    pub metric: Metric,
    /// Width of a bin of the table of latencies.
    pub bin: Nanos,
    /// Number of bins of equal width below the last bin, which has no upper end.
    pub bins: u32,
}

/// Rarity of the messages in a tail estimate: one message in `one_in`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailSpec {
    /// Number of messages of which one message is as late as the estimated latency.
    pub one_in: u64,
}

/// Metrics whose mean, standard deviation and maximum are compared with a baseline and a publication.
pub const SPREAD_METRICS: [Metric; 5] =
    [Metric::RoundTrip, Metric::OutNetwork, Metric::Out, Metric::BackNetwork, Metric::Back];
