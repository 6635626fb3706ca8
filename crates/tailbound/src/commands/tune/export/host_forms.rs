//! Forms for settings of the host: sysctl.d, TuneD and the kernel command line.

use super::super::changes::{Changes, Effect};
use super::page::{Page, by_tc, home};
use tailbound_model::{CpuList, KVM_HALT_POLL, KnobSpec, NicSetting, PlaceSpec, Policy, RoleScheduling};

/// Lines for a file in /etc/sysctl.d (sysctl.d(5)).
pub fn sysctl(changes: &Changes) -> Page {
    let mut page = Page::default();
    for (setting, effect) in changes.effects() {
        match effect {
            Effect::Host(KnobSpec::Sysctl { name, value }) => {
                page.lines.push(format!("{name} = {value}"));
                note_namespaces(&mut page, changes, name);
            }
            effect => page.leave_out(setting, home(effect)),
        }
    }
    page
}

/// Says that parameters below `net` were set elsewhere than this form sets them.
fn note_namespaces(page: &mut Page, changes: &Changes, name: &str) {
    let has_own = |place: &PlaceSpec| !matches!(place, PlaceSpec::Process | PlaceSpec::SameProcess);
    if name.starts_with("net.") && (has_own(&changes.spec.ping.place) || has_own(&changes.spec.pong.place)) {
        page.note(
            "In the trials, parameters below `net` were set in the network namespaces of the ends, if they exist there; this \
             form sets them in the namespace of the host. A container has its own.",
        );
    }
}

/// A profile of TuneD (`/etc/tuned/NAME/tuned.conf`).
pub fn tuned(changes: &Changes) -> Page {
    let mut page = Page::default();
    let mut sections = Sections::default();
    for (setting, effect) in changes.effects() {
        match effect {
            Effect::Host(knob) => {
                if let Err(reason) = sections.add(knob) {
                    page.leave_out(setting, reason);
                }
            }
            Effect::Threads { role: None, .. } => page.leave_out(
                setting,
                "TuneD finds processes by a pattern of their command lines, which the receipt does not know (form systemd)",
            ),
            effect => page.leave_out(setting, home(effect)),
        }
    }
    let sections = sections.in_order();
    if !sections.is_empty() {
        page.lines.extend(["[main]".to_owned(), "summary=Changes that tailbound tune kept".to_owned()]);
        page.note("The profile includes no other one: add `include=` with the profile that you use now.");
    }
    if sections.iter().any(|(section, _)| section == "sysctl") {
        page.note(
            "A value in /etc/sysctl.d replaces the value of the profile, unless tuned-main.conf has `reapply_sysctl = 0`.",
        );
    }
    if sections.iter().any(|(section, _)| section == "scheduler") {
        page.note("TuneD needs the Python module `perf` for its section `scheduler` (Debian: package linux-perf).");
    }
    if sections.iter().flat_map(|(_, lines)| lines).any(|line| line.starts_with("coalesce=")) {
        page.note("TuneD before 2.25 sets no delay of interrupts beside ethtool 6.1, whose lines about CQE mode it does not know.");
    }
    for (section, lines) in sections {
        page.lines.extend([String::new(), format!("[{section}]")]);
        page.lines.extend(lines);
    }
    page
}

/// Sections of a profile with their lines, in the order in which they were needed.
#[derive(Default)]
struct Sections {
    all: Vec<(String, Vec<String>)>,
    /// Wanted time in which CPUs wake up, us.
    cpu_latency_us: Option<u32>,
}

impl Sections {
    fn lines(&mut self, section: &str, first: &[String]) -> &mut Vec<String> {
        let at = self.all.iter().position(|(name, _)| name == section).unwrap_or_else(|| {
            self.all.push((section.to_owned(), first.to_vec()));
            self.all.len() - 1
        });
        &mut self.all[at].1
    }

