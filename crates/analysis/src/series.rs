//! Values of one metric in one batch (consecutive rows of samples), in the form that the statistics need: only measured
//! slots, and a slot without an answer is later than every value.

use crate::clocks::Legs;
use tailbound_model::{Metric, NO_TIME, Outcome};
use tailbound_record::{Columns, SlotBatch};

/// Group of metrics whose values are read together from the rows of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// The round trip and its legs, which have no value if there was no answer.
    Answer,
    /// The sender's own times, and `from_intended`, which needs the same columns.
    Send,
    /// Legs that end with a receive timestamp of the kernel; they are read only if there are such timestamps.
    Network,
}

impl Group {
    /// All groups of metrics, in the order in which the passes over a condition store their results.
    pub const ALL: [Group; 3] = [Group::Answer, Group::Send, Group::Network];
    /// Number of groups of metrics that are read together.
    pub const COUNT: usize = Self::ALL.len();

    /// The metrics of the group. The worst messages are chosen by the first metric.
    pub fn metrics(self) -> &'static [Metric] {
        match self {
            Group::Answer => &[Metric::RoundTrip, Metric::Out, Metric::Turnaround, Metric::Back],
            Group::Send => &[
                Metric::FromIntended,
                Metric::SendLateness,
                Metric::SendDuration,
                Metric::WakeToSent,
                Metric::WakePeriod,
            ],
            Group::Network => &[Metric::OutNetwork, Metric::BackNetwork],
        }
    }

    /// The columns of samples from which the metrics are computed.
    pub fn columns(self, clocks_differ: bool) -> Columns {
        let columns = Columns::of(self.metrics());
        if clocks_differ && !self.legs().is_empty() { columns.with_clocks() } else { columns }
    }

    /// The metrics of the group that are legs between two ends.
    pub fn legs(self) -> &'static [Metric] {
        match self {
            Group::Answer => &[Metric::Out, Metric::Back],
            Group::Send => &[],
            Group::Network => &[Metric::OutNetwork, Metric::BackNetwork],
        }
    }
}

/// The bound of a leg's range (minimum or maximum) from which a figure is computed. For exact legs and for all other
/// metrics, both bounds are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Low,
    High,
}

/// Metrics that are computed from timestamps of both ends of a trial.
pub const BETWEEN_ENDS: [Metric; 4] = [Metric::Out, Metric::OutNetwork, Metric::Back, Metric::BackNetwork];

impl Group {
    /// The values that are read for every message: the values of the metrics and, if the clocks of the ends differ,
    /// also the maximum of each leg in the order of [`Group::legs`].
    pub fn readings(self, clocks_differ: bool) -> Vec<(Metric, Side)> {
        let upper: &[Metric] = if clocks_differ { self.legs() } else { &[] };
        self.metrics().iter().map(|m| (*m, Side::Low)).chain(upper.iter().map(|m| (*m, Side::High))).collect()
    }
}

/// The shortest and longest time in ns that a leg between two clocks can have taken; `None` if the leg has no value or
/// both ends have the same clock. While one of the clocks changed, a leg can have taken up to the whole round trip.
pub(crate) fn leg_range(batch: &SlotBatch, metric: Metric, legs: Legs<'_>, i: usize) -> Option<[i64; 2]> {
    let Legs::Bounded(bounds) = legs else { return None };
    let there = |t: &&i64| **t != NO_TIME;
    let time = |column: &[i64]| column.get(i).filter(there).copied();
    let sent = time(&batch.send_begin_ns)?;
    let clocks = bounds.narrowest().at(sent);
    let there = |arrived: Option<i64>| {
        let arrived = arrived?;
        let whole = || Some([0, time(&batch.receive_ns)?.wrapping_sub(sent)]);
        clocks.map_or_else(whole, |clocks| Some(clocks.there_ns(sent, arrived)))
    };
    let back = |received: Option<i64>| {
        let (answered, received) = (time(&batch.echo_end_ns)?, received?);
        // The answer may arrive before the call that sends it has returned, but not before the call began.
        let whole = || {
            let call = answered.wrapping_sub(time(&batch.echo_begin_ns)?).max(0);
            Some([-call, received.wrapping_sub(sent)])
        };
        clocks.map_or_else(whole, |clocks| Some(clocks.back_ns(answered, received)))
    };
    match metric {
        Metric::Out => there(time(&batch.echo_in_ns)),
        Metric::OutNetwork => there(time(&batch.echo_kernel_rx_ns)).map(|range| wider(range, bounds.kernel_ns[1])),
        Metric::Back => back(time(&batch.receive_ns)),
        Metric::BackNetwork => back(time(&batch.kernel_rx_ns)).map(|range| wider(range, bounds.kernel_ns[0])),
        _ => None,
    }
}

