//! The latencies of one row, exactly as the definitions chapter states them.

use crate::SlotBatch;
use tailbound_model::{Metric, NO_TIME};

fn minus(later: i64, earlier: i64) -> Option<i64> {
    (later != NO_TIME && earlier != NO_TIME).then(|| later - earlier)
}

impl SlotBatch {
    /// The metric of row `i`; `None` = the slot has none (lost, not sent, stop-and-wait has no intended time, no echo row).
    #[inline]
    pub fn metric(&self, metric: Metric, i: usize) -> Option<i64> {
        match metric {
            Metric::RoundTrip => minus(self.receive_ns[i], self.send_begin_ns[i]),
            Metric::HalfRoundTrip => minus(self.receive_ns[i], self.send_begin_ns[i]).map(|v| v / 2),
            Metric::Out => minus(self.echo_in_ns[i], self.send_begin_ns[i]),
            Metric::Turnaround => minus(self.echo_end_ns[i], self.echo_in_ns[i]),
            Metric::Back => minus(self.receive_ns[i], self.echo_end_ns[i]),
            Metric::FromIntended => minus(self.receive_ns[i], self.intended_ns[i]),
            Metric::SendLateness => minus(self.send_begin_ns[i], self.intended_ns[i]),
            Metric::SendDuration => minus(self.send_end_ns[i], self.send_begin_ns[i]),
            Metric::WakePeriod => minus(self.wake_ns[i], self.previous_wake_ns[i]),
        }
    }
}
