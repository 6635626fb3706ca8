//! Steal time: the time that the hypervisor took from the CPUs of this machine (proc_stat(5)).

use std::fs;

/// True if this machine can have a hypervisor. Reading the steal time takes long on a machine with many CPUs.
#[cfg(target_arch = "x86_64")]
pub(crate) fn can_be() -> bool {
    /// The processor sets this bit for a guest (CPUID leaf 1, ECX).
    const GUEST: u32 = 1 << 31;
    std::arch::x86_64::__cpuid(1).ecx & GUEST != 0
}

/// True if this machine can have a hypervisor: other processors do not say.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn can_be() -> bool {
    true
}

/// Steal time of each online CPU since the machine was started, ns. Empty if it cannot be read.
pub(crate) fn stolen() -> Vec<(u32, u64)> {
    parsed(&fs::read_to_string("/proc/stat").unwrap_or_default(), crate::clock::tick_ns())
}

/// What all CPUs of this machine did since it was started, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Time in which they had something to do, in a resolution of a hundredth of a second.
    pub busy_ns: u64,
    /// Time that a hypervisor took from them.
    pub stolen_ns: u64,
    /// All time.
    pub all_ns: u64,
}

/// What all CPUs did until now. `None` = /proc/stat cannot be read.
pub fn cpu_times() -> Option<CpuTimes> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    times(text.lines().next()?, crate::clock::tick_ns())
}

fn times(line: &str, tick_ns: u64) -> Option<CpuTimes> {
    let columns: Vec<u64> = line.strip_prefix("cpu ")?.split_ascii_whitespace().map_while(|n| n.parse().ok()).collect();
    // guest and guest_nice, which follow, are parts of user and nice.
    let [user, nice, system, idle, iowait, irq, softirq, stolen, ..] = columns[..] else { return None };
    let busy = user + nice + system + irq + softirq;
    let all = busy + idle + iowait + stolen;
    Some(CpuTimes { busy_ns: busy * tick_ns, stolen_ns: stolen * tick_ns, all_ns: all * tick_ns })
}

/// Number and steal time of each CPU from the text of /proc/stat, whose times are in units of `tick_ns`.
fn parsed(text: &str, tick_ns: u64) -> Vec<(u32, u64)> {
    let one = |line: &str| {
        let mut columns = line.strip_prefix("cpu")?.split(' ');
        // The first line is the sum of all CPUs, and has no number.
        let cpu = columns.next()?.parse().ok()?;
        // user nice system idle iowait irq softirq steal
        Some((cpu, columns.nth(7)?.parse::<u64>().ok()? * tick_ns))
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_cpus_is_read() {
        let found = times("cpu  9 1 10 70 5 2 3 57 4 0", 10_000_000).unwrap();
        assert_eq!(found, CpuTimes { busy_ns: 250_000_000, stolen_ns: 570_000_000, all_ns: 1_570_000_000 });
        assert_eq!(times("cpu  1 2", 10_000_000), None);
    }

    #[test]
    fn each_cpu_has_its_steal_time() {
        let text =
            "cpu  9 0 9 9 9 0 9 57 0 0\ncpu0 1 0 2 3 4 0 5 50 0 0\ncpu12 1 0 2 3 4 0 5 7 0 0\nintr 1 2 3 4 5 6 7 8 9\n";
        assert_eq!(parsed(text, 10_000_000), [(0, 500_000_000), (12, 70_000_000)]);
        assert_eq!(parsed("cpu1 1 0 2\n", 10_000_000), []);
        let online = crate::switches::online_cpus().unwrap();
        let read: Vec<u32> = stolen().iter().map(|(cpu, _)| *cpu).collect();
        assert_eq!(read, online.0.into_iter().collect::<Vec<u32>>());
    }
}
