//! Counts messages in the bins of equal width that a study asks for.

use crate::series::Series;
use tailbound_document::BinsReport;
use tailbound_model::{HistogramSpec, Metric, Nanos};

/// Numbers of messages in bins of equal width, counted while the samples are read.
#[derive(Debug, Clone)]
pub(crate) struct Bins {
    spec: HistogramSpec,
    counts: Vec<u64>,
    without: u64,
}

impl Bins {
    pub fn new(spec: HistogramSpec) -> Self {
        Bins { spec, counts: vec![0; spec.bins as usize + 1], without: 0 }
    }

    /// Metric whose values are counted in bins of equal width.
    pub fn source(&self) -> Metric {
        if self.spec.metric == Metric::HalfRoundTrip { Metric::RoundTrip } else { self.spec.metric }
    }

    /// Counts, in the bins of the histogram, the values of the metric that [`Bins::source`] returns.
    pub fn offer(&mut self, series: &Series) {
        let Nanos(mut width) = self.spec.bin;
        if self.spec.metric == Metric::HalfRoundTrip {
            width = width.saturating_mul(2);
        }
        let open = self.counts.len() - 1;
        for value in series.values().iter().filter(|v| **v != Series::BEYOND) {
            self.counts[((value / width).max(0) as usize).min(open)] += 1;
        }
        self.without += series.beyond + series.without;
    }

    pub fn report(self) -> BinsReport {
        let Nanos(bin_ns) = self.spec.bin;
        BinsReport { metric: self.spec.metric.key().into(), bin_ns, counts: self.counts, without: self.without }
    }
}
