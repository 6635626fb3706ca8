//! Proposals about interrupts, threads of the kernel, and limits of run time.

use crate::case::{Case, HIGHEST_PRIORITY, Proposal};
use crate::settings;
use tailbound_document::CauseWord;
use tailbound_model::{CpuList, KnobSpec, PlaceSpec, Policy, RoleScheduling};

/// Priority for threads of the kernel that receive packets: above threaded interrupts (50).
const KERNEL_PRIORITY: u32 = 60;

/// The interrupt that had the CPU on other CPUs.
pub(crate) fn irq_affinity(case: &Case<'_>) -> Vec<Proposal> {
    let number = case.by().and_then(|by| by.name.strip_prefix("irq ")).filter(|n| n.parse::<u32>().is_ok());
    let (Some(number), others) = (number, case.other_cpus()) else { return Vec::new() };
    if others.is_empty() || case.sets_host(&format!("host.irq_affinity.{number}")) {
        return Vec::new();
    }
    let free: Vec<u32> = others.iter().filter(|(_, is_free)| *is_free).map(|(cpu, _)| *cpu).collect();
    let (to, fit) = if free.is_empty() { (vec![others[0].0], 0.6) } else { (free, 1.0) };
    let list = CpuList(to.into_iter().collect());
    let text = format!("Let other CPUs ({list}) handle the interrupt {number}.");
    vec![Proposal::new(vec![format!("host.irq_affinity.{number}={list}")], fit, text)]
}

/// The thread of the kernel that the message needed with a priority above the thread that had its CPU.
pub(crate) fn carrier(case: &Case<'_>) -> Vec<Proposal> {
    let Some(carrier) = case.by().and_then(|by| by.carrier.as_deref()) else { return Vec::new() };
    let priority = match case.policy_of_by() {
        Some(Policy::Fifo { priority } | Policy::Rr { priority }) => priority + 1,
        Some(Policy::Deadline { .. }) => return Vec::new(),
        _ => KERNEL_PRIORITY,
    };
    if priority > HIGHEST_PRIORITY || case.sets_host(&format!("host.kernel_threads.{carrier}")) {
        return Vec::new();
    }
    let policy = Policy::Fifo { priority };
    let text = format!(
        "Give the kernel thread `{carrier}`, which receives the packets, the policy `{policy}`, above {}.",
        case.by_name()
    );
    vec![Proposal::new(vec![thread_setting(carrier, policy, None)], 1.0, text)]
}

/// The kernel's thread for soft interrupts of the contended CPU with a real-time priority.
pub(crate) fn ksoftirqd(case: &Case<'_>) -> Vec<Proposal> {
    let Some(cpu) = case.contended().first().copied() else { return Vec::new() };
    let name = format!("ksoftirqd/{cpu}");
    if case.sets_host(&format!("host.kernel_threads.{name}")) {
        return Vec::new();
    }
    let policy = match case.policy_of_by() {
        Some(Policy::Fifo { priority } | Policy::Rr { priority }) if priority < HIGHEST_PRIORITY => {
            Policy::Fifo { priority: priority + 1 }
        }
        Some(policy) if policy.is_real_time() => return Vec::new(),
        _ => Policy::Fifo { priority: KERNEL_PRIORITY },
    };
    let fit = if case.is_cause(CauseWord::WaitedForCpu) { 0.12 } else { 0.4 };
    let text = format!("Give the kernel thread `{name}`, which can receive the packets, the policy `{policy}`.");
    vec![Proposal::new(vec![thread_setting(&name, policy, None)], fit, text)]
}

/// The thread of the kernel that had the CPU, on other CPUs.
pub(crate) fn kernel_thread_away(case: &Case<'_>) -> Vec<Proposal> {
    let Some(by) = case.by().filter(|by| by.carrier.is_none()) else { return Vec::new() };
    // The kernel keeps threads with a CPU in their name on this CPU, and workers where their work is.
    let is_bound = by.name.rsplit_once('/').is_some_and(|(_, cpu)| cpu.parse::<u32>().is_ok());
    if is_bound || by.name.starts_with("kworker") {
        return Vec::new();
    }
    let others: Vec<u32> = case.other_cpus().iter().filter(|(_, free)| *free).map(|(cpu, _)| *cpu).collect();
    if others.is_empty() {
        return Vec::new();
    }
    let list = CpuList(others.into_iter().collect());
    let text = format!("Run the kernel thread `{}` on CPU {list}, which no end uses.", by.name);
    let role = RoleScheduling { policy: None, cpus: Some(list) };
    vec![Proposal::new(vec![format!("host.kernel_threads.{}={{ {} }}", by.name, settings::role(&role))], 0.9, text)]
}

fn thread_setting(name: &str, policy: Policy, cpus: Option<CpuList>) -> String {
    let role = RoleScheduling { policy: Some(policy), cpus };
    format!("host.kernel_threads.{name}={{ {} }}", settings::role(&role))
}

/// Whether the study switches real-time throttling; `None` = it leaves it.
fn throttling_set(case: &Case<'_>) -> bool {
    let keys = ["host.sysctl.kernel.sched_rt_runtime_us", "host.real_time_throttling"];
    case.situation.spec.host.iter().map(KnobSpec::key).any(|key| keys.contains(&key.as_str()))
}

/// No limit of the run time of real-time threads.
pub(crate) fn throttling_off(case: &Case<'_>) -> Vec<Proposal> {
    if throttling_set(case) || case.number("sched.rt_runtime_us") == Some(-1) {
        return Vec::new();
    }
    let text = "Switch real-time throttling off, so that the kernel does not stop real-time threads.".to_owned();
    vec![Proposal::new(vec!["host.real_time_throttling=off".into()], 1.0, text)]
}

