//! Knob for the CPUs that may receive interrupts: /proc/irq/N/smp_affinity_list of interrupts found by number or name
//! in /proc/interrupts.

use super::error::KnobError;
use super::file::FileSetting;
use super::setting::Setting;
use std::path::PathBuf;
use tailbound_abi::name_matches;

/// Finds all interrupts with this number, or with a handler whose name matches the pattern.
pub(super) fn find(irq: &str, key: &str) -> Result<Vec<Box<dyn Setting>>, KnobError> {
    let what = || format!("interrupt {irq}");
    let table = std::fs::read_to_string("/proc/interrupts").map_err(|e| KnobError::of(key, what(), "read", "", &e))?;
    let found = named(&table, irq);
    if found.is_empty() {
        let why = "no line of /proc/interrupts has this number or name".to_owned();
        return Err(KnobError::Absent { key: key.to_owned(), what: what(), why });
    }
    let setting = |(number, names): (u32, String)| -> Box<dyn Setting> {
        let path = PathBuf::from(format!("/proc/irq/{number}/smp_affinity_list"));
        Box::new(FileSetting { path, netns: None, label: format!("interrupt {number} ({names})") })
    };
    Ok(found.into_iter().map(setting).collect())
}

/// Numbers and names of the interrupts whose number or handler matches `irq`. In each line of /proc/interrupts, the
/// counts are followed by the chip, the interrupt line and the names of the handlers.
fn named(table: &str, irq: &str) -> Vec<(u32, String)> {
    let cpus = table.lines().next().unwrap_or_default().split_whitespace().count();
    let line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let number: u32 = number.trim().parse().ok()?;
        let names: Vec<&str> = rest.split_whitespace().skip(cpus).map(|word| word.trim_end_matches(',')).collect();
        let meant = irq.parse() == Ok(number) || names.iter().any(|name| name_matches(irq, name));
        meant.then(|| (number, names.last().copied().unwrap_or("no handler").to_owned()))
    };
    table.lines().skip(1).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn interrupts_are_found_by_number_and_by_name() {
        let table = "           CPU0       CPU1\n  4:  1  0  IO-APIC  4-edge  ttyS0\n 24: 5 6 PCI-MSI 327680-edge eth0-rx-0\n \
                     25: 7 8 PCI-MSI 327681-edge eth0-tx-0, snd\nLOC:  9  9  Local timer interrupts\n";
        let numbers = |irq: &str| named(table, irq).into_iter().map(|(n, _)| n).collect::<Vec<_>>();
        assert_eq!(numbers("4"), [4]);
        assert_eq!(numbers("eth0-*"), [24, 25]);
        assert_eq!(numbers("snd"), [25]);
        assert_eq!(numbers("eth1"), [] as [u32; 0]);
        assert_eq!(named(table, "ttyS0"), [(4, "ttyS0".to_owned())]);
    }
}
