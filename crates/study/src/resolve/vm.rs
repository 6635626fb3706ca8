//! Resolves the keys of a virtual machine in which an end runs.

use super::pod::{is_label, mib};
use super::scheduling::role;
use crate::error::Fault;
use crate::format::{
    AcceleratorChoice, ChannelChoice, DomainKeys, ImageKeys, KernelKeys, RoleKeys, SwitchChoice, VhostChoice, VmKeys,
};
use crate::read::At;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use tailbound_model::{Accelerator, DomainSpec, KernelChoice, RoleScheduling, SshSpec, VmChannel, VmSpec};

const MOST_VCPUS: u32 = 64;
const MOST_QUEUES: u32 = 16;
/// Largest number of further guests beside one guest; a larger number is probably a mistake.
const MOST_NEIGHBOURS: u32 = 32;

/// Resolves the keys of a guest (virtual machine) as the place of an end.
pub(super) fn vm(keys: &VmKeys, end: &str) -> Result<VmSpec, Fault> {
    if let Some(name) = keys.name.as_ref().filter(|n| !is_label(&n.value)) {
        let reason = format!("`{}` cannot be the name of a guest", name.value);
        return Err(Fault::new(name.at, reason).help(
            "use 1 to 40 lower-case letters, digits and `-`; the name begins and ends with a letter or a digit",
        ));
    }
    let default = VmSpec::default();
    let on = |choice: Option<SwitchChoice>| choice == Some(SwitchChoice::On);
    let vcpus = count(keys.vcpus.as_ref(), 1..=MOST_VCPUS, "virtual CPUs")?.unwrap_or(default.vcpus);
    let spec = VmSpec {
        name: keys.name.as_ref().map_or_else(|| end.to_owned(), |n| n.value.clone()),
        kernel: keys.kernel.as_ref().map(|k| kernel(&k.value)).transpose()?.unwrap_or_default(),
        accelerator: match keys.accelerator {
            None | Some(AcceleratorChoice::Kvm) => Accelerator::Kvm,
            Some(AcceleratorChoice::Any) => Accelerator::Any,
            Some(AcceleratorChoice::Emulated) => Accelerator::Emulated,
        },
        vcpus,
        memory_mib: keys.memory.as_ref().map(memory).transpose()?.unwrap_or(default.memory_mib),
        huge_pages: on(keys.huge_pages),
        lock_memory: on(keys.lock_memory),
        machine: keys.machine.as_ref().map(option).transpose()?,
        cpu_model: keys.cpu_model.as_ref().map(option).transpose()?,
        vcpu_threads: vcpu_threads(keys.vcpu_threads.as_deref().unwrap_or_default(), vcpus)?,
        emulator: keys.emulator.as_ref().map(|k| role("emulator", k)).transpose()?.unwrap_or_default(),
        vhost: keys.vhost.as_ref().map(vhost).transpose()?.flatten(),
        queues: count(keys.queues.as_ref(), 1..=MOST_QUEUES, "queues")?.unwrap_or(default.queues),
        irq_cpus: match &keys.irq_cpus {
            Some(cpus) => cpus.value.0.clone(),
            None => None,
        },
        offloads: on(keys.offloads),
        command_line: keys.command_line.as_ref().map(command_line).transpose()?.unwrap_or_default(),
        modules: keys.modules.iter().flatten().map(module).collect::<Result<_, _>>()?,
        channel: match keys.channel {
            None | Some(ChannelChoice::VirtioSerial) => VmChannel::VirtioSerial,
            Some(ChannelChoice::Tcp) => VmChannel::Tcp,
        },
        neighbours: count(keys.neighbours.as_ref(), 0..=MOST_NEIGHBOURS, "neighbours")?.unwrap_or(default.neighbours),
    };
    starves(keys.emulator.as_ref(), (&spec.name, spec.vcpus), (&spec.vcpu_threads, &spec.emulator))?;
    if let (Some(irq), Some(at)) = (&spec.irq_cpus, &keys.irq_cpus)
        && let Some(cpu) = irq.0.iter().find(|cpu| **cpu >= vcpus)
    {
        let reason = format!("the guest has no CPU {cpu}: its virtual CPUs are 0 to {}", vcpus - 1);
        return Err(Fault::new(at.at, reason).help("the numbers are CPUs of the guest, not of this host"));
    }
    Ok(spec)
}

