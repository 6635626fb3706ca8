//! Reads how often and for how long a CPU quota has stopped the processes of a control group.

use crate::process::cgroup_dir;
use std::fs;
use std::path::Path;

/// Reads how often and how long this process's control group was throttled since the group was made (`cpu.stat`; kernel
/// documentation: scheduler/sched-bwc). `None` if the counters cannot be read.
pub fn throttled() -> Option<Throttled> {
    throttled_in(&cgroup_dir("cpu")?)
}

/// Reads how often and how long the control group with this directory was throttled.
pub(crate) fn throttled_in(group: &Path) -> Option<Throttled> {
    parse(&fs::read_to_string(group.join("cpu.stat")).ok()?)
}

/// Number and total time of the stops of a control group by its CPU quota, since the group was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttled {
    /// Number of periods in which the control group used up its CPU quota.
    pub times: i64,
    /// Total time for which the CPU quota stopped the control group, summed over CPUs, in ns.
    pub ns: i64,
}

/// Parses the text of `cpu.stat`: control groups of version 1 count nanoseconds, control groups of version 2
/// microseconds.
fn parse(stat: &str) -> Option<Throttled> {
    let of = |key: &str| stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<i64>().ok());
    let ns = of("throttled_time ").or_else(|| of("throttled_usec ").map(|us| us * 1_000))?;
    Some(Throttled { times: of("nr_throttled ")?, ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let one = "nr_periods 7\nnr_throttled 3\nthrottled_time 210000000\n";
        assert_eq!(parse(one), Some(Throttled { times: 3, ns: 210_000_000 }));
        let two = "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 7\nnr_throttled 3\nthrottled_usec 210000\n";
        assert_eq!(parse(two), Some(Throttled { times: 3, ns: 210_000_000 }));
        // The root group of version 2 has no quota and shows no throttling.
        assert_eq!(parse("usage_usec 9\nuser_usec 5\nsystem_usec 4\n"), None);
    }
}
