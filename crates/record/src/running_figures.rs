//! Figures of a trial that still runs, for the line that `tailbound ping` shows meanwhile. Nothing of this is stored in the
//! record.

use tailbound_model::{NO_TIME, Outcome, SenderRow};
use tailbound_stats::{Histogram, Quantile};

/// What is known of the round trips of a trial that still runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FiguresSoFar {
    /// Number of messages so far, without the warm-up.
    pub messages: u64,
    /// Number of these messages that were lost.
    pub lost: u64,
    /// Median round trip, ns: the upper end of the histogram bucket. `None` = it lies among messages that were lost, or
    /// answered after the timeout.
    pub p50_ns: Option<i64>,
    /// 99th percentile of the round trips, ns, as `p50_ns`.
    pub p99_ns: Option<i64>,
    /// Longest round trip, ns.
    pub max_ns: Option<i64>,
}

/// Round trips of a trial that still runs.
#[derive(Debug, Clone, Default)]
pub struct RunningFigures {
    round_trips: Histogram,
    messages: u64,
    lost: u64,
    max_ns: Option<i64>,
}

impl RunningFigures {
    /// Adds the next row of the sender. Returns false, and adds nothing, if the answer can still arrive: the slot was sent
    /// after `settled_ns` and has no answer.
    pub fn add(&mut self, row: &SenderRow, settled_ns: i64) -> bool {
        let is_answered = row.receive_ns != NO_TIME && row.send_begin_ns != NO_TIME;
        if !is_answered && row.outcome != Outcome::NotSent && row.send_end_ns > settled_ns {
            return false;
        }
        if row.warm_up || row.outcome == Outcome::NotSent {
            return true;
        }
        self.messages += 1;
        self.lost += u64::from(row.outcome == Outcome::Lost);
        if is_answered && row.outcome == Outcome::Answered {
            let round_trip_ns = row.receive_ns - row.send_begin_ns;
            self.round_trips.record(round_trip_ns);
            self.max_ns = self.max_ns.max(Some(round_trip_ns));
        }
        true
    }

    /// The figures of the rows so far. Messages that were lost, or answered after the timeout, count as longer than all
    /// others.
    pub fn so_far(&self) -> FiguresSoFar {
        let quantile = |q: Quantile| {
            let rank = (q.as_f64() * self.messages as f64).ceil() as u64;
            self.round_trips.bucket_of_rank(rank).map(|of| of.bucket.high.min(self.max_ns.unwrap_or(i64::MAX)))
        };
        FiguresSoFar {
            messages: self.messages,
            lost: self.lost,
            p50_ns: quantile(Quantile::P50),
            p99_ns: quantile(Quantile::P99),
            max_ns: self.max_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row of a message that was sent at `sent_ns`.
    fn row(sent_ns: i64, round_trip_ns: Option<i64>) -> SenderRow {
        SenderRow {
            seq: 0,
            intended_ns: sent_ns,
            wake_ns: sent_ns,
            send_begin_ns: sent_ns,
            send_end_ns: sent_ns + 10,
            receive_ns: round_trip_ns.map_or(NO_TIME, |ns| sent_ns + ns),
            kernel_rx_ns: NO_TIME,
            receive_thread: None,
            outcome: if round_trip_ns.is_some() { Outcome::Answered } else { Outcome::Lost },
            duplicates: 0,
            out_of_order: false,
            warm_up: false,
        }
    }

    #[test]
    fn quantiles_count_messages_without_an_answer_as_the_longest() {
        let mut running = RunningFigures::default();
        assert_eq!(running.so_far(), FiguresSoFar::default());
        // 1,000 messages with round trips of 1 us to 1,000 us.
        for n in 1..=1_000 {
            assert!(running.add(&row(n * 1_000_000, Some(n * 1_000)), 0));
        }
        let FiguresSoFar { messages, lost, p50_ns, p99_ns, max_ns } = running.so_far();
        assert_eq!((messages, lost, max_ns), (1_000, 0, Some(1_000_000)));
        // The buckets of the histogram are narrower than 1 %.
        let near = |ns: Option<i64>, truth: i64| ns.is_some_and(|ns| (truth..truth + truth / 100).contains(&ns));
        assert!(near(p50_ns, 500_000) && near(p99_ns, 990_000), "{p50_ns:?} {p99_ns:?}");
        for n in 0..20 {
            assert!(running.add(&row(n, None), 1_000));
        }
        let so_far = running.so_far();
        assert_eq!((so_far.messages, so_far.lost, so_far.p99_ns), (1_020, 20, None));
    }

    #[test]
    fn a_message_whose_answer_can_still_arrive_is_not_counted() {
        let mut running = RunningFigures::default();
        assert!(!running.add(&row(5_000, None), 5_000));
        assert_eq!(running.so_far().messages, 0);
        assert!(running.add(&row(5_000, None), 6_000) && running.add(&row(7_000, Some(9)), 6_000));
        assert_eq!((running.so_far().messages, running.so_far().lost), (2, 1));
        let warm_up = SenderRow { warm_up: true, ..row(1, Some(5)) };
        assert!(running.add(&warm_up, 0));
        assert_eq!(running.so_far().messages, 2);
    }
}
