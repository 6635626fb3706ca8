//! Draws a distribution as one line of text: the horizontal axis is time on a logarithmic scale, and the height is the
//! logarithm of the count.

use tailbound_document::number::time;
use tailbound_document::{ConditionReport, MetricReport};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The time axis that all distribution lines of a table share.
pub(crate) struct Axis {
    low: f64,
    high: f64,
    width: usize,
}

impl Axis {
    /// An axis that contains every round trip of the conditions; `None` if there are no round trips.
    pub fn over(conditions: &[ConditionReport], width: usize) -> Option<Axis> {
        let figures = || conditions.iter().filter_map(|c| c.round_trip.as_ref()).filter(|m| m.n > 0);
        let low = figures().filter_map(|m| m.min_ns).min()?.max(1) as f64;
        let high = figures().filter_map(|m| m.max_ns).max()? as f64;
        Some(Axis { low, high: high.max(low * 1.01), width })
    }

    /// Words for the values at both ends of the time axis of distribution lines.
    pub fn words(&self) -> String {
        format!("from {} to {}, both scales logarithmic", time(self.low), time(self.high))
    }

    /// Draws the distribution of a metric as a line of text.
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
