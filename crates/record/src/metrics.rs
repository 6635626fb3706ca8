//! Computes the latencies of one row of samples, as the chapter "How the numbers are made" defines them.

use crate::SlotBatch;
use tailbound_model::{Metric, NO_TIME};

/// Difference between two times in ns, or [`NO_TIME`] if one of the times is missing. The subtraction saturates instead
/// of overflowing, because times in a damaged file may have any value.
#[inline]
fn minus(later: i64, earlier: i64) -> i64 {
    if later != NO_TIME && earlier != NO_TIME { later.saturating_sub(earlier) } else { NO_TIME }
}

impl SlotBatch {
    /// The two time columns of which the metric is the difference: first the column with the later time, then the
    /// column with the earlier time.
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

    /// Value of a metric in row `i`, in ns. `None` if the slot has no value (lost, not sent, no intended time with
    /// stop-and-wait, no echo row), or if the columns were not read.
    #[inline]
    pub fn metric(&self, metric: Metric, i: usize) -> Option<i64> {
        let (later, earlier) = self.ends(metric);
        let value = minus(*later.get(i)?, *earlier.get(i)?);
        let value = if metric == Metric::HalfRoundTrip && value != NO_TIME { value / 2 } else { value };
        (value != NO_TIME).then_some(value)
    }

    /// Fills `into` with the value of a metric for every row, in ns, or [`NO_TIME`] for a row without a value; `into`
    /// is empty afterwards if the columns were not read.
    pub fn metric_column(&self, metric: Metric, into: &mut Vec<i64>) {
        let (later, earlier) = self.ends(metric);
        into.clear();
        into.extend(later.iter().zip(earlier).map(|(l, e)| minus(*l, *e)));
        if metric == Metric::HalfRoundTrip {
            into.iter_mut().filter(|v| **v != NO_TIME).for_each(|v| *v /= 2);
        }
    }
}
