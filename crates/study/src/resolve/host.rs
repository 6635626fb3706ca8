//! Resolves host settings, as far as they can be checked without reading the host.

use super::scheduling;
use crate::error::Fault;
use crate::format::{Duration, Governors, HostKeys, NicKeys, QueueChoice, SwitchChoice};
use crate::read::At;
use crate::source::Pos;
use std::collections::BTreeSet;
use tailbound_model::{CpuList, DEFAULT_QUEUE, KnobSpec, NicSetting};

/// Name of the kernel parameter of real-time throttling, see sched(7).
const THROTTLING: &str = "kernel.sched_rt_runtime_us";
const THROTTLED_US: &str = "950000";

/// Settings that the kernel cannot restore, or that permanently change another setting (proc_sys_vm(5)).
const ONE_WAY: [&str; 6] = [
    "vm.dirty_bytes",
    "vm.dirty_background_bytes",
    "kernel.modules_disabled",
    "kernel.kexec_load_disabled",
    "kernel.unprivileged_bpf_disabled",
    "kernel.yama.ptrace_scope",
];

/// Resolves all host settings, in the order in which they are set.
pub(super) fn knobs(keys: &HostKeys) -> Result<Vec<KnobSpec>, Fault> {
    let mut all: Vec<KnobSpec> = Vec::new();
    let mut add = |at: Pos, spec: KnobSpec| {
        if all.iter().any(|known| known.key() == spec.key()) {
            return Err(Fault::new(at, format!("{} is given twice", spec.key())).help("remove one of the two settings"));
        }
        all.push(spec);
        Ok(())
    };
    for (name, value) in keys.sysctl.iter().flat_map(|s| &s.0) {
        add(name.at, sysctl(&name.value, name.at, &value.value.0, value.at)?)?;
    }
    if let Some(switch) = &keys.real_time_throttling {
        let value = if switch.value == SwitchChoice::Off { "-1" } else { THROTTLED_US };
        add(switch.at, KnobSpec::Sysctl { name: THROTTLING.into(), value: value.into() })?;
    }
    for (at, spec) in keys.governor.iter().map(governors).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        add(at, spec)?;
    }
    if let Some(bound) = &keys.cpu_dma_latency {
        add(bound.at, KnobSpec::CpuDmaLatency { us: whole_us(bound)? })?;
    }
    if let Some(time) = &keys.kvm_halt_poll {
        add(time.at, KnobSpec::KvmHaltPoll { ns: halt_poll_ns(time)? })?;
    }
    if let Some(quota) = &keys.cpu_quota {
        add(quota.at, KnobSpec::CpuQuota)?;
    }
    for (irq, cpus) in keys.irq_affinity.iter().flat_map(|named| &named.0) {
        let Some(list) = cpus.value.0.clone() else {
            let reason = format!("`any` is not possible for the CPUs of the interrupt {}", irq.value);
            return Err(Fault::new(cpus.at, reason).help("remove the interrupt, or name CPUs"));
        };
        add(irq.at, KnobSpec::IrqAffinity { irq: irq.value.clone(), cpus: list })?;
    }
    for (threads, keys) in keys.kernel_threads.iter().flat_map(|named| &named.0) {
        let scheduling = scheduling::role(&threads.value, keys)?;
        add(threads.at, KnobSpec::KernelThreads { threads: threads.value.clone(), scheduling })?;
    }
    for (name, keys) in keys.nic.iter().flat_map(|named| &named.0) {
        for (at, setting, value) in nic(name, keys)? {
            add(at, KnobSpec::Nic { interface: name.value.clone(), setting, value })?;
        }
    }
    for (name, choice) in keys.queue.iter().flat_map(|named| &named.0) {
        interface_name(name)?;
        add(name.at, KnobSpec::Queue { interface: name.value.clone(), kind: kind(choice.value).to_owned() })?;
    }
    Ok(all)
}

/// The kind of a queue discipline as tc(8) names it.
fn kind(choice: QueueChoice) -> &'static str {
    match choice {
        QueueChoice::Default => DEFAULT_QUEUE,
        QueueChoice::FqCodel => "fq_codel",
        QueueChoice::Fq => "fq",
        QueueChoice::Cake => "cake",
        QueueChoice::Sfq => "sfq",
        QueueChoice::Codel => "codel",
        QueueChoice::PfifoFast => "pfifo_fast",
        QueueChoice::Pfifo => "pfifo",
        QueueChoice::Bfifo => "bfifo",
    }
}

/// Checks the name of an interface.
fn interface_name(name: &At<String>) -> Result<(), Fault> {
    // IFNAMSIZ of the kernel includes the zero byte at the end.
    if name.value.len() > 15 || name.value.contains(|c: char| c == '/' || c.is_whitespace()) {
        let reason = format!("`{}` is not the name of an interface", name.value);
        return Err(Fault::new(name.at, reason).help("use at most 15 letters, without `/` and spaces"));
    }
    Ok(())
}

