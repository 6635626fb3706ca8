//! Tests of facts: the facts of this machine are complete, and the facts of an invented tree of files are exact.

use super::*;
use std::fs;
use tailbound_model::FactValue;

/// Writes files with these paths and texts below a temporary directory.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn text(facts: &HostFacts, key: &str) -> String {
    match facts.get(key) {
        Some(FactValue::Text(text)) => text.clone(),
        Some(FactValue::Number(n)) => n.to_string(),
        Some(FactValue::Flag(flag)) => flag.to_string(),
        Some(FactValue::Unknown(why)) => format!("? {why}"),
        None => "absent".into(),
    }
}

#[test]
fn every_fact_of_this_machine_is_told_or_has_its_reason() {
    let facts = collect();
    for fact in &facts.facts {
        if let FactValue::Unknown(why) = &fact.value {
            assert!(!why.is_empty(), "{fact:?}");
        }
        assert!(!fact.source.is_empty(), "{fact:?}");
    }
    assert!(facts.facts.windows(2).all(|p| p[0].key < p[1].key), "sorted, no key twice");
    for key in [
        "kernel.release",
        "kernel.cmdline",
        "cpu.online",
        "cpu.allowed",
        "memory.total_kib",
        "limit.rtprio",
        "clock.tai_offset_s",
    ] {
        assert!(!matches!(facts.get(key), None | Some(FactValue::Unknown(_))), "{key}: {:?}", facts.get(key));
    }
    assert!(matches!(facts.get("kernel.hz"), Some(FactValue::Number(24..=10_000))), "{:?}", facts.get("kernel.hz"));
    assert!(!facts.host.is_empty() && facts.boot_id.len() == 36);
}

#[test]
fn an_empty_tree_has_the_same_facts_all_with_reasons() {
    let empty = tree(&[]);
    let facts = collect_from(empty.path());
    for key in
        ["kernel.release", "cpu.governor", "cpu.idle_states", "sched.fair_server", "cgroup.cpu_max", "memory.thp"]
    {
        assert!(matches!(facts.get(key), Some(FactValue::Unknown(_))), "{key}: {:?}", facts.get(key));
    }
    let fixed = |key: &&str| {
        !["cpu.vulnerability.", "numa.node", "irq.", "clock.chrony.", "clock.ptp"].iter().any(|p| key.starts_with(p))
    };
    let live = collect();
    for key in live.facts.iter().map(|f| f.key.as_str()).filter(fixed) {
        assert!(facts.get(key).is_some(), "{key} is missing silently");
    }
}

