//! Facts about limits of the network stack, and the CPUs that receive the interrupts of network cards. Facts of one
//! interface are in [`crate::interface`].

use super::source::Collector;
use crate::interrupts::interrupts;
use std::collections::BTreeMap;

/// Maximum number of interrupts reported for each card; a large card has one interrupt for each queue.
const IRQS_PER_CARD: usize = 16;

pub(super) fn read(c: &mut Collector) {
    for name in [
        "net.core.rmem_default",
        "net.core.rmem_max",
        "net.core.wmem_default",
        "net.core.wmem_max",
        "net.core.netdev_max_backlog",
        "net.core.netdev_budget",
        "net.core.busy_poll",
        "net.core.busy_read",
        "net.ipv4.ipfrag_high_thresh",
        "net.ipv4.ipfrag_low_thresh",
        "net.ipv4.ipfrag_time",
        "net.ipv4.ipfrag_max_dist",
        "net.ipv4.udp_early_demux",
    ] {
        c.number(name, &format!("/proc/sys/{}", name.replace('.', "/")));
    }
    c.choice("net.ipv4.udp_mem", "/proc/sys/net/ipv4/udp_mem");
    c.text("net.core.default_qdisc", "/proc/sys/net/core/default_qdisc");
    c.text("irq.default_affinity", "/proc/irq/default_smp_affinity");
    let balanced = running(c, "irqbalance");
    c.put_flag("irq.balance_daemon", "/proc/*/comm", balanced);
    cards(c);
}

/// Whether a process with this name runs on the host.
fn running(c: &Collector, name: &str) -> Result<bool, String> {
    let pids: Vec<String> = c.names("/proc").into_iter().filter(|n| n.bytes().all(|b| b.is_ascii_digit())).collect();
    if pids.is_empty() {
        return Err("no processes are shown".into());
    }
    Ok(pids.iter().any(|pid| c.read(&format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == name)))
}

fn cards(c: &mut Collector) {
    let cards: Vec<String> = c
        .names("/sys/class/net")
        .into_iter()
        .filter(|card| c.exists(&format!("/sys/class/net/{card}/device")))
        .collect();
    if cards.is_empty() {
        return c.put_text("irq.cards", "/sys/class/net", Err("/sys shows no network card with a device".into()));
    }
    let table = c.read("/proc/interrupts").map(|text| interrupts(&text));
    for card in cards {
        let key = format!("irq.{card}");
        // A virtio card's vectors belong to the device one level up.
        let dirs = ["device/msi_irqs", "device/../msi_irqs"].map(|d| format!("/sys/class/net/{card}/{d}"));
        let numbers = dirs.iter().map(|d| c.names(d)).find(|n| !n.is_empty()).unwrap_or_default();
        let table = match (&table, numbers.is_empty()) {
            (Ok(table), false) => table,
            (Err(why), _) => {
                c.put_text(key, "/proc/interrupts", Err(why.clone()));
                continue;
            }
            (_, true) => {
                c.put_text(key, &dirs[0], Err("/sys shows no message-signaled interrupts (MSI) of this card".into()));
                continue;
            }
        };
        let mut parts: Vec<String> =
            numbers.iter().filter_map(|n| n.parse().ok()).map(|n: u32| one(c, n, table)).collect();
        if parts.len() > IRQS_PER_CARD {
            let more = parts.split_off(IRQS_PER_CARD).len();
            parts.push(format!("and {more} more"));
        }
        c.put_text(key, "/proc/irq/N/smp_affinity_list, /proc/interrupts", Ok(parts.join("; ")));
    }
}

/// Formats one interrupt as text: `42 virtio3-tx: CPUs 0-1, on 1, 5452 times` (number, name, CPUs that may receive the
/// interrupt, CPU that receives it, number of interrupts since boot).
fn one(c: &Collector, number: u32, table: &BTreeMap<u32, (u64, String)>) -> String {
    let read = |file: &str| c.read(&format!("/proc/irq/{number}/{file}")).unwrap_or_else(|_| "?".into());
    let (count, name) = table.get(&number).cloned().unwrap_or((0, "unused".into()));
    format!(
        "{number} {name}: CPUs {}, on {}, {count} times",
        read("smp_affinity_list"),
        read("effective_affinity_list")
    )
}
