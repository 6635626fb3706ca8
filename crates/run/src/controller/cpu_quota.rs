//! Warns of CPU quotas that stopped an end during the measurement.

use std::collections::BTreeMap;
use tailbound_lab::{THROTTLED_NS, THROTTLED_TIMES};
use tailbound_model::{Nanos, Severity, Warning};

/// Warns if the counters of an end's control group show that its CPU quota was used up. `change` is the difference
/// between the counters after and before the measurement.
pub(super) fn throttled(end: &str, change: &BTreeMap<String, i64>) -> Option<Warning> {
    let of = |key: &str| change.get(key).copied().unwrap_or(0);
    let times = of(THROTTLED_TIMES);
    let text = format!(
        "the CPU quota of the end's control group was used up {times} times, and its CPUs were stopped for {} in total",
        Nanos(of(THROTTLED_NS))
    );
    let remedy = "give the end whole CPUs without a quota: in a pod, the same whole number as request and limit, on a node with \
                the static CPU manager; else a higher cpu.max or cpu.cfs_quota_us";
    (times > 0).then(|| Warning::new("throttled", Severity::Warning, text, remedy).at_end(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_was_used_up_is_reported() {
        let change = |times, ns| BTreeMap::from([(THROTTLED_TIMES.to_owned(), times), (THROTTLED_NS.to_owned(), ns)]);
        assert_eq!(throttled("pong", &change(0, 0)), None);
        let warning = throttled("pong", &change(3, 210_000_000)).unwrap();
        assert_eq!(
            warning.problem.what,
            "the CPU quota of the end's control group was used up 3 times, and its CPUs were stopped for 210 ms in total"
        );
    }
}