#[test]
fn an_ordinary_desktop_is_read_as_it_is() {
    let cpu = "/sys/devices/system/cpu";
    let dir = tree(&[
        ("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"),
        ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)\n"),
        ("/proc/cmdline", "root=/dev/sda1 quiet threadirqs\n"),
        ("/sys/kernel/debug/sched/preempt", "none (voluntary) full\n"),
        ("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nmicrocode\t: 0xf0\nflags\t\t: fpu vme\n"),
        (&format!("{cpu}/online"), "0-1\n"),
        (&format!("{cpu}/isolated"), "\n"),
        (&format!("{cpu}/smt/active"), "1\n"),
        (&format!("{cpu}/nohz_full"), "(null)\n"),
        (&format!("{cpu}/intel_pstate/no_turbo"), "0\n"),
        (&format!("{cpu}/cpu0/cpufreq/scaling_governor"), "powersave\n"),
        (&format!("{cpu}/cpu1/cpufreq/scaling_governor"), "performance\n"),
        (&format!("{cpu}/cpu0/cpufreq/scaling_cur_freq"), "800000\n"),
        (&format!("{cpu}/cpu1/cpufreq/scaling_cur_freq"), "3000000\n"),
        (&format!("{cpu}/cpu0/cpuidle/state0/name"), "POLL\n"),
        (&format!("{cpu}/cpu0/cpuidle/state0/latency"), "0\n"),
        (&format!("{cpu}/cpu0/cpuidle/state0/disable"), "0\n"),
        (&format!("{cpu}/cpu0/cpuidle/state1/name"), "C6\n"),
        (&format!("{cpu}/cpu0/cpuidle/state1/latency"), "133\n"),
        (&format!("{cpu}/cpu0/cpuidle/state1/disable"), "0\n"),
        (&format!("{cpu}/cpu0/cpuidle/state2/name"), "C10\n"),
        (&format!("{cpu}/cpu0/cpuidle/state2/latency"), "1048\n"),
        (&format!("{cpu}/cpu0/cpuidle/state2/disable"), "1\n"),
        (&format!("{cpu}/vulnerabilities/mds"), "Mitigation: Clear CPU buffers; SMT vulnerable\n"),
        ("/sys/devices/system/node/node0/cpulist", "0-1\n"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
        ("/proc/stat", "cpu  100 0 50 800 0 0 0 50 7 0\n"),
        ("/proc/self/cgroup", "0::/user.slice/app.scope\n"),
        ("/sys/fs/cgroup/user.slice/app.scope/cpu.max", "max 100000\n"),
        ("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"),
        ("/sys/fs/cgroup/cpuset.cpus.effective", "0-1\n"),
        ("/boot/config-6.1.0-18-amd64", "CONFIG_HZ=250\n# CONFIG_RT_GROUP_SCHED is not set\n"),
        ("/proc/77/comm", "irqbalance\n"),
        ("/sys/class/net/enp1s0/device/msi_irqs/128", "msix\n"),
        (
            "/proc/interrupts",
            "     CPU0 CPU1\n 128:  40   2  PCI-MSI 524288-edge enp1s0\n NMI: 1 1 Non-maskable interrupts\n",
        ),
        ("/proc/irq/128/smp_affinity_list", "0-1\n"),
        ("/proc/irq/128/effective_affinity_list", "1\n"),
    ]);
    let facts = collect_from(dir.path());
    for (key, value) in [
        ("kernel.preempt_rt", "false"),
        ("kernel.preemption", "voluntary"),
        ("irq.threaded", "true"),
        ("cpu.model", "Some CPU @ 3 GHz"),
        ("cpu.count", "2"),
        ("cpu.isolated", ""),
        ("cpu.nohz_full", ""),
        ("cpu.smt_active", "true"),
        ("cpu.turbo", "true"),
        ("cpu.governor", "powersave (CPU 0), performance (CPU 1)"),
        ("cpu.frequency_now_lowest_khz", "800000"),
        ("cpu.frequency_now_highest_khz", "3000000"),
        (
            "cpu.idle_states",
            "POLL 0 us; C6 133 us; C10 1048 us disabled (CPU 0), not readable: the kernel shows no idle states (CPU 1)",
        ),
        ("cpu.idle_deepest_us", "133"),
        ("cpu.vulnerability.mds", "Mitigation: Clear CPU buffers; SMT vulnerable"),
        ("numa.nodes", "1"),
        ("memory.thp", "always"),
        ("cpu.steal_ppm", "50000"),
        ("cgroup.cpu_max", "150000 100000"),
        ("cgroup.cpuset", "0-1"),
        ("sched.rt_group", "false"),
        ("sched.fair_server", "false"),
        ("irq.balance_daemon", "true"),
        ("irq.enp1s0", "128 enp1s0: CPUs 0-1, on 1, 42 times"),
        (
            "machine.hypervisor",
            if cfg!(target_arch = "x86_64") { "none" } else { "? this architecture has no flag that tells" },
        ),
    ] {
        assert_eq!(text(&facts, key), value, "{key}");
    }
}

#[test]
fn a_real_time_kernel_in_a_container_is_read_as_it_is() {
    let dir = tree(&[
        ("/proc/sys/kernel/osrelease", "6.12.8-rt"),
        ("/proc/sys/kernel/version", "#1 SMP PREEMPT_RT Thu Jan  2 2025"),
        ("/proc/cmdline", "isolcpus=2-3 nohz_full=2-3"),
        ("/sys/kernel/realtime", "1"),
        ("/sys/devices/system/cpu/online", "0-3"),
        ("/sys/devices/system/cpu/nohz_full", "2-3"),
        ("/proc/1/environ", "PATH=/bin\0container=lxc\0"),
        ("/proc/self/cgroup", "4:cpu,cpuacct:/box\n0::/"),
        ("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000"),
        ("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000"),
        ("/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us", "950000"),
    ]);
    let facts = collect_from(dir.path());
    for (key, value) in [
        ("kernel.preempt_rt", "true"),
        ("kernel.preemption", "realtime"),
        ("irq.threaded", "true"),
        ("cpu.nohz_full", "2-3"),
        ("container.kind", "lxc"),
        ("cgroup.cpu_max", "50000 100000"),
        ("sched.rt_group", "true"),
        ("sched.fair_server", "true"),
        (
            "sched.fair_server_runtime_ns",
            "? the file does not exist (debugfs is not mounted, or the kernel has no such setting)",
        ),
    ] {
        assert_eq!(text(&facts, key), value, "{key}");
    }
}

#[test]
fn releases_are_compared_as_numbers() {
    assert_eq!(super::sched::version("6.18.44-fc-v657"), Some((6, 18)));
    assert_eq!(super::sched::version("5.4"), Some((5, 4)));
    assert_eq!(super::sched::version("linux"), None);
}
