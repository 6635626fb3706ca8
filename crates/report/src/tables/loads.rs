//! Figures of loads for the tables and sentences of a report.

use tailbound_document::LoadReport;

/// CPU time of a load divided by the time for which it ran, in percent of one CPU.
pub(crate) fn busy(load: &LoadReport) -> Option<f64> {
    (load.ran_ns > 0).then(|| 100.0 * load.cpu_ns as f64 / load.ran_ns as f64)
}

/// Number of messages that a load sent or received per second, from their number and the time for which the load ran.
pub(crate) fn per_second(n: Option<u64>, ran_ns: i64) -> Option<u64> {
    n.filter(|_| ran_ns > 0).map(|n| (n as f64 * 1e9 / ran_ns as f64).round() as u64)
}