fn governors(keys: &Governors) -> Result<Vec<(Pos, KnobSpec)>, Fault> {
    let governor = |word: &str, at: Pos| match word.trim() {
        "" => Err(Fault::new(at, "the governor is empty").help("for example `performance`")),
        word if word.contains(char::is_whitespace) => {
            Err(Fault::new(at, format!("`{word}` is not a governor")).help("write one word, for example `performance`"))
        }
        word => Ok(word.to_owned()),
    };
    match keys {
        Governors::All(word) => {
            Ok(vec![(word.at, KnobSpec::Governor { cpus: None, governor: governor(&word.value, word.at)? })])
        }
        Governors::Some(named) => {
            let mut taken: BTreeSet<u32> = BTreeSet::new();
            let one = |(list, word): &(At<String>, At<crate::format::Word>)| {
                let cpus: CpuList = list.value.parse().map_err(|_| {
                    let reason = format!("`{}` is not a list of CPUs", list.value);
                    Fault::new(list.at, reason).help("for example `\"0-1,3\": performance`")
                })?;
                if let Some(cpu) = cpus.0.iter().find(|cpu| !taken.insert(**cpu)) {
                    return Err(Fault::new(list.at, format!("CPU {cpu} is given two governors")).help("name it once"));
                }
                let governor = governor(&word.value.0, word.at)?;
                Ok((list.at, KnobSpec::Governor { cpus: Some(cpus), governor }))
            };
            named.0.iter().map(one).collect()
        }
    }
}

fn nic(name: &At<String>, keys: &At<NicKeys>) -> Result<Vec<(Pos, NicSetting, u32)>, Fault> {
    interface_name(name)?;
    let NicKeys { channels, channels_rx, channels_tx, adaptive_rx, adaptive_tx, .. } = &keys.value;
    let NicKeys { coalesce_rx, coalesce_tx, coalesce_rx_frames, coalesce_tx_frames, .. } = &keys.value;
    let mut all = Vec::new();
    for (key, setting) in [(adaptive_rx, NicSetting::AdaptiveRx), (adaptive_tx, NicSetting::AdaptiveTx)] {
        all.extend(key.iter().map(|k| (k.at, setting, u32::from(k.value == SwitchChoice::On))));
    }
    for (key, setting) in [
        (channels, NicSetting::Channels),
        (channels_rx, NicSetting::ChannelsRx),
        (channels_tx, NicSetting::ChannelsTx),
        (coalesce_rx_frames, NicSetting::CoalesceRxFrames),
        (coalesce_tx_frames, NicSetting::CoalesceTxFrames),
    ] {
        all.extend(key.iter().map(|k| (k.at, setting, k.value)));
    }
    for (key, setting) in [(coalesce_rx, NicSetting::CoalesceRx), (coalesce_tx, NicSetting::CoalesceTx)] {
        if let Some(key) = key {
            all.push((key.at, setting, whole_us(key)?));
        }
    }
    if all.is_empty() {
        let reason = format!("no setting is given for the interface {}", name.value);
        return Err(Fault::new(keys.at, reason).help("write for example `channels: 2` or `coalesce_rx: 0 us`"));
    }
    Ok(all)
}

/// Checks that a time is a whole number of microseconds, which the kernel stores in 31 bits.
fn whole_us(time: &At<Duration>) -> Result<u32, Fault> {
    let ns = time.value.0.0;
    if ns < 0 || ns % 1000 != 0 || ns / 1000 > 2_000_000_000 {
        let reason = format!("{} is not a whole number of microseconds", time.value.0);
        return Err(Fault::new(time.at, reason).help("0 us to 2000 s"));
    }
    Ok((ns / 1000) as u32)
}

/// Converts a KVM polling time to nanoseconds, which the kernel stores in 32 bits.
fn halt_poll_ns(time: &At<Duration>) -> Result<u32, Fault> {
    u32::try_from(time.value.0.0).map_err(|_| {
        let reason = format!("{} is not a time that KVM can poll for", time.value.0);
        Fault::new(time.at, reason).help("write 0 us to 4 s; 200 us is usual")
    })
}

fn sysctl(name: &str, name_at: Pos, value: &str, value_at: Pos) -> Result<KnobSpec, Fault> {
    // As in sysctl(8): the first of `.` and `/` separates the parts, and the other character replaces a dot in a part.
    let swap = |c: char| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    let with_slashes = name.find(['.', '/']).is_some_and(|i| name[i..].starts_with('/'));
    let dotted: String = if with_slashes { name.chars().map(swap).collect() } else { name.to_owned() };
    let parts: Vec<&str> = dotted.split('.').collect();
    let good = |part: &&str| !part.starts_with('/') && !part.is_empty() && !part.contains([' ', '\t', '\n', '\0']);
    if parts.len() < 2 || !parts.iter().all(good) {
        let reason = format!("`{name}` is not the name of a sysctl");
        return Err(Fault::new(name_at, reason)
            .help("write a name as `sysctl -a` shows it, for example `kernel.sched_rt_runtime_us`"));
    }
    if ONE_WAY.contains(&dotted.as_str()) {
        let reason = format!("`{name}` cannot be restored after a change");
        return Err(Fault::new(name_at, reason).help("if you need this value, set it yourself before the run"));
    }
    if value.trim().is_empty() {
        let reason = format!("the value of `{name}` is empty");
        return Err(Fault::new(value_at, reason).help("write the value that the kernel parameter is to have"));
    }
    Ok(KnobSpec::Sysctl { name: dotted, value: value.split_whitespace().collect::<Vec<_>>().join(" ") })
}
