//! Counts the messages inside and outside of the windows in which a clock was not known to be in step.

use tailbound_document::{BadClockWindow, MessagesByWindow, MessagesOfClock};
use tailbound_model::{Metric, NO_TIME};
use tailbound_record::{Columns, Record, RecordError, SlotBatch};
use tailbound_stats::Histogram;

/// Numbers of messages that the median and the 99th percentile need (see "Quantiles and their intervals").
const NEEDS_P50: u64 = 6;
const NEEDS_P99: u64 = 368;

/// The messages of a trial by whether they were on their way in a window.
pub(super) struct Counted {
    /// First due time and last time of a message, ns.
    span_ns: (i64, i64),
    has_intended: bool,
    outside: Figures,
    inside: Figures,
}

#[derive(Default)]
struct Figures {
    messages: u64,
    times: Histogram,
    max_ns: Option<i64>,
}

impl Counted {
    /// Counts the messages of a trial after its warm-up; `None` if it has none.
    ///
    /// # Errors
    /// The samples cannot be read.
    pub fn of(record: &Record, trial: usize, windows: &[BadClockWindow]) -> Result<Option<Counted>, RecordError> {
        let spans = joined(windows);
        let mut counted = Counted {
            span_ns: (i64::MAX, i64::MIN),
            has_intended: false,
            outside: Figures::default(),
            inside: Figures::default(),
        };
        record.scan(trial, &Columns::of(&[Metric::RoundTrip, Metric::FromIntended]), &mut |batch| {
            (0..batch.len()).filter(|row| !batch.warm_up[*row]).for_each(|row| counted.add(batch, row, &spans));
        })?;
        Ok(Some(counted).filter(|counted| counted.span_ns.0 <= counted.span_ns.1))
    }

    fn add(&mut self, batch: &SlotBatch, row: usize, spans: &[(i64, i64)]) {
        let time = |of: &[i64]| of.get(row).copied().filter(|ns| *ns != NO_TIME);
        let intended_ns = time(&batch.intended_ns);
        let Some(begin_ns) = intended_ns.or_else(|| time(&batch.send_begin_ns)) else { return };
        let received_ns = time(&batch.receive_ns);
        let end_ns = received_ns.unwrap_or(begin_ns).max(begin_ns);
        self.has_intended |= intended_ns.is_some();
        self.span_ns = (self.span_ns.0.min(begin_ns), self.span_ns.1.max(end_ns));
        // The first span that ends no earlier than the message begins.
        let next = spans.partition_point(|(_, to_ns)| *to_ns < begin_ns);
        let is_inside = spans.get(next).is_some_and(|(from_ns, _)| *from_ns <= end_ns);
        let figures = if is_inside { &mut self.inside } else { &mut self.outside };
        figures.add(received_ns.map(|received_ns| received_ns - begin_ns));
    }

    /// First due time and last time of a message, ns.
    pub fn span_ns(&self) -> (i64, i64) {
        self.span_ns
    }

    /// The figures of the messages.
    pub fn figures(self) -> MessagesByWindow {
        let metric = if self.has_intended { Metric::FromIntended } else { Metric::RoundTrip };
        let (outside, inside) = (self.outside.report(), self.inside.report());
        let mut all = self.outside;
        all.messages += self.inside.messages;
        all.times.merge(&self.inside.times);
        all.max_ns = all.max_ns.max(self.inside.max_ns);
        MessagesByWindow { metric: metric.key().to_owned(), all: all.report(), outside, inside }
    }
}

impl Figures {
    fn add(&mut self, time_ns: Option<i64>) {
        self.messages += 1;
        if let Some(ns) = time_ns {
            self.times.record(ns);
            self.max_ns = self.max_ns.max(Some(ns));
        }
    }

    fn report(&self) -> MessagesOfClock {
        // Over scheduled messages: those without an answer are later than all others.
        let quantile = |q: f64, needs: u64| {
            let rank = (self.messages as f64 * q).ceil() as u64;
            self.times.bucket_of_rank(rank.max(1)).filter(|_| self.messages >= needs).map(|found| found.bucket.high)
        };
        MessagesOfClock {
            messages: self.messages,
            answered: self.times.count(),
            p50_ns: quantile(0.5, NEEDS_P50),
            p99_ns: quantile(0.99, NEEDS_P99),
            max_ns: self.max_ns,
        }
    }
}

/// The time spans of windows without overlaps, in the order of time. The windows are in the order of their begins.
fn joined(windows: &[BadClockWindow]) -> Vec<(i64, i64)> {
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for window in windows {
        match spans.last_mut() {
            Some((_, to_ns)) if window.from_ns <= *to_ns => *to_ns = (*to_ns).max(window.to_ns),
            _ => spans.push((window.from_ns, window.to_ns)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_document::BadClock;

    fn window(from_ns: i64, to_ns: i64) -> BadClockWindow {
        BadClockWindow { from_ns, to_ns, kind: BadClock::Silent, why: String::new() }
    }

    #[test]
    fn windows_that_overlap_are_one_time_span() {
        assert_eq!(joined(&[window(0, 5), window(3, 4), window(5, 9), window(11, 12)]), [(0, 9), (11, 12)]);
    }

    #[test]
    fn figures_are_over_scheduled_messages_and_need_enough_of_them() {
        let mut few = Figures::default();
        (0..5).for_each(|n| few.add(Some(n)));
        assert_eq!((few.report().p50_ns, few.report().max_ns), (None, Some(4)));
        let mut half_lost = Figures::default();
        (0..200).for_each(|n| half_lost.add(Some(n)));
        (0..201).for_each(|_| half_lost.add(None));
        let report = half_lost.report();
        assert_eq!((report.messages, report.answered, report.p50_ns, report.p99_ns), (401, 200, None, None));
        let mut all = Figures::default();
        (0..1_000).for_each(|n| all.add(Some(n)));
        let p99 = all.report().p99_ns.unwrap();
        assert!((989..=1_010).contains(&p99), "{p99}");
    }
}
