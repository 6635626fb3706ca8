//! Writes the variables of tuned's profiles for real-time guests and their hosts.

use std::collections::BTreeSet;
use tailbound_model::{CpuList, VmSpec};

/// Content of the file `/etc/tuned/realtime-virtual-host-variables.conf` on the host.
pub(super) fn host(guests: &[VmSpec]) -> String {
    let pinned = guests.iter().flat_map(|g| g.vcpu_threads.iter().chain(&g.vhost)).filter_map(|t| t.cpus.as_ref());
    let housekeeping: BTreeSet<u32> =
        guests.iter().filter_map(|g| g.emulator.cpus.as_ref()).flat_map(|c| c.0.clone()).collect();
    let all: BTreeSet<u32> = pinned.flat_map(|cpus| cpus.0.iter().copied()).collect();
    let isolated = CpuList(all.difference(&housekeeping).copied().collect());
    let names: BTreeSet<&str> = guests.iter().map(|g| g.name.as_str()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let why = format!(
        "# The CPUs of this host to which vCPUs and vhost threads are pinned (guests: {names}), without the CPUs of the\n\
         # other threads of QEMU. No other program of the host should run on them."
    );
    file("host", "the host", &why, &isolated)
}

/// Content of the file `/etc/tuned/realtime-virtual-guest-variables.conf` inside the guest.
pub(super) fn guest(spec: &VmSpec) -> String {
    let asked = spec.command_line.split_whitespace().find_map(|word| cpus_of(word.strip_prefix("isolcpus=")?));
    let why = match &asked {
        Some(_) => "# The vCPUs that the study isolates from the guest's scheduler (isolcpus).",
        None => "# All vCPUs except the first, which runs all other work of the guest.",
    };
    let isolated = asked.unwrap_or_else(|| CpuList((1..spec.vcpus).collect()));
    file("guest", &format!("guest {}", spec.name), why, &isolated)
}

/// The CPUs after the flags in a value such as `domain,managed_irq,1-3` of `isolcpus`.
fn cpus_of(value: &str) -> Option<CpuList> {
    let at = value.find(|c: char| c.is_ascii_digit())?;
    value[at..].parse().ok()
}

fn file(kind: &str, where_to: &str, why: &str, isolated: &CpuList) -> String {
    let profile = format!("realtime-virtual-{kind}");
    let head = format!(
        "# Variables of the tuned profile {profile}, for {where_to}.\n\
         # Put it into /etc/tuned/{profile}-variables.conf, then run tuned-adm profile {profile} and reboot.\n"
    );
    if isolated.is_empty() {
        return format!("{head}{why}\n# No CPUs are isolated: pin threads first.\n# isolated_cores=\n");
    }
    format!(
        "{head}{why}\nisolated_cores={isolated}\n# Interrupts that drivers spread over all CPUs stay off the isolated CPUs too.\n\
         isolate_managed_irq=Y\n"
    )
}
