//! Reads the interrupts of a host from /proc/interrupts.

use std::collections::BTreeMap;

/// Parses the text of /proc/interrupts. Returns for each interrupt number: the number of interrupts on all CPUs, and
/// the name of the handler.
pub(crate) fn interrupts(text: &str) -> BTreeMap<u32, (u64, String)> {
    let cpus = text.lines().next().unwrap_or_default().split_whitespace().count();
    let rows = text.lines().skip(1).filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let count = words.iter().take(cpus).filter_map(|n| n.parse::<u64>().ok()).sum();
        Some((number.trim().parse().ok()?, (count, words.last()?.to_string())))
    });
    rows.collect()
}
