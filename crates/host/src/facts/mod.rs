//! Facts of a host (properties of the machine) that every result must contain.
//!
//! Input: /proc, /sys and a few system calls, as seen by the calling process, and the answers of chrony and linuxptp.
//! Output: [`HostFacts`], sorted by key. If a value cannot be read, its fact contains the reason. This module judges
//! and changes nothing. A value that is equal for all CPUs is written once; otherwise each value is written with its
//! CPUs.

mod confines;
mod cpu;
mod discipline;
mod hardware_clock;
mod kernel;
mod machine;
mod memory;
mod network;
mod sched;
mod source;

use source::Collector;
use std::path::Path;
use tailbound_model::HostFacts;

/// Reads all facts of this host. The call takes some milliseconds, and one second more for each of chrony and linuxptp
/// that is installed but does not answer. The call needs no privilege, but root can read more facts.
pub fn collect() -> HostFacts {
    collect_from(Path::new("/"))
}

/// Whether the kernel of this host is a real-time kernel; false if it is not known.
pub fn is_real_time_kernel() -> bool {
    kernel::is_preempt_rt(&Collector::new(Path::new("/"))).unwrap_or(false)
}

/// Reads facts from a copied or invented tree of files; results of system calls are from the running host,
/// but its clocks are not read.
pub(crate) fn collect_from(root: &Path) -> HostFacts {
    let mut collector = Collector::new(root);
    for read in [
        kernel::read,
        cpu::read,
        machine::read,
        sched::read,
        memory::read,
        network::read,
        confines::read,
        discipline::read,
        hardware_clock::read,
    ] {
        read(&mut collector);
    }
    let name = |path: &str| collector.read(path).unwrap_or_default();
    HostFacts {
        host: name("/proc/sys/kernel/hostname"),
        boot_id: name("/proc/sys/kernel/random/boot_id"),
        facts: collector.finish(),
    }
}

#[cfg(test)]
mod tests;