fn count(given: Option<&At<u32>>, possible: RangeInclusive<u32>, what: &str) -> Result<Option<u32>, Fault> {
    match given {
        Some(n) if !possible.contains(&n.value) => {
            let reason = format!("a guest cannot have {} {what}", n.value);
            Err(Fault::new(n.at, reason).help(format!("{} to {}", possible.start(), possible.end())))
        }
        n => Ok(n.map(|n| n.value)),
    }
}

/// Smallest memory of a guest in MiB: a kernel with its initial file system needs more memory than an agent.
const LEAST_MIB: u32 = 128;

fn memory(size: &At<crate::format::Size>) -> Result<u32, Fault> {
    let whole = mib(size.value.0, size, "guest")?;
    match whole < LEAST_MIB {
        true => Err(Fault::new(
            size.at,
            format!("{whole} MiB are too few for a guest: its first file system is kept in memory"),
        )
        .help(format!("at least {LEAST_MIB} MiB"))),
        false => Ok(whole),
    }
}

fn kernel(keys: &KernelKeys) -> Result<KernelChoice, Fault> {
    let file =
        |path: &At<String>| match path.value.trim() {
            "" => Err(Fault::new(path.at, "the name of the file is empty")
                .help("write for example `linux-image-rt-amd64.deb`")),
            _ => Ok(path.value.clone()),
        };
    Ok(match keys {
        KernelKeys::Host => KernelChoice::Host,
        KernelKeys::Package(path) => KernelChoice::Package(file(path)?),
        KernelKeys::Image(ImageKeys { file: image, modules }) => {
            KernelChoice::Image { image: file(image)?, modules: modules.as_ref().map(file).transpose()? }
        }
    })
}

/// Checks a value for an option of QEMU. A comma would begin another option, except in a CPU model, where commas
/// separate features.
fn option(word: &At<String>) -> Result<String, Fault> {
    let bad = |c: char| c.is_whitespace() || c.is_control();
    match word.value.is_empty() || word.value.starts_with(['-', ',']) || word.value.contains(bad) {
        true => Err(Fault::new(word.at, format!("`{}` cannot be an option of QEMU", word.value))
            .help("write a name that `qemu-system-x86_64 -machine help` or `-cpu help` prints")),
        false => Ok(word.value.clone()),
    }
}

