//! Forms for the process of a program: drop-in of systemd, pod of Kubernetes, domain of libvirt.

use super::super::changes::{Changes, Effect, EndName};
use super::page::{Page, home, of_end};
use tailbound_model::{CpuList, KnobSpec, PlaceSpec, Policy, RoleScheduling};

/// Highest real-time priority among the policies that an end was given.
fn highest(effects: &[(&str, &Effect)]) -> Option<u32> {
    let priority = |(_, effect): &(&str, &Effect)| match effect {
        Effect::Threads {
            wanted: RoleScheduling { policy: Some(Policy::Fifo { priority } | Policy::Rr { priority }), .. },
            ..
        } => Some(*priority),
        _ => None,
    };
    effects.iter().filter_map(priority).max()
}

/// A drop-in for the unit of the program (systemd.exec(5)). `answers_quota`: a kept change answers a CPU quota.
pub fn systemd(changes: &Changes, end: EndName, answers_quota: bool) -> Page {
    let mut page = Page::default();
    let effects = of_end(changes, end, &mut page);
    let mut lines = Vec::new();
    for (setting, effect) in &effects {
        match effect {
            Effect::Threads { role: None, wanted, .. } => {
                if let Some(policy) = wanted.policy {
                    match policy_of_unit(policy) {
                        Some(of) => lines.extend(of),
                        None => page.leave_out(setting, format!("systemd has no policy `{policy}`")),
                    }
                }
                lines.extend(wanted.cpus.as_ref().map(|cpus| format!("CPUAffinity={}", spaced(cpus))));
            }
            Effect::AnyCpu { .. } => lines.push("CPUAffinity=".to_owned()),
            Effect::Threads { role: Some(role), .. } => page.leave_out(
                setting,
                format!(
                    "a unit has one policy and one set of CPUs for all threads; with LimitRTPRIO, the threads of role {role} can \
                     be given theirs by the program or by its middleware (form cyclonedds, fastdds or connext)"
                ),
            ),
            Effect::LockedMemory => {
                lines.push("LimitMEMLOCK=infinity".to_owned());
                page.note("LimitMEMLOCK permits the program to lock its memory: it must call mlockall(2) itself.");
            }
            Effect::LeastTimerSlack => lines.push("TimerSlackNSec=1".to_owned()),
            // Without a value, the unit has no quota (systemd.resource-control(5)).
            Effect::Host(KnobSpec::CpuQuota) => lines.push("CPUQuota=".to_owned()),
            effect => page.leave_out(setting, home(effect)),
        }
    }
    if let Some(priority) = highest(&effects) {
        lines.push(format!("LimitRTPRIO={priority}"));
    }
    if answers_quota {
        page.note("A kept change answers a CPU quota. `CPUQuota=` without a value removes the quota of a unit; that was not measured.");
    }
    if !lines.is_empty() {
        page.note(format!(
            "For the unit of the program at the {} end: /etc/systemd/system/UNIT.service.d/tailbound.conf",
            end.word()
        ));
        page.lines = std::iter::once("[Service]".to_owned()).chain(lines).collect();
    }
    page
}

fn policy_of_unit(policy: Policy) -> Option<Vec<String>> {
    let word = |word: &str| format!("CPUSchedulingPolicy={word}");
    Some(match policy {
        Policy::Other { nice } => vec![word("other"), format!("Nice={nice}")],
        Policy::Batch { nice } => vec![word("batch"), format!("Nice={nice}")],
        Policy::Idle => vec![word("idle")],
        Policy::Fifo { priority } => vec![word("fifo"), format!("CPUSchedulingPriority={priority}")],
        Policy::Rr { priority } => vec![word("rr"), format!("CPUSchedulingPriority={priority}")],
        Policy::Deadline { .. } => return None,
    })
}

fn spaced(cpus: &CpuList) -> String {
    cpus.to_string().replace(',', " ")
}