    /// The sections in an order in which TuneD applies all of them. Each CPU belongs to the first section that can have it, so that
    /// the section for all other CPUs comes last. Only the first section about CPUs sets the time in which they wake up; without
    /// this option, TuneD sets a time of its own, which depends on the load.
    fn in_order(mut self) -> Vec<(String, Vec<String>)> {
        let is_of_cpus = |(section, _): &(String, Vec<String>)| section.starts_with("cpu");
        if self.cpu_latency_us.is_some() && !self.all.iter().any(is_of_cpus) {
            self.lines("cpu", &[]);
        }
        self.all.sort_by_key(|(section, _)| section == "cpu");
        if let Some(at) = self.all.iter().position(is_of_cpus) {
            let latency = self.cpu_latency_us.map_or("none".to_owned(), |us| us.to_string());
            self.all[at].1.push(format!("force_latency={latency}"));
        }
        self.all
    }

    /// Adds a setting of the host, or says why TuneD cannot express it.
    fn add(&mut self, knob: &KnobSpec) -> Result<(), String> {
        match knob {
            KnobSpec::Sysctl { name, value } => self.lines("sysctl", &[]).push(format!("{name}={value}")),
            KnobSpec::Governor { cpus: None, governor } => self.lines("cpu", &[]).push(format!("governor={governor}")),
            KnobSpec::Governor { cpus: Some(cpus), governor } => {
                let devices = cpus.0.iter().map(|cpu| format!("cpu{cpu}")).collect::<Vec<_>>().join(",");
                let first = ["type=cpu".to_owned(), format!("devices={devices}")];
                self.lines(&format!("cpu_{}", cpus.to_string().replace(['-', ','], "_")), &first)
                    .push(format!("governor={governor}"));
            }
            KnobSpec::CpuDmaLatency { us } => self.cpu_latency_us = Some(*us),
            KnobSpec::KvmHaltPoll { ns } => self.lines("sysfs", &[]).push(format!("{KVM_HALT_POLL}={ns}")),
            KnobSpec::KernelThreads { threads, scheduling } => {
                let line = group(threads, scheduling)?;
                self.lines("scheduler", &[]).push(line);
            }
            KnobSpec::Nic { interface, setting, value } => {
                // Otherwise TuneD lowers the speed of an idle interface to 100 Mbit/s.
                let first = ["type=net".to_owned(), format!("devices={interface}"), "dynamic=0".to_owned()];
                let lines = self.lines(&format!("net_{interface}"), &first);
                let (option, parameter) = parameter(*setting, *value);
                match lines.iter_mut().find(|line| line.starts_with(&format!("{option}="))) {
                    Some(line) => *line = format!("{line} {parameter}"),
                    None => lines.push(format!("{option}={parameter}")),
                }
            }
            KnobSpec::CpuQuota => {
                return Err(
                    "it is the quota of the program's control group, which is no setting of the host (form systemd)"
                        .to_owned(),
                );
            }
            KnobSpec::Queue { interface, kind } => return Err(by_tc(interface, kind)),
            KnobSpec::IrqAffinity { .. } => {
                return Err("TuneD 2.20 has no option for a single interrupt: write the CPUs into \
                            /proc/irq/NUMBER/smp_affinity_list at boot, and keep irqbalance away from it"
                    .to_owned());
            }
        }
        Ok(())
    }
}

/// A group of kernel threads for the plug-in `scheduler`: priority of the rule, policy, priority, mask of CPUs, pattern.
fn group(threads: &str, scheduling: &RoleScheduling) -> Result<String, String> {
    let (policy, priority) = match scheduling.policy {
        None => ("*", "*".to_owned()),
        Some(Policy::Fifo { priority }) => ("f", priority.to_string()),
        Some(Policy::Rr { priority }) => ("r", priority.to_string()),
        Some(Policy::Other { nice: 0 }) => ("o", "0".to_owned()),
        Some(Policy::Batch { nice: 0 }) => ("b", "0".to_owned()),
        Some(other) => return Err(format!("the plug-in `scheduler` of TuneD cannot express the policy {other}")),
    };
    let affinity = scheduling.cpus.as_ref().map_or("*".to_owned(), mask);
    let letters: String = threads.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    Ok(format!("group.{letters}=0:{policy}:{priority}:{affinity}:^\\[{}\\]$", pattern(threads)))
}

/// CPUs as a hexadecimal mask.
fn mask(cpus: &CpuList) -> String {
    let digit = |of: u32| cpus.0.iter().filter(|cpu| **cpu / 4 == of).map(|cpu| 1 << (cpu % 4)).sum();
    let highest = cpus.0.iter().max().map_or(0, |cpu| cpu / 4);
    (0..=highest).rev().filter_map(|of| char::from_digit(digit(of), 16)).collect()
}

