//! How a CPU quota has kept the processes of a control group from running.

use crate::process::cgroup_dir;
use std::fs;

/// How often and how long this process's control group was throttled since it is there (`cpu.stat`; the kernel's
/// documentation: scheduler/sched-bwc). `None` where it cannot be read.
pub fn throttled() -> Option<Throttled> {
    parse(&fs::read_to_string(cgroup_dir("cpu")?.join("cpu.stat")).ok()?)
}

/// Totals since the control group is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttled {
    /// Periods in which the quota was used up.
    pub times: i64,
    /// How long the CPUs of the group stood still for it, ns, all of them together.
    pub ns: i64,
}

/// Version 1 counts nanoseconds, version 2 microseconds.
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
        // The root group of version 2 has no quota, and says nothing of one.
        assert_eq!(parse("usage_usec 9\nuser_usec 5\nsystem_usec 4\n"), None);
    }
}
