//! The latencies of one row, exactly as the definitions chapter states them.

use crate::SlotBatch;
use tailbound_model::{Metric, NO_TIME};

/// Times of a damaged file may lie anywhere: the difference saturates instead of wrapping round.
#[inline]
fn minus(later: i64, earlier: i64) -> i64 {
    if later != NO_TIME && earlier != NO_TIME { later.saturating_sub(earlier) } else { NO_TIME }
}

impl SlotBatch {
    /// The later and the earlier column of a metric.
    fn ends(&self, metric: Metric) -> (&[i64], &[i64]) {
        match metric {
            Metric::RoundTrip | Metric::HalfRoundTrip => (&self.receive_ns, &self.send_begin_ns),
            Metric::Out => (&self.echo_in_ns, &self.send_begin_ns),
            Metric::OutNetwork => (&self.echo_kernel_rx_ns, &self.send_begin_ns),
            Metric::Turnaround => (&self.echo_end_ns, &self.echo_in_ns),
            Metric::Back => (&self.receive_ns, &self.echo_end_ns),
            Metric::BackNetwork => (&self.kernel_rx_ns, &self.echo_end_ns),
            Metric::FromIntended => (&self.receive_ns, &self.intended_ns),
            Metric::SendLateness => (&self.send_begin_ns, &self.intended_ns),
            Metric::SendDuration => (&self.send_end_ns, &self.send_begin_ns),
            Metric::WakeToSent => (&self.send_end_ns, &self.wake_ns),
            Metric::WakePeriod => (&self.wake_ns, &self.previous_wake_ns),
        }
    }

    /// The metric of row `i`; `None` = the slot has none (lost, not sent, stop-and-wait has no intended time, no echo
    /// row), or its columns were not read.
    #[inline]
    pub fn metric(&self, metric: Metric, i: usize) -> Option<i64> {
        let (later, earlier) = self.ends(metric);
        let value = minus(*later.get(i)?, *earlier.get(i)?);
        let value = if metric == Metric::HalfRoundTrip && value != NO_TIME { value / 2 } else { value };
        (value != NO_TIME).then_some(value)
    }

    /// The metric of every row, [`NO_TIME`] where there is none; empty when its columns were not read.
    pub fn metric_column(&self, metric: Metric, into: &mut Vec<i64>) {
        let (later, earlier) = self.ends(metric);
        into.clear();
        into.extend(later.iter().zip(earlier).map(|(l, e)| minus(*l, *e)));
        if metric == Metric::HalfRoundTrip {
            into.iter_mut().filter(|v| **v != NO_TIME).for_each(|v| *v /= 2);
        }
    }
}

/// The columns of sender rows, and of echo rows, that a metric is made of.
pub(crate) fn columns_of(metric: Metric) -> (&'static [&'static str], &'static [&'static str]) {
    match metric {
        Metric::RoundTrip | Metric::HalfRoundTrip => (&["send_begin_ns", "receive_ns"], &[]),
        Metric::Out => (&["send_begin_ns"], &["in_ns"]),
        Metric::OutNetwork => (&["send_begin_ns"], &["kernel_rx_ns"]),
        Metric::Turnaround => (&[], &["in_ns", "end_ns"]),
        Metric::Back => (&["receive_ns"], &["end_ns"]),
        Metric::BackNetwork => (&["kernel_rx_ns"], &["end_ns"]),
        Metric::FromIntended => (&["intended_ns", "receive_ns"], &[]),
        Metric::SendLateness => (&["intended_ns", "send_begin_ns"], &[]),
        Metric::SendDuration => (&["send_begin_ns", "send_end_ns"], &[]),
        Metric::WakeToSent => (&["wake_ns", "send_end_ns"], &[]),
        Metric::WakePeriod => (&["wake_ns"], &[]),
    }
}
