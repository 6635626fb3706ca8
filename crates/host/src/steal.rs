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
