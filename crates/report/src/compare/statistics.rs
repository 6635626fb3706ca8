//! What is compared of each metric.

use tailbound_stats::Quantile;
use tailbound_stats::compare::Statistic;

/// One statistic. A new one, such as a rate, is a line of [`ALL`] and an arm where trials are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wanted {
    pub name: &'static str,
    pub of: Statistic,
    /// Rates; of latencies less is better.
    pub higher_is_better: bool,
}

const fn latency(name: &'static str, of: Statistic) -> Wanted {
    Wanted { name, of, higher_is_better: false }
}

pub(crate) const ALL: [Wanted; 4] = [
    latency("p50", Statistic::Quantile(Quantile::P50)),
    latency("p99", Statistic::Quantile(Quantile::P99)),
    latency("p99.9", Statistic::Quantile(Quantile::P99_9)),
    latency("mean", Statistic::Mean),
];

#[cfg(test)]
mod tests {
    /// Budgets name them without knowing this crate.
    #[test]
    fn names_are_those_of_the_vocabulary() {
        assert_eq!(super::ALL.map(|w| w.name), tailbound_model::COMPARED_STATISTICS);
    }
}
