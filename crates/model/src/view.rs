//! How a study wants to be shown, and what was published about it elsewhere.

use crate::{Metric, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the report shows the study.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReportSpec {
    /// Title; the question when absent.
    pub title: Option<String>,
    /// Quantiles to show, as decimal text such as `0.999`; empty = 0.5 0.9 0.99 0.999 0.9999.
    pub quantiles: Vec<String>,
    /// Factor on the x axis of the main figure; `payload` when absent.
    pub x: Option<String>,
    /// The level that all others of its factor are set against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstSpec>,
    /// A table of equal bins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<HistogramSpec>,
    /// How rare a message the tail estimate is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailSpec>,
    /// A range of every trial with figures of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeSpec>,
    /// Messages above this are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Nanos>,
    /// Figures of others, from other hardware.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

/// A range of every trial, after its slot 0 was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeSpec {
    /// Its begin.
    pub from: Nanos,
    /// Its end, not included.
    pub to: Nanos,
}

/// A level of a factor: what the others cost is told against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgainstSpec {
    /// The factor, e.g. `place.network`.
    pub factor: String,
    /// Its level, spelled as conditions have it.
    pub level: String,
}

/// Bins of equal width from zero, and one open bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramSpec {
    /// What is counted.
    pub metric: Metric,
    /// Width of a bin.
    pub bin: Nanos,
    /// How many there are below the open one.
    pub bins: u32,
}

/// One message in so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailSpec {
    /// How many.
    pub one_in: u64,
}

/// What somebody else found, on other hardware.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Published {
    /// Which row or case it is.
    pub name: String,
    /// What was said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Counts of the bins, the open one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<u64>,
    /// In how many runs each pattern was seen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patterns: BTreeMap<Pattern, u64>,
}

/// What became of a trial's communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// The ends never met, or only long after they were open.
    DiscoveryStarved,
    /// A call that publishes took long.
    PublishBlocked,
    /// The thread that publishes waited for a CPU itself.
    SenderStarved,
    /// The thread that publishes stood still between its calls, and its kernel counted no wait for a CPU: for a lock, in most cases.
    MainThreadBlocked,
    /// The trial took longer than its schedule, and no call that publishes was to blame.
    TotalTimeLonger,
    /// Messages were never answered, or never sent.
    MessagesLost,
    /// Answers took long, and nothing else did.
    AnswersLate,
    /// None of these.
    NoEffect,
}

impl Pattern {
    /// All, the gravest first.
    pub const ALL: [Pattern; 8] = [
        Pattern::DiscoveryStarved,
        Pattern::PublishBlocked,
        Pattern::SenderStarved,
        Pattern::MainThreadBlocked,
        Pattern::TotalTimeLonger,
        Pattern::MessagesLost,
        Pattern::AnswersLate,
        Pattern::NoEffect,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Pattern::DiscoveryStarved => "discovery starved",
            Pattern::PublishBlocked => "publish blocked",
            Pattern::SenderStarved => "sender starved",
            Pattern::MainThreadBlocked => "main thread blocked",
            Pattern::MessagesLost => "messages lost",
            Pattern::AnswersLate => "answers late",
            Pattern::TotalTimeLonger => "total time longer",
            Pattern::NoEffect => "no effect",
        }
    }
}
