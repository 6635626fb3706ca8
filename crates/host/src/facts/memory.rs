//! Facts about memory: sizes, and the settings by which the kernel moves, merges or swaps pages of a process.

use super::source::Collector;

pub(super) fn read(c: &mut Collector) {
    let info = c.read("/proc/meminfo");
    for (key, name) in [
        ("memory.total_kib", "MemTotal"),
        ("memory.available_kib", "MemAvailable"),
        ("memory.swap_total_kib", "SwapTotal"),
        ("memory.swap_free_kib", "SwapFree"),
        ("memory.huge_pages", "HugePages_Total"),
    ] {
        let value = info.clone().and_then(|text| field(&text, name).ok_or_else(|| format!("no {name}")));
        c.put_number(key, "/proc/meminfo", value);
    }
    c.number("memory.swappiness", "/proc/sys/vm/swappiness");
    c.choice("memory.thp", "/sys/kernel/mm/transparent_hugepage/enabled");
    c.choice("memory.thp_defrag", "/sys/kernel/mm/transparent_hugepage/defrag");
    c.number("memory.ksm", "/sys/kernel/mm/ksm/run");
    c.flag("memory.numa_balancing", "/proc/sys/kernel/numa_balancing");
    c.number("memory.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness");
}

fn field(text: &str, name: &str) -> Option<i64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key == name).then(|| value.split_whitespace().next()?.parse().ok())?
    })
}