/// Lines for the pod of the program.
pub fn kubernetes(changes: &Changes, end: EndName) -> Page {
    let mut page = Page::default();
    let effects = of_end(changes, end, &mut page);
    let mut rights: Vec<&str> = Vec::new();
    let mut command = None;
    let mut sysctls = Vec::new();
    for (setting, effect) in &effects {
        match effect {
            Effect::Threads { role, wanted, .. } => {
                if let Some(policy) = wanted.policy {
                    rights.push("SYS_NICE");
                    match role {
                        None => command = Some(starter(policy)),
                        Some(_) => page.leave_out(setting, home(effect)),
                    }
                }
                if let Some(cpus) = &wanted.cpus {
                    page.leave_out(setting, cpus_of_pod(cpus));
                }
            }
            Effect::Host(KnobSpec::Sysctl { name, value }) if has_network_namespace(name) => {
                sysctls.push((name, value));
            }
            Effect::Host(KnobSpec::CpuQuota) => {
                page.leave_out(setting, "remove the limit of CPU time of the container (resources.limits.cpu)");
            }
            Effect::LockedMemory => {
                rights.push("IPC_LOCK");
                page.note("IPC_LOCK permits the program to lock its memory: it must call mlockall(2) itself.");
            }
            Effect::LeastTimerSlack => {
                page.leave_out(setting, "a pod has no timer slack: the program sets it by prctl(2)")
            }
            effect => page.leave_out(setting, home(effect)),
        }
    }
    rights.sort_unstable();
    rights.dedup();
    pod(&mut page, (&rights, command.as_deref(), &sysctls), end);
    page
}

/// Kernel parameters below `net.ipv4` and `net.ipv6` that exist only once for the whole machine (Linux 6.18).
const OF_THE_MACHINE: [&str; 12] = [
    "net.ipv4.fib_sync_mem",
    "net.ipv4.inet_peer_maxttl",
    "net.ipv4.inet_peer_minttl",
    "net.ipv4.inet_peer_threshold",
    "net.ipv4.ipfrag_secret_interval",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv6.ip6frag_secret_interval",
    "net.ipv6.mld_max_msf",
    "net.ipv6.mld_qrv",
];

/// Whether a kernel parameter exists once for each network namespace, so that a pod can have its own.
fn has_network_namespace(name: &str) -> bool {
    (name.starts_with("net.ipv4.") || name.starts_with("net.ipv6.")) && !OF_THE_MACHINE.contains(&name)
}

/// The program that starts another one with a policy (chrt(1), nice(1)), with options that BusyBox knows too.
fn starter(policy: Policy) -> String {
    match policy {
        Policy::Fifo { priority } => format!("\"chrt\", \"-f\", \"{priority}\""),
        Policy::Rr { priority } => format!("\"chrt\", \"-r\", \"{priority}\""),
        Policy::Batch { nice: 0 } => "\"chrt\", \"-b\", \"0\"".to_owned(),
        Policy::Idle => "\"chrt\", \"-i\", \"0\"".to_owned(),
        Policy::Other { nice } | Policy::Batch { nice } => format!("\"nice\", \"-n\", \"{nice}\""),
        Policy::Deadline { runtime_ns, deadline_ns, period_ns } => format!(
            "\"chrt\", \"--deadline\", \"--sched-runtime\", \"{runtime_ns}\", \"--sched-deadline\", \"{deadline_ns}\", \
             \"--sched-period\", \"{period_ns}\", \"0\""
        ),
    }
}

fn cpus_of_pod(cpus: &CpuList) -> String {
    format!(
        "a pod cannot choose CPUs by number. It gets CPUs of its own (here {}) if the kubelet has `cpuManagerPolicy: static`, and \
         requests and limits are equal, with whole CPUs, in each container (resources.requests and limits: cpu, memory)",
        cpus.0.len()
    )
}

fn pod(page: &mut Page, (rights, command, sysctls): (&[&str], Option<&str>, &[(&String, &String)]), end: EndName) {
    let mut lines = Vec::new();
    if !sysctls.is_empty() {
        lines.extend(["  securityContext:".to_owned(), "    sysctls:".to_owned()]);
        for (name, value) in sysctls {
            lines.extend([format!("    - name: {name}"), format!("      value: \"{value}\"")]);
        }
        page.note("The kubelet must permit most parameters by name (--allowed-unsafe-sysctls).");
    }
    if !rights.is_empty() || command.is_some() {
        lines.extend(["  containers:".to_owned(), "  - name: program".to_owned()]);
        page.note("`program` stands for the name of the container, and in its command for the program.");
    }
    if let Some(command) = command {
        lines.push(format!("    command: [{command}, \"program\"]"));
        page.note("Kubernetes has no field for a policy: `chrt` or `nice` of the image starts the program with it.");
    }
    if !rights.is_empty() {
        lines.extend(["    securityContext:".to_owned(), "      capabilities:".to_owned()]);
        lines.push(format!("        add: [{}]", rights.join(", ")));
        page.note(
            "Capabilities in `add` are for the user root of the container: a program of another user needs capabilities of its file \
             (setcap).",
        );
    }
    if !lines.is_empty() {
        page.note(format!(
            "For the pod of the program at the {} end; merge the lines into its specification.",
            end.word()
        ));
        page.note(
            "Real-time policies need a node whose kernel has no RT_GROUP_SCHED, or whose control groups have real-time run time.",
        );
        page.lines = std::iter::once("spec:".to_owned()).chain(lines).collect();
    }
}