/// Widens a range by the largest possible error of a converted timestamp.
fn wider([low, high]: [i64; 2], by_ns: i64) -> [i64; 2] {
    [low.saturating_sub(by_ns), high.saturating_add(by_ns)]
}

/// True if a metric is computed from timestamps of both ends of a trial. The two ends may have different clocks.
pub(crate) fn is_between_ends(metric: Metric) -> bool {
    BETWEEN_ENDS.contains(&metric)
}

/// True if, for this metric, a slot without an answer counts as later than every value. If false, only a slot that was
/// not sent counts as later than every value.
fn waits_for_answer(metric: Metric) -> bool {
    !matches!(metric, Metric::SendLateness | Metric::SendDuration | Metric::WakeToSent | Metric::WakePeriod)
}

/// Values of one metric in one batch of rows of samples. The same object is reused for all batches.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// Value of the metric for every row of samples in the batch; [`NO_TIME`] means that the row is left out, and
    /// [`Series::BEYOND`] that it is later than every value.
    rows: Vec<i64>,
    /// Values of the metric for those rows of samples that are not left out (left out are, for example, rows of the
    /// warm-up).
    values: Vec<i64>,
    /// True if all rows of samples in the batch are measured and answered.
    all_answered: bool,
    /// Number of measured slots whose value is [`Series::BEYOND`], that is, later than every value.
    pub beyond: u64,
    /// Number of measured slots that were answered or sent, but have no value of the metric.
    pub without: u64,
}

impl Series {
    /// Value of a slot without an answer, which is later than every time.
    pub const BEYOND: i64 = i64::MAX;

    /// Checks whether all slots of a batch of rows of samples are measured and answered.
    pub fn classify(&mut self, batch: &SlotBatch) {
        self.all_answered = batch.outcome.iter().all(|o| answered(*o)) && !batch.warm_up.contains(&true);
    }

    /// Reads the values of a metric from a batch of rows of samples; [`Series::classify`] must have read the outcomes
    /// of the rows before. If the legs of the trial are unknown, they have no values, and no slot counts as a slot
    /// without a value.
    pub fn load(&mut self, batch: &SlotBatch, (metric, side): (Metric, Side), legs: Legs<'_>) {
        (self.without, self.beyond) = (0, 0);
        let far = is_between_ends(metric) || metric == Metric::Turnaround;
        match legs {
            Legs::Unknown if far => {
                self.rows.clear();
                self.rows.resize(batch.len(), NO_TIME);
                self.values.clear();
                return;
            }
            Legs::Bounded(_) if is_between_ends(metric) => {
                let end = |range: [i64; 2]| if side == Side::Low { range[0] } else { range[1] };
                let value = |i| leg_range(batch, metric, legs, i).map_or(NO_TIME, end);
                self.rows.clear();
                self.rows.extend((0..batch.len()).map(value));
            }
            _ => batch.metric_column(metric, &mut self.rows),
        }
        self.rows.resize(batch.len(), NO_TIME);
        if !self.all_answered {
            let last_good = if waits_for_answer(metric) { Outcome::AfterTimeout } else { Outcome::Lost } as u8;
            for (i, value) in self.rows.iter_mut().enumerate() {
                if batch.outcome[i] > last_good {
                    *value = Self::BEYOND;
                }
                self.without += u64::from(*value == NO_TIME && !batch.warm_up[i]);
                if batch.warm_up[i] {
                    *value = NO_TIME;
                }
                self.beyond += u64::from(*value == Self::BEYOND);
            }
        } else {
            self.without = self.rows.iter().filter(|v| **v == NO_TIME).count() as u64;
        }
        self.values.clear();
        if self.all_answered && self.without == 0 {
            self.values.extend_from_slice(&self.rows);
        } else {
            self.values.extend(self.rows.iter().filter(|v| **v != NO_TIME));
        }
    }

    /// Values of the metric for the measured slots, in slot order.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// Value of the metric for every row of samples in the batch, or [`NO_TIME`] for a row that is left out.
    pub fn rows(&self) -> &[i64] {
        &self.rows
    }

    /// Index, within the batch, of the first row of samples whose value of the metric is `value`.
    pub fn position(&self, value: i64) -> Option<usize> {
        self.rows.iter().position(|v| *v == value)
    }
}

/// True if an outcome (as `Outcome as u8`) means that the message was answered, within the timeout or after it.
pub fn answered(outcome: u8) -> bool {
    outcome <= Outcome::AfterTimeout as u8
}