/// A name with the wildcards `*` and `?` as a regular expression.
fn pattern(name: &str) -> String {
    let one = |c: char| match c {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        c if c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | ':') => c.to_string(),
        c => format!("\\{c}"),
    };
    name.chars().map(one).collect()
}

/// Option of the plug-in `net` and its parameter, as in ethtool(8).
fn parameter(setting: NicSetting, value: u32) -> (&'static str, String) {
    let switch = if value == 0 { "off" } else { "on" };
    match setting {
        NicSetting::Channels => ("channels", format!("combined {value}")),
        NicSetting::ChannelsRx => ("channels", format!("rx {value}")),
        NicSetting::ChannelsTx => ("channels", format!("tx {value}")),
        NicSetting::AdaptiveRx => ("coalesce", format!("adaptive-rx {switch}")),
        NicSetting::AdaptiveTx => ("coalesce", format!("adaptive-tx {switch}")),
        NicSetting::CoalesceRx => ("coalesce", format!("rx-usecs {value}")),
        NicSetting::CoalesceTx => ("coalesce", format!("tx-usecs {value}")),
        NicSetting::CoalesceRxFrames => ("coalesce", format!("rx-frames {value}")),
        NicSetting::CoalesceTxFrames => ("coalesce", format!("tx-frames {value}")),
    }
}

/// Words for the kernel command line (kernel-parameters.txt), as text: nothing is written.
pub fn cmdline(changes: &Changes) -> Page {
    let mut page = Page::default();
    let mut words = Vec::new();
    for (setting, effect) in changes.effects() {
        match effect {
            Effect::Host(knob) => match word(knob) {
                Ok(word) => words.push(word),
                Err(reason) => page.leave_out(setting, reason),
            },
            Effect::Threads { wanted, .. } if wanted.cpus.is_some() => page.leave_out(
                setting,
                "the kernel command line can keep other programs off CPUs (isolcpus, nohz_full), which was not measured; the \
                 CPUs of the program are not among its words (form systemd)",
            ),
            effect => page.leave_out(setting, home(effect)),
        }
    }
    if !words.is_empty() {
        page.lines.push(words.join(" "));
        page.note(
            "Add the words to the boot loader yourself, e.g. to GRUB_CMDLINE_LINUX; they hold from the next boot.",
        );
        if changes.host().iter().any(|knob| matches!(knob, KnobSpec::Sysctl { .. })) {
            page.note("Words `sysctl.NAME=VALUE` need Linux 5.8.");
        }
    }
    page
}

/// The word for a setting of the host, or the reason why there is none.
fn word(knob: &KnobSpec) -> Result<String, String> {
    match knob {
        KnobSpec::Sysctl { name, value } if value.contains(' ') => Ok(format!("sysctl.{name}=\"{value}\"")),
        KnobSpec::Sysctl { name, value } => Ok(format!("sysctl.{name}={value}")),
        KnobSpec::Governor { cpus: None, governor } => Ok(format!("cpufreq.default_governor={governor}")),
        KnobSpec::Governor { cpus: Some(_), .. } => {
            Err("the kernel command line sets the governor of all CPUs only (form tuned)".to_owned())
        }
        KnobSpec::CpuDmaLatency { us: 0 } => Ok("idle=poll".to_owned()),
        KnobSpec::CpuDmaLatency { .. } => Err("the kernel command line has no wake-up time (form tuned)".to_owned()),
        KnobSpec::KvmHaltPoll { ns } => Ok(format!("kvm.halt_poll_ns={ns}")),
        KnobSpec::CpuQuota => {
            Err("the kernel command line has no quota of a program's control group (form systemd)".to_owned())
        }
        KnobSpec::IrqAffinity { .. } => Err("`irqaffinity=` is for all interrupts, not for this one".to_owned()),
        KnobSpec::KernelThreads { .. } => {
            Err("the kernel command line has no scheduling of these threads (form tuned)".to_owned())
        }
        KnobSpec::Queue { interface, kind } => Err(by_tc(interface, kind)),
        KnobSpec::Nic { .. } => Err("it is a setting of a network card (form tuned)".to_owned()),
    }
}
