//! One metric of one batch as the statistics take it: measured slots only, a slot without an answer as later than all.

use crate::clocks::Legs;
use crate::passes::answered;
use tailbound_model::{Metric, NO_TIME, Outcome};
use tailbound_record::SlotBatch;

/// Metrics that are read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// The round trip and its legs: beyond when there was no answer.
    Answer,
    /// The sender's own times, and from-intended, which shares their columns.
    Send,
    /// Legs that end with a receive stamp of the kernel; read only where there are such stamps.
    Network,
}

impl Group {
    /// In the order of the passes' results of a condition.
    pub const ALL: [Group; 3] = [Group::Answer, Group::Send, Group::Network];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The first metric chooses the worst messages.
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

    /// The legs between two ends among them.
    pub fn legs(self) -> &'static [Metric] {
        match self {
            Group::Answer => &[Metric::Out, Metric::Back],
            Group::Send => &[],
            Group::Network => &[Metric::OutNetwork, Metric::BackNetwork],
        }
    }
}

/// Which end of a range a figure is made of; of an exact leg, and of all other metrics, both are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Low,
    High,
}

/// Metrics that are made of the stamps of both ends.
pub(crate) const BETWEEN_ENDS: [Metric; 4] = [Metric::Out, Metric::OutNetwork, Metric::Back, Metric::BackNetwork];

impl Group {
    /// What is read of every message: the metrics, and where clocks differ also the higher ends of legs, in the order of
    /// [`Group::legs`].
    pub fn readings(self, clocks_differ: bool) -> Vec<(Metric, Side)> {
        let upper: &[Metric] = if clocks_differ { self.legs() } else { &[] };
        self.metrics().iter().map(|m| (*m, Side::Low)).chain(upper.iter().map(|m| (*m, Side::High))).collect()
    }
}

/// From the least to the most that a leg took between two clocks; `None` where there was none.
pub(crate) fn leg_range(batch: &SlotBatch, metric: Metric, legs: Legs<'_>, i: usize) -> Option<[i64; 2]> {
    let Legs::Bounded(bounds) = legs else { return None };
    let there = |t: &&i64| **t != NO_TIME;
    let time = |column: &[i64]| column.get(i).filter(there).copied();
    let (sent, answered) = (time(&batch.send_begin_ns), time(&batch.echo_end_ns));
    match metric {
        Metric::Out => Some(bounds.clocks.there_ns(sent?, time(&batch.echo_in_ns)?)),
        Metric::OutNetwork => {
            Some(wider(bounds.clocks.there_ns(sent?, time(&batch.echo_kernel_rx_ns)?), bounds.kernel_ns[1]))
        }
        Metric::Back => Some(bounds.clocks.back_ns(answered?, time(&batch.receive_ns)?)),
        Metric::BackNetwork => {
            Some(wider(bounds.clocks.back_ns(answered?, time(&batch.kernel_rx_ns)?), bounds.kernel_ns[0]))
        }
        _ => None,
    }
}

/// With the error of a stamp that was converted.
fn wider([low, high]: [i64; 2], by_ns: i64) -> [i64; 2] {
    [low.saturating_sub(by_ns), high.saturating_add(by_ns)]
}

/// Whether a metric is made of the stamps of both ends.
pub(crate) fn is_between_ends(metric: Metric) -> bool {
    BETWEEN_ENDS.contains(&metric)
}

/// Whether a slot without an answer is later than all for this metric; otherwise only one that was not sent is.
fn waits_for_answer(metric: Metric) -> bool {
    !matches!(metric, Metric::SendLateness | Metric::SendDuration | Metric::WakeToSent | Metric::WakePeriod)
}

/// The loaded metric. One is reused for all batches.
#[derive(Debug, Default)]
pub(crate) struct Series {
    /// Value of every row of the batch; [`NO_TIME`] = left out, [`Series::BEYOND`] = later than all.
    rows: Vec<i64>,
    /// The same without what is left out.
    values: Vec<i64>,
    /// Rows of the batch that are neither warm-up nor unanswered.
    all_answered: bool,
    /// How many of `values` are [`Series::BEYOND`].
    pub beyond: u64,
    /// Measured slots that ended well and have no value.
    pub without: u64,
}

impl Series {
    /// Stands for a slot without an answer.
    pub const BEYOND: i64 = i64::MAX;

    /// Looks at the outcomes of a batch.
    pub fn classify(&mut self, batch: &SlotBatch) {
        self.all_answered = batch.outcome.iter().all(|o| answered(*o)) && !batch.warm_up.contains(&true);
    }

    /// Takes the values of a metric; the batch has been classified. Of legs that nobody knows there are none, and no slot
    /// is without one.
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

    /// Values of the measured slots, in slot order.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// Value of every row of the batch, [`NO_TIME`] where it is left out.
    pub fn rows(&self) -> &[i64] {
        &self.rows
    }

    /// The first row with this value.
    pub fn position(&self, value: i64) -> Option<usize> {
        self.rows.iter().position(|v| *v == value)
    }
}
