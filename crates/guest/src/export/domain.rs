//! Writes the description of a guest as a libvirt domain, for `virsh define`.

use crate::ports::PORT_NAMES;
use std::fmt::Write;
use tailbound_model::{Accelerator, KernelChoice, Policy, RoleScheduling, VmSpec};

/// Number of virtio-serial channels in the description: enough for the agents of two ends, and few enough that the
/// guest receives all their names.
const CHANNELS: u32 = 8;

/// Text of an XML file with indentation and comments, to which lines are added.
#[derive(Default)]
struct Page {
    text: String,
    depth: usize,
}

impl Page {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:width$}{line}", "", width = 2 * self.depth);
    }

    /// Adds an XML comment with the reason for the next line; XML comments must not contain two dashes.
    fn why(&mut self, text: &str) {
        self.line(&format!("<!-- {} -->", text.replace("--", "- -")));
    }

    fn inside(&mut self, name: &str, content: impl FnOnce(&mut Page)) {
        self.line(&format!("<{name}>"));
        self.depth += 1;
        content(self);
        self.depth -= 1;
        self.line(&format!("</{}>", name.split(' ').next().unwrap_or(name)));
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&apos;")
}

/// The XML description of a guest for libvirt, complete and with comments.
pub(super) fn description(spec: &VmSpec, name: &str) -> String {
    let emulated = spec.accelerator == Accelerator::Emulated;
    let mut page = Page::default();
    page.why(&format!("{spec}, from a study of Tailbound; for: virsh define FILE"));
    page.inside(&format!("domain type='{}'", if emulated { "qemu" } else { "kvm" }), |page| {
        page.line(&format!("<name>{}</name>", escape(name)));
        page.line(&format!("<memory unit='MiB'>{}</memory>", spec.memory_mib));
        memory(page, spec);
        page.line(&format!("<vcpu placement='static'>{}</vcpu>", spec.vcpus));
        tune(page, spec);
        boot(page, spec);
        page.inside("features", |page| {
            page.line("<acpi/>");
            page.line("<apic/>");
            page.why("Access to performance counters of the processor causes an exit each time.");
            page.line("<pmu state='off'/>");
        });
        processor(page, spec, emulated);
        page.inside("clock offset='utc'", |page| {
            page.why("Missed ticks are delivered one by one, never in a burst; the HPET is not needed.");
            page.line("<timer name='rtc' tickpolicy='catchup'/>");
            page.line("<timer name='pit' tickpolicy='delay'/>");
            page.line("<timer name='hpet' present='no'/>");
        });
        page.inside("devices", |page| devices(page, spec));
    });
    page.text
}

fn memory(page: &mut Page, spec: &VmSpec) {
    page.inside("memoryBacking", |page| {
        if spec.huge_pages {
            page.why("Huge pages cause fewer TLB misses. Reserve them first: vm.nr_hugepages.");
            page.line("<hugepages/>");
        }
        page.why(
            "Pages are not merged with pages of other guests, because a write to a merged page must copy it first.",
        );
        page.line("<nosharepages/>");
        if spec.lock_memory {
            page.why("Memory is never paged out, and all of it is allocated before the start.");
            page.line("<locked/>");
            page.line("<allocation mode='immediate'/>");
        }
    });
}

fn tune(page: &mut Page, spec: &VmSpec) {
    let threads: Vec<(u32, &RoleScheduling)> = (0..spec.vcpus)
        .filter_map(|n| Some((n, spec.vcpu_threads.get(n as usize).or(spec.vcpu_threads.last())?)))
        .collect();
    if threads.is_empty() && spec.emulator == RoleScheduling::default() {
        return page.why("The study pins no threads: add cputune with vcpupin, emulatorpin and vcpusched.");
    }
    page.inside("cputune", |page| {
        if threads.iter().any(|(_, t)| t.cpus.is_some()) {
            page.why("vCPUs stay on these CPUs of the host, which should be isolated (see the variables for tuned).");
        }
        for (number, cpus) in threads.iter().filter_map(|(n, t)| Some((n, t.cpus.as_ref()?))) {
            page.line(&format!("<vcpupin vcpu='{number}' cpuset='{cpus}'/>"));
        }
        if let Some(cpus) = &spec.emulator.cpus {
            page.why("All other threads of QEMU stay off the CPUs of real-time vCPUs, where they would starve.");
            page.line(&format!("<emulatorpin cpuset='{cpus}'/>"));
        }
        if threads.iter().any(|(_, t)| t.policy.is_some_and(|p| p.is_real_time())) {
            page.why(
                "Real-time priority over ordinary threads. If the kernel has RT_GROUP_SCHED (control groups version 1), remove cpu \
                 from cgroup_controllers in /etc/libvirt/qemu.conf; otherwise the policy is refused.",
            );
        }
        for (number, policy) in threads.iter().filter_map(|(n, t)| Some((n, t.policy?))) {
            scheduler(page, &format!("vcpusched vcpus='{number}'"), policy);
        }
        if let Some(policy) = spec.emulator.policy {
            scheduler(page, "emulatorsched", policy);
        }
        if let Some(threads) = spec.vhost.as_ref().filter(|t| **t != RoleScheduling::default()) {
            page.why(&format!(
                "In the measurement, the thread of vhost-net had `{threads}`. libvirt cannot set this: set it with \
                 chrt and taskset while the guest runs (the thread's name is vhost- followed by the process id of \
                 QEMU)."
            ));
        }
    });
}