fn command_line(text: &At<String>) -> Result<String, Fault> {
    if text.value.contains(|c: char| c.is_control()) || !text.value.is_ascii() {
        let reason = "the command line of a kernel must be one line of ASCII";
        return Err(Fault::new(text.at, reason).help("separate words by spaces"));
    }
    let ours = ["tailbound.", "init=", "rdinit=", "console=", "root="];
    match text.value.split_whitespace().find(|word| ours.iter().any(|o| word.starts_with(o))) {
        Some(word) => Err(Fault::new(text.at, format!("Tailbound itself sets `{word}`")).help("leave it out")),
        None => Ok(text.value.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

fn module(name: &At<String>) -> Result<String, Fault> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    match !name.value.is_empty() && name.value.bytes().all(inner) {
        true => Ok(name.value.clone()),
        false => Err(Fault::new(name.at, format!("`{}` cannot be the name of a module", name.value))
            .help("write the name as `modprobe` takes it, for example `sch_taprio`")),
    }
}

fn vcpu_threads(all: &[At<RoleKeys>], vcpus: u32) -> Result<Vec<RoleScheduling>, Fault> {
    if let Some(more) = all.get(vcpus as usize) {
        let reason = format!("`vcpu_threads` has {} entries, but the guest has {vcpus} virtual CPUs", all.len());
        return Err(Fault::new(more.at, reason)
            .help("give one entry for each virtual CPU; the last entry applies to all remaining virtual CPUs"));
    }
    all.iter().map(|keys| role("vCPU", keys)).collect()
}

fn vhost(choice: &At<VhostChoice>) -> Result<Option<RoleScheduling>, Fault> {
    match &choice.value {
        VhostChoice::Off => Ok(None),
        VhostChoice::On(keys) if keys.policy.is_none() && keys.cpus.is_none() => Ok(Some(RoleScheduling::default())),
        VhostChoice::On(keys) => role("vhost", &At { at: choice.at, value: RoleKeys::clone(keys) }).map(Some),
    }
}

/// Resolves the keys of an existing libvirt domain as the place of an end.
pub(super) fn domain(keys: &DomainKeys, ssh: Option<SshSpec>) -> Result<DomainSpec, Fault> {
    let word = |word: &At<String>, what: &str| {
        let bad = word.value.is_empty() || word.value.starts_with('-') || word.value.contains(char::is_control);
        match bad {
            true => Err(Fault::new(word.at, format!("`{}` cannot be {what}", word.value))
                .help("see `virsh list --all` and `virsh uri`")),
            false => Ok(word.value.clone()),
        }
    };
    let threads = keys.vcpu_threads.as_deref().unwrap_or_default();
    let spec = DomainSpec {
        name: word(&keys.name, "the name of a domain")?,
        connect: keys.connect.as_ref().map(|c| word(c, "the address of a libvirt")).transpose()?,
        ssh,
        // The number of virtual CPUs is known only when the domain is found.
        vcpu_threads: vcpu_threads(threads, MOST_VCPUS)?,
        emulator: keys.emulator.as_ref().map(|k| role("emulator", k)).transpose()?.unwrap_or_default(),
    };
    let named = (spec.name.as_str(), spec.vcpu_threads.len() as u32);
    starves(keys.emulator.as_ref(), named, (&spec.vcpu_threads, &spec.emulator))?;
    Ok(spec)
}

/// Checks that QEMU's other threads do not have only CPUs of real-time virtual CPUs: if such a virtual CPU never
/// sleeps, QEMU's other threads never run, and the guest's devices stop.
fn starves(
    keys: Option<&At<RoleKeys>>,
    (name, vcpus): (&str, u32),
    (threads, emulator): (&[RoleScheduling], &RoleScheduling),
) -> Result<(), Fault> {
    let Some(cpus) = emulator.cpus.as_ref() else { return Ok(()) };
    let own = emulator.policy.map_or(0, priority);
    let of = |vcpu: u32| threads.get(vcpu as usize).or(threads.last());
    let fifo: Vec<&RoleScheduling> =
        (0..vcpus).filter_map(of).filter(|t| t.policy.is_some_and(|p| priority(p) > own)).collect();
    let taken: BTreeSet<u32> = fifo.iter().filter_map(|t| t.cpus.as_ref()).flat_map(|c| c.0.iter().copied()).collect();
    if !cpus.0.is_empty() && cpus.0.is_subset(&taken) {
        let at = keys.map(|k| k.at).unwrap_or_default();
        let reason = format!(
            "the emulator threads of guest {name} have CPU {cpus} only, where virtual CPUs of a higher real-time priority \
             run: they would get no CPU time, and the guest's devices would stand still"
        );
        return Err(Fault::new(at, reason)
            .help("give `emulator` a CPU on which no virtual CPU of a higher real-time priority runs"));
    }
    Ok(())
}

fn priority(policy: tailbound_model::Policy) -> u32 {
    match policy {
        tailbound_model::Policy::Fifo { priority } | tailbound_model::Policy::Rr { priority } => priority,
        _ => 0,
    }
}
