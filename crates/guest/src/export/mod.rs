//! Exports guests for other programs: descriptions for libvirt, and variables for the real-time profiles of tuned.
//!
//! Input: the guests of a study. Output: files with a comment that gives the reason for each setting. Settings that the
//! file format cannot express are written as comments; no setting is left out silently.

mod domain;
mod tuned;

use tailbound_model::VmSpec;

/// Name and content of a file that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Name of the file to which a guest's configuration is exported, without a directory.
    pub name: String,
    /// Content of the exported configuration file.
    pub text: String,
}

/// Makes for each guest a libvirt domain description and the variables of tuned's profile `realtime-virtual-guest`, and
/// for the host the variables of `realtime-virtual-host`. Guests with equal names are numbered, because names of
/// domains are unique on a host.
pub fn libvirt(guests: &[VmSpec]) -> Vec<Exported> {
    let mut files = Vec::new();
    for (at, spec) in guests.iter().enumerate() {
        let earlier = guests[..at].iter().filter(|g| g.name == spec.name).count();
        let name = if earlier == 0 { spec.name.clone() } else { format!("{}-{}", spec.name, earlier + 1) };
        files.push(Exported { name: format!("{name}.xml"), text: domain::description(spec, &name) });
        let variables = format!("{name}-realtime-virtual-guest-variables.conf");
        files.push(Exported { name: variables, text: tuned::guest(spec) });
    }
    if !guests.is_empty() {
        files.push(Exported { name: "realtime-virtual-host-variables.conf".into(), text: tuned::host(guests) });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::{Accelerator, KernelChoice, Policy, RoleScheduling};

    fn shown(guests: &[VmSpec]) -> String {
        libvirt(guests).into_iter().map(|file| format!("== {}\n{}", file.name, file.text)).collect()
    }

    fn thread(policy: Option<Policy>, cpus: &str) -> RoleScheduling {
        RoleScheduling { policy, cpus: Some(cpus.parse().unwrap()) }
    }

    #[test]
    fn a_tuned_guest_is_described_with_its_reasons() {
        let fifo = Some(Policy::Fifo { priority: 1 });
        let tuned = VmSpec {
            name: "ping".into(),
            kernel: KernelChoice::Package("linux-image-rt-amd64.deb".into()),
            vcpus: 3,
            memory_mib: 1024,
            huge_pages: true,
            lock_memory: true,
            vcpu_threads: vec![thread(fifo, "1"), thread(fifo, "2")],
            emulator: thread(Some(Policy::Other { nice: -5 }), "0"),
            vhost: Some(thread(fifo, "4")),
            queues: 2,
            irq_cpus: Some("1-2".parse().unwrap()),
            command_line: "isolcpus=domain,managed_irq,1-2 nohz_full=1-2 -- single".into(),
            modules: vec!["sch_taprio".into()],
            ..VmSpec::default()
        };
        insta::assert_snapshot!("tuned", shown(&[tuned]));
    }

    #[test]
    fn guests_with_one_name_are_numbered() {
        let plain = VmSpec { name: "pong".into(), accelerator: Accelerator::Emulated, ..VmSpec::default() };
        let other = VmSpec { vcpu_threads: vec![thread(None, "1")], cpu_model: Some("EPYC<".into()), ..plain.clone() };
        insta::assert_snapshot!("plain", shown(&[plain, other]));
    }
}
