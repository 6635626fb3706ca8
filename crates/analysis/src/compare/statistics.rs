//! The statistics of a condition that are compared with another condition.

use crate::compare::options::CompareOptions;
use tailbound_model::{Condition, Flow, Metric};
use tailbound_stats::Quantile;
use tailbound_stats::compare::Statistic;

/// One statistic of a condition that is compared. A new statistic needs a line in [`LATENCIES`] or [`FLOWS`], and code
/// in `trials` that reads its values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wanted {
    pub metric: &'static str,
    pub name: &'static str,
    pub unit: &'static str,
    pub of: Of,
    /// True if the statistic is a rate, for which higher values are better; false for times.
    pub higher_is_better: bool,
}

/// The recorded data from which the values of a compared statistic are computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Of {
    /// Rows of samples: the index of the metric among the requested metrics, and the statistic of this metric.
    Rows(usize, Statistic),
    /// Samples per second of a flow at the slowest subscriber.
    SamplesPerSecond,
    /// CPU time of the publisher's process per sample of a flow.
    PublisherCpu,
}

pub(crate) const LATENCIES: [(&str, Statistic); 4] = [
    ("p50", Statistic::Quantile(Quantile::P50)),
    ("p99", Statistic::Quantile(Quantile::P99)),
    ("p99.9", Statistic::Quantile(Quantile::P99_9)),
    ("mean", Statistic::Mean),
];

const FLOWS: [Wanted; 2] = [
    Wanted { metric: "throughput", name: "samples/s", unit: "1/s", of: Of::SamplesPerSecond, higher_is_better: true },
    Wanted { metric: "publisher_cpu", name: "CPU/sample", unit: "ns", of: Of::PublisherCpu, higher_is_better: false },
];

/// All compared statistics of a condition, in the order of the table.
pub(crate) fn of(condition: &Condition, options: &CompareOptions) -> Vec<Wanted> {
    let flow = condition.spec.measure.flow();
    let of_flow = flow.map_or(&[][..], |_| &FLOWS[..]).iter().copied();
    let of_metric = |(at, metric): (usize, &Metric)| {
        let key = metric.key();
        LATENCIES.map(|(name, statistic)| Wanted {
            metric: key,
            name,
            unit: "ns",
            of: Of::Rows(at, statistic),
            higher_is_better: false,
        })
    };
    // A flow that asks for answers also has round trips.
    let metrics = options.metrics.iter().enumerate().filter(|_| flow.is_none_or(Flow::has_answers));
    of_flow.chain(metrics.flat_map(of_metric)).collect()
}

#[cfg(test)]
mod tests {
    /// Test: `LATENCIES` has the names of `COMPARED_STATISTICS` in `tailbound-model`, which budgets use, because the
    /// reader of budgets does not depend on this crate.
    #[test]
    fn names_are_those_of_the_vocabulary() {
        assert_eq!(super::LATENCIES.map(|(name, _)| name), tailbound_model::COMPARED_STATISTICS);
    }
}
