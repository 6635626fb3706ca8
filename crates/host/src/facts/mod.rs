//! The circumstances of a result that a host can tell.
//!
//! In: /proc, /sys, a few system calls, as the calling process sees them, and what chrony and linuxptp answer. Out: [`HostFacts`], sorted by key. What cannot be
//! read is a fact too, with its reason; nothing is left out silently, nothing is judged, nothing is changed. A value that
//! is the same for all CPUs stands once; otherwise the CPUs stand with each value.

mod confines;
mod cpu;
mod discipline;
mod kernel;
mod machine;
mod memory;
mod network;
mod sched;
mod source;

pub(crate) use network::interrupts;
use source::Collector;
use std::path::Path;
use tailbound_model::HostFacts;

/// Reads all facts of this host. Takes some milliseconds, a second more if chrony or linuxptp are there and do not answer; needs no privilege, but root reads more.
pub fn collect() -> HostFacts {
    collect_from(Path::new("/"))
}

/// The same with the files of a copied or made-up tree. What a system call tells is of the running host.
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