/// Elements for the domain in which the program runs.
pub fn libvirt(changes: &Changes, end: EndName) -> Page {
    let mut page = Page::default();
    let effects = of_end(changes, end, &mut page);
    let of_end = if end == EndName::Ping { &changes.spec.ping } else { &changes.spec.pong };
    let is_guest = matches!(of_end.place, PlaceSpec::Vm(_) | PlaceSpec::Domain(_));
    let mut inside = Vec::new();
    for (setting, effect) in &effects {
        match effect {
            Effect::Guest { policies, .. } => {
                // The same for each change of the guest: its threads have the scheduling of all of them.
                inside = of_guest(&of_end.place);
                let unknown = policies.iter().filter(|policy| scheduler(**policy).is_none());
                unknown.for_each(|policy| page.leave_out(setting, unknown_policy(*policy)));
                if matches!(of_end.place, PlaceSpec::Domain(_)) {
                    page.note(
                        "If the domain has more virtual CPUs than lines, write the last line of each kind again for them.",
                    );
                }
            }
            // In a guest, the program has its scheduling from the kernel of the guest.
            Effect::Threads { role: None, wanted, .. } if !is_guest => {
                let of = vcpu(0, wanted);
                if let (Some(policy), true) = (wanted.policy, of.iter().all(|line| !line.contains("vcpusched"))) {
                    page.leave_out(setting, unknown_policy(policy));
                }
                inside.extend(of);
                page.note(
                    "Measured with a process, not with a guest: the lines give virtual CPU 0 what the process had; write one \
                     line for each virtual CPU.",
                );
            }
            effect => page.leave_out(setting, home(effect)),
        }
    }
    if !inside.is_empty() {
        page.note(format!("For the domain of the program at the {} end (virsh edit).", end.word()));
        // As in libvirt's own descriptions: the CPUs before the policies.
        inside.sort_by_key(|line| line.contains("sched "));
        let inside = inside.iter().map(|line| format!("  {line}"));
        page.lines = std::iter::once("<cputune>".to_owned()).chain(inside).chain(["</cputune>".to_owned()]).collect();
    }
    page
}

fn unknown_policy(policy: Policy) -> String {
    format!("libvirt cannot describe the policy `{policy}`")
}

/// Elements for the threads of a guest, without the policies that libvirt cannot describe.
fn of_guest(place: &PlaceSpec) -> Vec<String> {
    let (threads, emulator, number) = match place {
        PlaceSpec::Vm(vm) => (&vm.vcpu_threads, &vm.emulator, vm.vcpus as usize),
        PlaceSpec::Domain(domain) => (&domain.vcpu_threads, &domain.emulator, domain.vcpu_threads.len()),
        _ => return Vec::new(),
    };
    let of = |n: usize| Some((n, threads.get(n).or(threads.last())?));
    let pins = (0..number).filter_map(of).flat_map(|(n, wanted)| vcpu(n, wanted));
    let pin = emulator.cpus.iter().map(|cpus| format!("<emulatorpin cpuset='{cpus}'/>"));
    let policy = emulator.policy.and_then(scheduler).map(|policy| format!("<emulatorsched {policy}/>"));
    pins.chain(pin).chain(policy).collect()
}

fn vcpu(number: usize, wanted: &RoleScheduling) -> Vec<String> {
    let pin = wanted.cpus.iter().map(|cpus| format!("<vcpupin vcpu='{number}' cpuset='{cpus}'/>"));
    let policy = wanted.policy.and_then(scheduler);
    pin.chain(policy.map(|policy| format!("<vcpusched vcpus='{number}' {policy}/>"))).collect()
}

/// Attributes of a policy; `None` if libvirt cannot describe it.
fn scheduler(policy: Policy) -> Option<String> {
    match policy {
        Policy::Fifo { priority } => Some(format!("scheduler='fifo' priority='{priority}'")),
        Policy::Rr { priority } => Some(format!("scheduler='rr' priority='{priority}'")),
        Policy::Batch { nice: 0 } => Some("scheduler='batch'".to_owned()),
        Policy::Idle => Some("scheduler='idle'".to_owned()),
        _ => None,
    }
}
