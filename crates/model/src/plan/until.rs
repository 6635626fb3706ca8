//! The condition of a message at which a run ends (`tailbound run --until`).

use crate::{Flow, Metric, NO_TIME, Nanos, Outcome, SenderRow, TrialSpec};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The condition of a message at which a run ends. A message fulfils the condition if it fulfils one of the terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UntilCondition(pub Vec<UntilTerm>);

/// One term of the condition at which a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UntilTerm {
    /// The message has a value of the metric, and the value is above the limit.
    Above {
        /// A metric of [`UntilTerm::METRICS`].
        metric: Metric,
        /// Limit above which the message fulfils the term.
        limit: Nanos,
    },
    /// The message was sent, and no answer was received.
    Lost,
}

impl UntilTerm {
    /// The metrics that a term can limit: those whose times are all taken by the sender.
    pub const METRICS: [Metric; 5] =
        [Metric::RoundTrip, Metric::FromIntended, Metric::SendLateness, Metric::SendDuration, Metric::WakeToSent];

    /// True if messages of a trial with this specification can fulfil the term.
    pub fn applies_to(self, spec: &TrialSpec) -> bool {
        let answers = spec.measure.flow().is_none_or(Flow::has_answers) && !spec.has_tool();
        let on_schedule = spec.rate.period().is_some();
        answers
            && match self {
                UntilTerm::Above { metric: Metric::FromIntended | Metric::SendLateness, .. } => on_schedule,
                UntilTerm::Above { .. } | UntilTerm::Lost => true,
            }
    }

    /// Value of the metric that the term limits, in ns; `None` if the message has no value.
    pub fn value_ns(self, row: &SenderRow) -> Option<i64> {
        let UntilTerm::Above { metric, .. } = self else { return None };
        let (later, earlier) = match metric {
            Metric::RoundTrip => (row.receive_ns, row.send_begin_ns),
            Metric::FromIntended => (row.receive_ns, row.intended_ns),
            Metric::SendLateness => (row.send_begin_ns, row.intended_ns),
            Metric::SendDuration => (row.send_end_ns, row.send_begin_ns),
            Metric::WakeToSent => (row.send_end_ns, row.wake_ns),
            _ => (NO_TIME, NO_TIME),
        };
        (later != NO_TIME && earlier != NO_TIME).then(|| later.saturating_sub(earlier))
    }

    fn is_fulfilled_by(self, row: &SenderRow) -> bool {
        match self {
            UntilTerm::Above { limit, .. } => self.value_ns(row).is_some_and(|ns| ns > limit.0),
            UntilTerm::Lost => row.outcome == Outcome::Lost,
        }
    }
}

impl UntilCondition {
    /// The first term that a message fulfils; `None` for a message of the warm-up.
    pub fn fulfilled_by(&self, row: &SenderRow) -> Option<UntilTerm> {
        self.0.iter().copied().find(|term| !row.warm_up && term.is_fulfilled_by(row))
    }
}

impl fmt::Display for UntilTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UntilTerm::Above { metric, limit } => write!(f, "{} > {limit}", metric.key()),
            UntilTerm::Lost => f.write_str(crate::LOST),
        }
    }
}

impl fmt::Display for UntilCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> = self.0.iter().map(UntilTerm::to_string).collect();
        f.write_str(&terms.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> SenderRow {
        SenderRow {
            seq: 7,
            intended_ns: 1_000,
            wake_ns: 1_500,
            send_begin_ns: 2_000,
            send_end_ns: 4_000,
            receive_ns: 9_000,
            kernel_rx_ns: NO_TIME,
            receive_thread: None,
            outcome: Outcome::Answered,
            duplicates: 0,
            out_of_order: false,
            warm_up: false,
        }
    }

    #[test]
    fn each_metric_is_the_difference_of_its_two_times() {
        let value = |metric| UntilTerm::Above { metric, limit: Nanos(0) }.value_ns(&row());
        let values = UntilTerm::METRICS.map(value);
        assert_eq!(values, [7_000, 8_000, 1_000, 2_000, 2_500].map(Some));
    }

    #[test]
    fn a_message_above_a_limit_or_lost_fulfils_the_condition() {
        let above = |ns| UntilTerm::Above { metric: Metric::RoundTrip, limit: Nanos(ns) };
        let condition = UntilCondition(vec![above(7_000), UntilTerm::Lost]);
        assert_eq!(condition.fulfilled_by(&row()), None, "exactly at the limit");
        assert_eq!(condition.fulfilled_by(&SenderRow { receive_ns: 9_001, ..row() }), Some(above(7_000)));
        let lost = SenderRow { receive_ns: NO_TIME, outcome: Outcome::Lost, ..row() };
        assert_eq!(condition.fulfilled_by(&lost), Some(UntilTerm::Lost));
        assert_eq!(condition.fulfilled_by(&SenderRow { warm_up: true, ..lost }), None);
        assert_eq!(condition.to_string(), "round_trip > 7 us or lost");
    }
}
