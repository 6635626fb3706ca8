//! The part of the JSON document that holds the figures: one condition, its metrics, its quantiles.

use crate::bins::BinsReport;
use crate::chosen::{AboveReport, ChosenReport};
use crate::flow::FlowReport;
use crate::proof::PathProofReport;
use crate::tail_estimate::TailReport;
use crate::warm_up::WarmUpReport;
use crate::why::{Cause, Explained};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tailbound_model::Metric;

/// How far a condition got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConditionStatus {
    /// All of its trials ended, at least one of them valid; the figures are of the valid ones.
    Valid,
    /// Every trial that ended is invalid; the figures, if any, are of these.
    Invalid,
    /// A trial began and did not end, or never began; the figures are of what there is.
    Incomplete,
    /// The combination cannot be run.
    NotPossible,
}

/// One combination of levels with its figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionReport {
    /// Index within the plan.
    pub id: usize,
    /// In words.
    pub name: String,
    /// Factor to level, also factors with one level.
    pub levels: BTreeMap<String, String>,
    /// How far it got.
    pub status: ConditionStatus,
    /// Why it cannot be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_possible: Option<String>,
    /// Another program ran in place of a driver: Tailbound measured nothing itself, and its figures are in `tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Octets of `Sample.payload`.
    pub payload_bytes: u64,
    /// One slot every so many ns; absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<i64>,
    /// Smallest MTU on the path, in octets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// How many trials the plan has of it.
    pub trials: usize,
    /// Their ids.
    pub trial_ids: Vec<usize>,
    /// Trials whose slots the figures are made of.
    pub used_trial_ids: Vec<usize>,
    /// Why nothing was answered, as far as the driver can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// By which way messages went; absent where none did, or time was virtual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_proof: Option<PathProofReport>,
    /// Measured slots by how they ended; warm-up apart.
    pub counts: Counts,
    /// receive - send-begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<MetricReport>,
    /// Half of the round trip: a figure of location only, given for the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_round_trip: Option<MetricReport>,
    /// echo-in - send-begin; absent where the ends have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<MetricReport>,
    /// The same between two clocks: from the least to the most that they leave possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_range: Option<LegRange>,
    /// The kernel's receive stamp at the pong - send-begin; absent without such stamps, and where the ends have different
    /// clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_network: Option<MetricReport>,
    /// The same between two clocks: from the least to the most that they leave possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_network_range: Option<LegRange>,
    /// echo-end - echo-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turnaround: Option<MetricReport>,
    /// receive - echo-end; absent where the ends have different clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<MetricReport>,
    /// The same between two clocks: from the least to the most that they leave possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_range: Option<LegRange>,
    /// The kernel's receive stamp at the ping - echo-end; absent as `out_network` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_network: Option<MetricReport>,
    /// The same between two clocks: from the least to the most that they leave possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_network_range: Option<LegRange>,
    /// receive - intended; absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_intended: Option<MetricReport>,
    /// send-begin - intended; absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness: Option<MetricReport>,
    /// send-end - send-begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_duration: Option<MetricReport>,
    /// send-end - wake: the wake-up until the call that publishes has returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_to_sent: Option<MetricReport>,
    /// wake - wake of the slot before; absent for stop-and-wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_period: Option<MetricReport>,
    /// The beginning of trials is unlike the rest; its messages are in all figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpReport>,
    /// The table of equal bins that the study asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<BinsReport>,
    /// The first message whose round trip is the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_message: Option<Message>,
    /// The worst messages by from-intended (stop-and-wait: by round trip), the worst first.
    pub worst: Vec<Message>,
    /// Figures over a chosen range of each trial; those beside it are over the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ChosenReport>,
    /// Messages of the whole above the study's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<AboveReport>,
    /// How much of what they took beyond the medians has a cause that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explained>,
    /// What was sent and what arrived, of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowReport>,
}

impl ConditionReport {
    /// A leg between two clocks.
    pub fn range(&self, metric: Metric) -> Option<&LegRange> {
        match metric {
            Metric::Out => self.out_range.as_ref(),
            Metric::Back => self.back_range.as_ref(),
            Metric::OutNetwork => self.out_network_range.as_ref(),
            Metric::BackNetwork => self.back_network_range.as_ref(),
            _ => None,
        }
    }

    /// The figures of a metric.
    pub fn metric(&self, metric: Metric) -> Option<&MetricReport> {
        match metric {
            Metric::RoundTrip => self.round_trip.as_ref(),
            Metric::HalfRoundTrip => self.half_round_trip.as_ref(),
            Metric::Out => self.out.as_ref(),
            Metric::OutNetwork => self.out_network.as_ref(),
            Metric::Turnaround => self.turnaround.as_ref(),
            Metric::Back => self.back.as_ref(),
            Metric::BackNetwork => self.back_network.as_ref(),
            Metric::FromIntended => self.from_intended.as_ref(),
            Metric::SendLateness => self.send_lateness.as_ref(),
            Metric::SendDuration => self.send_duration.as_ref(),
            Metric::WakeToSent => self.wake_to_sent.as_ref(),
            Metric::WakePeriod => self.wake_period.as_ref(),
        }
    }
}

/// Measured slots by how they ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// All: the sum of the next four.
    pub scheduled: u64,
    /// Answered within the timeout.
    pub answered: u64,
    /// Answered later than the timeout; they keep their time.
    pub after_timeout: u64,
    /// Never answered.
    pub lost: u64,
    /// Never sent.
    pub not_sent: u64,
    /// Answers beyond the first.
    pub duplicate: u64,
    /// Answers that a later slot's answer overtook.
    pub out_of_order: u64,
    /// Slots of the warm-up, counted nowhere else.
    pub warm_up: u64,
}