fn scheduler(page: &mut Page, element: &str, policy: Policy) {
    let text = match policy {
        Policy::Fifo { priority } => format!("scheduler='fifo' priority='{priority}'"),
        Policy::Rr { priority } => format!("scheduler='rr' priority='{priority}'"),
        Policy::Batch { nice: 0 } => "scheduler='batch'".into(),
        Policy::Idle => "scheduler='idle'".into(),
        Policy::Other { nice: 0 } => return,
        other => return page.why(&format!("{element}: libvirt cannot describe the policy `{other}`.")),
    };
    page.line(&format!("<{element} {text}/>"));
}

fn boot(page: &mut Page, spec: &VmSpec) {
    page.inside("os", |page| {
        let machine = escape(spec.machine.as_deref().unwrap_or("q35"));
        page.line(&format!("<type arch='x86_64' machine='{machine}'>hvm</type>"));
        page.why(&format!(
            "The guest was measured with this kernel: {}. If you use your own disk, put the options into its boot loader; \
             without a disk, give libvirt the files:",
            spec.kernel
        ));
        let image = match &spec.kernel {
            KernelChoice::Image { image, .. } => image.clone(),
            KernelChoice::Host => "/boot/vmlinuz-RELEASE".into(),
            KernelChoice::Package(_) => "the vmlinuz of the package".into(),
        };
        page.why(&format!("<kernel>{}</kernel>", escape(&image)));
        page.why("<initrd>YOUR INITRD</initrd>");
        page.why(&format!("<cmdline>{}</cmdline>", escape(&spec.command_line)));
        if !spec.modules.is_empty() {
            page.why(&format!("Further modules that were loaded: {}.", spec.modules.join(", ")));
        }
    });
}

fn processor(page: &mut Page, spec: &VmSpec, emulated: bool) {
    match &spec.cpu_model {
        Some(model) => page.inside("cpu mode='custom' match='exact'", |page| {
            page.line(&format!("<model fallback='forbid'>{}</model>", escape(model)));
        }),
        None if emulated => page.line("<cpu mode='maximum'/>"),
        None => page.inside("cpu mode='host-passthrough' migratable='off'", |page| {
            page.why("All features of the host's processor; the timer uses deadlines instead of counts.");
            page.line("<feature policy='require' name='tsc-deadline'/>");
        }),
    }
}

fn devices(page: &mut Page, spec: &VmSpec) {
    page.why("Replace br0 by the bridge that was measured, or a similar one.");
    page.inside("interface type='bridge'", |page| {
        page.line("<source bridge='br0'/>");
        page.line("<model type='virtio'/>");
        page.why(match spec.vhost {
            Some(_) => "A thread of the host's kernel carries the packets (vhost-net).",
            None => "QEMU carries the packets, as in the measurement.",
        });
        let name = if spec.vhost.is_some() { "vhost" } else { "qemu" };
        let queues = if spec.queues > 1 { format!(" queues='{}'", spec.queues) } else { String::new() };
        let driver = format!("driver name='{name}'{queues}");
        if spec.offloads {
            return page.line(&format!("<{driver}/>"));
        }
        page.inside(&driver, |page| {
            page.why("Packets leave as they were sent: offloads are off, as in the measurement.");
            page.line("<host csum='off' gso='off' tso4='off' tso6='off' ecn='off' ufo='off' mrg_rxbuf='off'/>");
            page.line("<guest csum='off' tso4='off' tso6='off' ecn='off' ufo='off'/>");
        });
    });
    if let Some(cpus) = &spec.irq_cpus {
        page.why(&format!(
            "In the guest, the interrupts of this card were on CPU {cpus}: write this list to the smp_affinity_list \
             of these interrupts."
        ));
    }
    page.line("<console type='pty'/>");
    page.why(
        "Tailbound reaches its agents over these channels and not over the network: use place `domain` without `ssh`, with `tailbound guest \
         serve` running in the guest.",
    );
    for port in 0..CHANNELS {
        let target = format!("<target type='virtio' name='{PORT_NAMES}.{port}'/>");
        page.line(&format!("<channel type='unix'>{target}</channel>"));
    }
    page.why("A balloon device could take memory from the running guest.");
    page.line("<memballoon model='none'/>");
}
