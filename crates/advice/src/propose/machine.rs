//! Proposals about idle states, frequencies, timers, memory and virtual machines.

use crate::case::{Case, Proposal};
use crate::settings;
use tailbound_document::CauseWord;
use tailbound_model::{PlaceSpec, Policy, RoleScheduling};

/// No idle state that takes time to leave.
pub(crate) fn no_idle(case: &Case<'_>) -> Vec<Proposal> {
    if case.sets_host("host.cpu_dma_latency") {
        return Vec::new();
    }
    let text = "Ask for a wake-up time of 0 us, so that idle CPUs poll.".to_owned();
    vec![Proposal::new(vec!["host.cpu_dma_latency=0 us".into()], 1.0, text)]
}

/// The highest frequency at all times.
pub(crate) fn performance(case: &Case<'_>) -> Vec<Proposal> {
    let is_set = case.text("cpu.governor") == Some("performance");
    if is_set || case.sets_host("host.governor") {
        return Vec::new();
    }
    let fit = if case.is_cause(CauseWord::Frequency) { 1.0 } else { 0.3 };
    let text = "Set the frequency governor `performance`, so that CPUs keep a high frequency.".to_owned();
    vec![Proposal::new(vec!["host.governor=performance".into()], fit, text)]
}

/// The smallest timer slack for the threads of the middleware.
pub(crate) fn timer_slack(case: &Case<'_>) -> Vec<Proposal> {
    if !case.situation.spec.middleware.default_timer_slack {
        return Vec::new();
    }
    let text = "Give the threads of the middleware a timer slack of 1 ns.".to_owned();
    vec![Proposal::new(vec!["middleware.timer_slack=least".into()], 0.9, text)]
}

/// A real-time policy, whose timers the kernel runs without slack and, on PREEMPT_RT, in the interrupt.
pub(crate) fn real_time_timers(case: &Case<'_>) -> Vec<Proposal> {
    let end = case.end();
    let old = &case.spec_of(end).scheduling;
    if old.of_role("main", false).policy.is_some_and(|policy| policy.is_real_time()) {
        return Vec::new();
    }
    let mut new = old.clone();
    let cpus = new.roles.get("main").and_then(|role| role.cpus.clone());
    let policy = Policy::Fifo { priority: 10 };
    new.roles.insert("main".into(), RoleScheduling { policy: Some(policy), cpus });
    let text = format!(
        "Give the sending thread of the {end} end the policy `{policy}`: with PREEMPT_RT, timers of time-sharing threads run \
         in a thread."
    );
    vec![Proposal::new(vec![settings::scheduling(case.key_of(end), &new)], 0.6, text)]
}

/// Locked memory.
pub(crate) fn lock_memory(case: &Case<'_>) -> Vec<Proposal> {
    if !case.situation.spec.middleware.unlocked_memory {
        return Vec::new();
    }
    let text =
        "Lock the memory of the measuring process (mlockall), so that no page has to be read or made.".to_owned();
    vec![Proposal::new(vec!["middleware.memory=locked".into()], 1.0, text)]
}

/// No swapping of pages of processes.
pub(crate) fn swappiness(case: &Case<'_>) -> Vec<Proposal> {
    let has_none = case.number("memory.swap_total_kib") == Some(0);
    if has_none || case.sets_host("host.sysctl.vm.swappiness") {
        return Vec::new();
    }
    let text = "Let the kernel keep pages of processes in memory (vm.swappiness 0).".to_owned();
    vec![Proposal::new(vec!["host.sysctl.vm.swappiness=0".into()], 0.5, text)]
}

/// Free memory in advance, so that the kernel frees it in its own thread.
pub(crate) fn free_memory(case: &Case<'_>) -> Vec<Proposal> {
    if case.sets_host("host.sysctl.vm.watermark_scale_factor") {
        return Vec::new();
    }
    let text =
        "Let the kernel keep more memory free (vm.watermark_scale_factor 200), so that threads of the ends need not \
                free any."
            .to_owned();
    vec![Proposal::new(vec!["host.sysctl.vm.watermark_scale_factor=200".into()], 0.8, text)]
}