/// A limit of the run time of real-time threads, so that other threads of their CPU run at times.
pub(crate) fn throttling_on(case: &Case<'_>) -> Vec<Proposal> {
    let is_off = case.number("sched.rt_runtime_us").is_some_and(|us| us < 0);
    if !case.by_real_time() || throttling_set(case) || !is_off {
        return Vec::new();
    }
    let text = format!(
        "Switch real-time throttling on, so that other threads of the CPU of {} run for 50 ms of each second.",
        case.by_name()
    );
    vec![Proposal::new(vec!["host.real_time_throttling=on".into()], 0.15, text)]
}

/// CPU time by task and not by session.
pub(crate) fn autogroup(case: &Case<'_>) -> Vec<Proposal> {
    let is_off = case.flag("sched.autogroup") == Some(false);
    if is_off || case.by_real_time() || case.sets_host("host.sysctl.kernel.sched_autogroup_enabled") {
        return Vec::new();
    }
    let text = "Switch autogroups off, so that nice values count between sessions.".to_owned();
    vec![Proposal::new(vec!["host.sysctl.kernel.sched_autogroup_enabled=0".into()], 0.12, text)]
}

/// Without the CPU quota of the control group: by a setting if the end runs in the group of Tailbound, otherwise by hand.
pub(crate) fn quota(case: &Case<'_>) -> Vec<Proposal> {
    let of = case.text("cgroup.cpu_max").filter(|quota| *quota != "max");
    let now = of.map_or(String::new(), |quota| match quota.split_once(' ') {
        Some((quota, period)) => format!(" (now {quota} us in each {period} us)"),
        None => String::new(),
    });
    let text = format!(
        "Remove the CPU quota of the control group of the {} end{now}: without `--cpus` of the container, without a CPU limit \
         of the pod, or `echo max > cpu.max`.",
        case.end()
    );
    let place = &case.spec_of(case.end()).place;
    use PlaceSpec::{ExistingNetns, Netns, Process, SameProcess};
    let is_own_group = matches!(place, SameProcess | Process | Netns | ExistingNetns(_));
    match is_own_group && !case.sets_host("host.cpu_quota") {
        true => vec![Proposal::new(vec!["host.cpu_quota=off".into()], 1.0, text)],
        false => vec![Proposal::by_hand(1.0, text)],
    }
}

/// Fewer threads that use up the CPU quota: real-time threads are not subject to it.
pub(crate) fn quota_real_time(case: &Case<'_>) -> Vec<Proposal> {
    let old = &case.spec_of(case.end()).scheduling;
    if old.policies().any(|policy| policy.is_real_time()) {
        return Vec::new();
    }
    let end = case.end();
    let policy = Policy::Fifo { priority: 10 };
    let new = tailbound_model::Scheduling { policy: Some(policy), ..old.clone() };
    let text = format!("Give all threads of the {end} end the policy `{policy}`, to which a CPU quota does not apply.");
    vec![Proposal::new(vec![settings::scheduling(case.key_of(end), &new)], 0.8, text)]
}

/// What stopped or froze the process, by hand.
pub(crate) fn stopped(case: &Case<'_>) -> Vec<Proposal> {
    let text = match case.is_cause(CauseWord::Frozen) {
        true => format!("Find what freezes the control group of the {} end (`cgroup.freeze`).", case.end()),
        false => format!("Find what stops the process of the {} end (SIGSTOP, a debugger, a checkpoint).", case.end()),
    };
    vec![Proposal::by_hand(0.5, text)]
}

/// The remedy of the rule, by hand.
pub(crate) fn by_remedy(_: &Case<'_>) -> Vec<Proposal> {
    vec![Proposal::by_hand(0.8, String::new())]
}

/// The remedy of the rule, by hand, if a condition holds.
fn by_remedy_if(holds: bool, fit: f64) -> Vec<Proposal> {
    if holds { vec![Proposal::by_hand(fit, String::new())] } else { Vec::new() }
}

/// A kernel with PREEMPT_RT.
pub(crate) fn preempt_rt(case: &Case<'_>) -> Vec<Proposal> {
    by_remedy_if(case.flag("kernel.preempt_rt") == Some(false), 0.3)
}

/// A kernel that preempts itself.
pub(crate) fn preempt_full(case: &Case<'_>) -> Vec<Proposal> {
    by_remedy_if(matches!(case.text("kernel.preemption"), Some("none" | "voluntary" | "lazy")), 0.2)
}

/// Interrupts in threads.
pub(crate) fn threaded_irqs(case: &Case<'_>) -> Vec<Proposal> {
    by_remedy_if(case.flag("irq.threaded") == Some(false), 0.4)
}

/// No daemon that moves interrupts.
pub(crate) fn irqbalance(case: &Case<'_>) -> Vec<Proposal> {
    by_remedy_if(case.flag("irq.balance_daemon") == Some(true), 0.5)
}

/// CPUs that only named threads use.
pub(crate) fn isolated(case: &Case<'_>) -> Vec<Proposal> {
    by_remedy_if(case.text("cpu.isolated") == Some(""), 0.2)
}

/// CPUs without a tick.
pub(crate) fn nohz_full(case: &Case<'_>) -> Vec<Proposal> {
    let is_timer = case.by().is_some_and(|by| by.name.contains("timer"));
    by_remedy_if(is_timer && case.text("cpu.nohz_full") == Some(""), 0.6)
}
