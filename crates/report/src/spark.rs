//! A distribution in one line of text: time to the right on a log axis, height by the log of the count.

use crate::condition::{ConditionReport, MetricReport};
use crate::number::time;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The axis that all lines of a table share.
pub(crate) struct Axis {
    low: f64,
    high: f64,
    width: usize,
}

impl Axis {
    /// Spans every round trip of the conditions; `None` when there is none.
    pub fn over(conditions: &[ConditionReport], width: usize) -> Option<Axis> {
        let figures = || conditions.iter().filter_map(|c| c.round_trip.as_ref()).filter(|m| m.n > 0);
        let low = figures().filter_map(|m| m.min_ns).min()?.max(1) as f64;
        let high = figures().filter_map(|m| m.max_ns).max()? as f64;
        Some(Axis { low, high: high.max(low * 1.01), width })
    }

    /// What the ends stand for.
    pub fn words(&self) -> String {
        format!("from {} to {}, both scales logarithmic", time(self.low), time(self.high))
    }

    /// The line of a metric.
    pub fn line(&self, figures: &MetricReport) -> String {
        let mut counts = vec![0u64; self.width];
        for (low, high, count) in &figures.histogram {
            let middle = (*low as f64 + *high as f64) / 2.0;
            let at = (middle.max(1.0) / self.low).ln() / (self.high / self.low).ln() * self.width as f64;
            counts[(at.max(0.0) as usize).min(self.width - 1)] += count;
        }
        let top = counts.iter().copied().max().unwrap_or(0).max(2) as f64;
        let bar = |count: &u64| match *count {
            0 => ' ',
            n => BARS[((n as f64).ln() / top.ln() * 7.0).round() as usize],
        };
        counts.iter().map(bar).collect()
    }
}