/// A fixed host setting that only has to be missing.
fn fixed(case: &Case<'_>, name: &str, value: &str, fit: f64, text: &str) -> Vec<Proposal> {
    let key = format!("host.sysctl.{name}");
    match case.sets_host(&key) {
        true => Vec::new(),
        false => vec![Proposal::new(vec![format!("{key}={value}")], fit, text.to_owned())],
    }
}

/// No movement of pages between NUMA nodes.
pub(crate) fn numa_balancing(case: &Case<'_>) -> Vec<Proposal> {
    if case.flag("memory.numa_balancing") != Some(true) {
        return Vec::new();
    }
    fixed(
        case,
        "kernel.numa_balancing",
        "0",
        0.6,
        "Switch automatic NUMA balancing off, so that the kernel unmaps no pages.",
    )
}

/// No movement of pages to make larger free areas.
pub(crate) fn compaction(case: &Case<'_>) -> Vec<Proposal> {
    if case.number("memory.compaction_proactiveness").is_none_or(|n| n == 0) {
        return Vec::new();
    }
    let text = "Switch proactive compaction off, so that the kernel moves no pages of running programs.";
    fixed(case, "vm.compaction_proactiveness", "0", 0.4, text)
}

/// No check for hung CPUs by a timer that cannot be masked.
pub(crate) fn nmi_watchdog(case: &Case<'_>) -> Vec<Proposal> {
    if case.flag("kernel.nmi_watchdog") != Some(true) {
        return Vec::new();
    }
    fixed(case, "kernel.nmi_watchdog", "0", 0.3, "Switch the NMI watchdog off.")
}

/// Virtual CPUs whose threads on the host have CPUs or a priority.
pub(crate) fn vcpu_priority(case: &Case<'_>) -> Vec<Proposal> {
    let end = case.end();
    let PlaceSpec::Vm(vm) = &case.spec_of(end).place else {
        let text = "Give the virtual CPUs real CPUs of their own on the host.".to_owned();
        return vec![Proposal::by_hand(0.6, text)];
    };
    if !vm.vcpu_threads.is_empty() {
        return Vec::new();
    }
    let text = format!("Give the threads of the virtual CPUs of the {end} end the policy `fifo 60` on the host.");
    let setting = format!("ends.{end}.place.vcpu_threads=[[{{ policy: fifo, priority: 60 }}]]");
    vec![Proposal::new(vec![setting], 0.9, text)]
}

/// KVM polls when a virtual CPU has halted, so that it wakes up sooner.
pub(crate) fn kvm_halt_poll(case: &Case<'_>) -> Vec<Proposal> {
    let is_guest = matches!(case.spec_of(case.end()).place, PlaceSpec::Vm(_) | PlaceSpec::Domain(_));
    if !is_guest || case.sets_host("host.kvm_halt_poll") {
        return Vec::new();
    }
    let text = "Let KVM poll for 200 us when a virtual CPU has halted.".to_owned();
    vec![Proposal::new(vec!["host.kvm_halt_poll=200 us".into()], 0.7, text)]
}

/// A disk wait, by hand.
pub(crate) fn disk(case: &Case<'_>) -> Vec<Proposal> {
    let text = format!("Keep files, logs and pages on a disk out of the threads of the {} end.", case.end());
    vec![Proposal::by_hand(0.6, text)]
}

/// A lock of the program, by hand.
pub(crate) fn lock(case: &Case<'_>) -> Vec<Proposal> {
    let text = format!(
        "Let {} hold what the driver's call to send needs for a shorter time, or give it the priority of the sender (priority \
         inheritance).",
        case.by_name()
    );
    vec![Proposal::by_hand(0.5, text)]
}

/// Missing page tables of huge pages, by hand.
pub(crate) fn huge_pages(case: &Case<'_>) -> Vec<Proposal> {
    if case.text("memory.thp") != Some("always") {
        return Vec::new();
    }
    let text = "Let only programs that ask for huge pages have them (`madvise`).".to_owned();
    vec![Proposal::by_hand(0.5, text)]
}
