//! What is compared of each condition.

use super::CompareOptions;
use crate::number::{three_digits, time};
use tailbound_model::{Condition, Flow, Metric};
use tailbound_stats::Quantile;
use tailbound_stats::compare::Statistic;

/// One statistic of a condition. A new one is a line of [`LATENCIES`] or [`FLOWS`], and an arm where trials are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wanted {
    pub metric: &'static str,
    pub name: &'static str,
    pub unit: &'static str,
    pub of: Of,
    /// Rates; of times less is better.
    pub higher_is_better: bool,
}

/// Where it is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Of {
    /// From rows: the number of the metric among those asked for, and what of it.
    Rows(usize, Statistic),
    /// Samples per second at the slowest subscriber.
    SamplesPerSecond,
    /// CPU time of the publisher's process per sample.
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

/// All statistics of a condition, in the order of the table.
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
    // A flow that asks for answers has round trips too.
    let metrics = options.metrics.iter().enumerate().filter(|_| flow.is_none_or(Flow::has_answers));
    of_flow.chain(metrics.flat_map(of_metric)).collect()
}

/// A value with its unit.
pub(crate) fn shown(value: Option<f64>, unit: &str) -> String {
    match value {
        None => String::new(),
        Some(ns) if unit == "ns" => time(ns),
        Some(value) => format!("{} {unit}", three_digits(value)),
    }
}

#[cfg(test)]
mod tests {
    /// Budgets name them without knowing this crate.
    #[test]
    fn names_are_those_of_the_vocabulary() {
        assert_eq!(super::LATENCIES.map(|(name, _)| name), tailbound_model::COMPARED_STATISTICS);
    }
}
