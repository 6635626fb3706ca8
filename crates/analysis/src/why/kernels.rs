//! How the kernels of a trial handle threads and interrupts, as the facts of their hosts say.

use std::collections::BTreeMap;
use tailbound_model::{FactValue, HostFacts};
use tailbound_record::{Manifest, Record};

/// Names of the architecture of x86 CPUs, as the facts of a host have them.
const X86: [&str; 2] = ["x86_64", "x86"];

/// How the kernel of an end handles threads and interrupts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kernel {
    /// Whether it stops the real-time threads of a CPU that use too much time.
    pub throttles: bool,
    /// Whether it is a real-time kernel, which runs soft interrupts and timers of time-sharing threads in threads.
    pub is_real_time: bool,
    /// Whether all interrupts have threads: on a real-time kernel, and on another one with the parameter `threadirqs`.
    pub has_irq_threads: bool,
    /// Whether the CPUs are x86 CPUs, whose interrupts of the CPU itself have known vectors.
    pub is_x86: bool,
    /// Whether the CPUs of the machine are emulated.
    pub is_emulated: bool,
    /// Whether the other end is on the same machine, so that no other machine can have had a message. A guest whose threads on
    /// the host are recorded is on the machine of the host.
    pub is_one: bool,
}

/// What the facts say about the kernel of each host, by the name of the host.
pub(crate) fn kernels(record: &Record) -> BTreeMap<&str, Kernel> {
    let one = |host: &HostFacts| {
        let flag = |key: &str, value: bool| host.get(key) == Some(&FactValue::Flag(value));
        let is_limited = match (host.get("sched.rt_runtime_us"), host.get("sched.rt_period_us")) {
            (Some(FactValue::Number(runtime_us)), Some(FactValue::Number(period_us))) => {
                (0..*period_us).contains(runtime_us)
            }
            _ => false,
        };
        let throttles = flag("sched.fair_server", false) && is_limited;
        let is_real_time = flag("kernel.preempt_rt", true);
        let parameters = match host.get("kernel.cmdline") {
            Some(FactValue::Text(words)) => words.as_str(),
            _ => "",
        };
        let has_irq_threads = is_real_time || parameters.split_whitespace().any(|word| word == "threadirqs");
        let is_emulated = host.get("guest.accelerator") == Some(&FactValue::Text("emulated".to_owned()));
        let is_x86 =
            matches!(host.get("machine.architecture"), Some(FactValue::Text(name)) if X86.contains(&name.as_str()));
        Kernel { throttles, is_real_time, has_irq_threads, is_x86, is_emulated, is_one: false }
    };
    let hosts = record.manifest.hosts.keys().zip(record.hosts());
    hosts.filter_map(|(name, facts)| Some((name.as_str(), one(&facts.ok()?)))).collect()
}

/// The kernels of the ping end, of the pong end, and of the host `outer` of their guests in a trial. `watched`: whether the threads of
/// this host, or of the host of one end, that carry packets of each end's guest are recorded.
pub(crate) fn of_trial(
    manifest: &Manifest,
    trial: usize,
    kernels: &BTreeMap<&str, Kernel>,
    (outer, watched): (Option<&str>, bool),
) -> [Kernel; 3] {
    let ends = manifest.trials.iter().find(|done| done.id == trial).map(|done| &done.ends);
    let [ping, pong] = ["ping", "pong"].map(|end| ends.and_then(|ends| ends.get(end)).map(|end| end.host.as_str()));
    let is_one = watched || ping.is_some() && ping == pong;
    let kernel = |host: &str| kernels.get(host).copied();
    [ping, pong, outer].map(|host| Kernel { is_one, ..host.and_then(kernel).unwrap_or_default() })
}
