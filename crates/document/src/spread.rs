//! Mean, standard deviation, minimum and maximum of the metrics of a condition: the differences to a baseline condition.

use crate::condition::ConditionReport;
use crate::metric::MetricReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailbound_model::{Metric, SPREAD_METRICS};

/// Statistics of the spread of a metric, in the order of [`ConditionReport::spread`].
pub const SPREAD_STATISTICS: [&str; 4] = ["mean", "sd", "min", "max"];

/// One statistic of one metric, of a condition and of its baseline condition, over the messages that have a value.
/// Each pair holds the smallest and the largest possible value, which differ only for a one-way metric between two
/// clocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Metric of the statistic, e.g. `round_trip`.
    pub metric: String,
    /// Name of the statistic: `mean`, `sd` (standard deviation), `min` or `max`.
    pub statistic: String,
    /// Statistic of the baseline condition, ns.
    pub baseline_ns: [f64; 2],
    /// Statistic of the condition, ns.
    pub value_ns: [f64; 2],
    /// Statistic of the condition minus statistic of the baseline condition, ns.
    pub difference_ns: [f64; 2],
}

impl ConditionReport {
    /// Smallest and largest possible mean, standard deviation, minimum and maximum of a metric, in ns; both are equal unless the
    /// metric is between two clocks. The standard deviation between two clocks is not known: it does not lie between
    /// the ones of the shortest and of the longest possible times.
    pub fn spread(&self, metric: Metric) -> [Option<[f64; 2]>; 4] {
        let of = |low: &MetricReport, high: &MetricReport| {
            let pair = |of: fn(&MetricReport) -> Option<f64>| Some([of(low)?, of(high)?]);
            let ends = [pair(|m| m.min_ns.map(|ns| ns as f64)), pair(|m| m.max_ns.map(|ns| ns as f64))];
            [pair(|m| m.mean_ns), pair(|m| m.stddev_ns), ends[0], ends[1]]
        };
        match (self.metric(metric), self.range(metric)) {
            (Some(exact), _) => of(exact, exact),
            (None, Some(range)) => {
                let [mean, _, min, max] = of(&range.low, &range.high);
                [mean, None, min, max]
            }
            (None, None) => [None; 4],
        }
    }

    /// Differences of mean, standard deviation, minimum and maximum to a baseline condition, of each metric that both have.
    pub fn differences(&self, baseline: &ConditionReport) -> Vec<Difference> {
        let of = |metric: Metric| {
            let statistics = SPREAD_STATISTICS.into_iter().zip(self.spread(metric)).zip(baseline.spread(metric));
            statistics.filter_map(move |((statistic, value), baseline)| {
                let (value_ns, baseline_ns) = (value?, baseline?);
                Some(Difference {
                    metric: metric.key().into(),
                    statistic: statistic.into(),
                    baseline_ns,
                    value_ns,
                    difference_ns: [value_ns[0] - baseline_ns[1], value_ns[1] - baseline_ns[0]],
                })
            })
        };
        SPREAD_METRICS.into_iter().flat_map(of).collect()
    }
}