/// Figures of a leg between two clocks. Every message has a least and a most that it can have taken, whatever the clocks
/// were within what the messages prove of them, so every quantile of what they took lies between the same quantile of
/// either.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LegRange {
    /// Of the least that each message can have taken.
    pub low: MetricReport,
    /// Of the most that each message can have taken.
    pub high: MetricReport,
}

/// Figures of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricReport {
    /// Slots with a value: what mean, standard deviation, minimum and maximum are over.
    pub n: u64,
    /// Slots that quantiles are over: those with a value, and those that are later than all.
    pub scheduled: u64,
    /// Mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ns: Option<f64>,
    /// Standard deviation (n - 1); absent below two values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stddev_ns: Option<f64>,
    /// Minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_ns: Option<i64>,
    /// Maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<i64>,
    /// At most this share of messages is later than the maximum (95 %); absent when slots went unanswered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_of_three: Option<f64>,
    /// Quantiles over scheduled slots.
    pub quantiles: Vec<QuantileReport>,
    /// How late one message in so many is, beyond what was measured: an estimate, never a bound. Of `round_trip` and
    /// `from_intended`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailReport>,
    /// `[low_ns, high_ns, count]` of the buckets that hold something, rising; bounds are inclusive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(i64, i64, u64)>,
}

impl MetricReport {
    /// The quantile `q`, where it was asked for.
    pub fn quantile(&self, q: f64) -> Option<&QuantileReport> {
        self.quantiles.iter().find(|e| (e.q() - q).abs() < 5e-16)
    }
}

/// What can be said about one quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum QuantileReport {
    /// The value with its interval.
    Value {
        /// Fraction of the scheduled slots.
        q: f64,
        /// The value of rank ceil(q n), exactly.
        value_ns: i64,
        /// Lower end of the 95 % interval, rounded down to its histogram bucket.
        low_ns: i64,
        /// Upper end, rounded up to its bucket; null = among the slots without an answer.
        high_ns: Option<i64>,
        /// Present when `high_ns` is null.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high_beyond: Option<Beyond>,
        /// Lag-1 autocorrelation of exceeding the value, within trials; null = not defined.
        autocorrelation: Option<f64>,
        /// How many independent messages the scheduled ones are worth here: what the interval is made from.
        effective_n: u64,
        /// The interval is still narrower than it ought to be: messages depend on each other for as long as a trial can
        /// show, trials differ, or the messages are worth fewer than the quantile needs.
        too_narrow: bool,
    },
    /// Too few messages: no number.
    Needs {
        /// Fraction.
        q: f64,
        /// How many messages it takes.
        needs: u64,
    },
    /// The quantile falls among the slots without an answer.
    Beyond {
        /// Fraction.
        q: f64,
        /// Always null.
        value_ns: (),
        /// What these slots are.
        beyond: Beyond,
    },
}

impl QuantileReport {
    /// Fraction.
    pub fn q(&self) -> f64 {
        match self {
            QuantileReport::Value { q, .. } | QuantileReport::Needs { q, .. } | QuantileReport::Beyond { q, .. } => *q,
        }
    }

    /// The value, where there is one.
    pub fn value_ns(&self) -> Option<i64> {
        match self {
            QuantileReport::Value { value_ns, .. } => Some(*value_ns),
            _ => None,
        }
    }
}

/// Slots that are later than every value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// Never answered.
    Lost,
    /// Never sent.
    NotSent,
    /// Some of them never answered, some never sent.
    LostOrNotSent,
}

impl Beyond {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Beyond::Lost => "lost",
            Beyond::NotSent => "not sent",
            Beyond::LostOrNotSent => "lost or not sent",
        }
    }

    /// What happens to a message there.
    pub(crate) fn happens(self, many: bool) -> &'static str {
        match (self, many) {
            (Beyond::Lost, false) => "never comes back",
            (Beyond::Lost, true) => "never return",
            (Beyond::NotSent, false) => "is never sent",
            (Beyond::NotSent, true) => "are never sent",
            (Beyond::LostOrNotSent, false) => "is lost or never sent",
            (Beyond::LostOrNotSent, true) => "are lost or never sent",
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Trial.
    pub trial: usize,
    /// Slot within the trial, warm-up counted.
    pub slot: u64,
    /// When it was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended_ns: Option<i64>,
    /// When sending it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_begin_ns: Option<i64>,
    /// When the call that sent the slot before it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_send_end_ns: Option<i64>,
    /// receive - intended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_intended_ns: Option<i64>,
    /// receive - send-begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ns: Option<i64>,
    /// send-begin - intended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lateness_ns: Option<i64>,
    /// send-end - send-begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_duration_ns: Option<i64>,
    /// send-end - wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_to_sent_ns: Option<i64>,
    /// echo-in - send-begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_ns: Option<i64>,
    /// echo-end - echo-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turnaround_ns: Option<i64>,
    /// receive - echo-end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_ns: Option<i64>,
    /// `out_ns` between two clocks: at least, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_range_ns: Option<[i64; 2]>,
    /// `back_ns` between two clocks: at least, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_range_ns: Option<[i64; 2]>,
    /// The kernel's receive stamp at the pong - send-begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_network_ns: Option<i64>,
    /// The kernel's receive stamp at the ping - echo-end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_network_ns: Option<i64>,
    /// `out_network_ns` between two clocks: at least, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_network_range_ns: Option<[i64; 2]>,
    /// `back_network_ns` between two clocks: at least, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_network_range_ns: Option<[i64; 2]>,
    /// Why it was late; of the worst messages only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}
