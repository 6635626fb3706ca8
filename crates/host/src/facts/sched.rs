//! Facts about the scheduler: settings, and CPU time stolen by a hypervisor since boot.

use super::source::{Collector, grouped};

pub(super) fn read(c: &mut Collector) {
    c.flag("sched.autogroup", "/proc/sys/kernel/sched_autogroup_enabled");
    c.number("sched.rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us");
    c.number("sched.rt_period_us", "/proc/sys/kernel/sched_rt_period_us");
    c.number("sched.rr_timeslice_ms", "/proc/sys/kernel/sched_rr_timeslice_ms");
    c.flag("sched.timer_migration", "/proc/sys/kernel/timer_migration");
    fair_server(c);
    rt_group(c);
    c.put_number("process.timer_slack_ns", "prctl(PR_GET_TIMERSLACK)", timer_slack());
    steal(c);
    let load = c.read("/proc/loadavg");
    let at = |index: usize| {
        load.clone().and_then(|t| {
            t.split_whitespace().nth(index).map(str::to_owned).ok_or_else(|| "the line is truncated".into())
        })
    };
    let (one, five) = (at(0), at(1));
    c.put_text("load.1min", "/proc/loadavg", one);
    c.put_text("load.5min", "/proc/loadavg", five);
}

/// Reads whether the kernel has the fair server: since Linux 6.12 a deadline server on each CPU reserves time for
/// ordinary threads and replaces real-time throttling.
fn fair_server(c: &mut Collector) {
    let dir = "/sys/kernel/debug/sched/fair_server";
    let release = c.read("/proc/sys/kernel/osrelease");
    if c.exists(dir) {
        let cpus: Vec<u32> = c.names(dir).iter().filter_map(|n| n.strip_prefix("cpu")?.parse().ok()).collect();
        let runtime = grouped(cpus.iter().map(|&cpu| (cpu, c.read(&format!("{dir}/cpu{cpu}/runtime")))));
        c.put_flag("sched.fair_server", dir, Ok(true));
        c.put_text("sched.fair_server_runtime_ns", &format!("{dir}/cpuN/runtime"), runtime);
        return;
    }
    let present =
        release.and_then(|r| version(&r).map(|v| v >= (6, 12)).ok_or_else(|| format!("`{r}` is not a version")));
    let runtime = match present {
        Ok(false) => Err("this kernel has no fair server".into()),
        _ => c.read(dir).and(Err("debugfs does not show the fair server".into())),
    };
    c.put_flag("sched.fair_server", "inferred from kernel.release (since 6.12)", present);
    c.put_text("sched.fair_server_runtime_ns", dir, runtime);
}

/// Major and minor number of a kernel release: `6.18.44-generic` gives (6, 18).
pub(super) fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|ch: char| !ch.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Reads whether the kernel has RT_GROUP_SCHED, which lets real-time threads run only if their control group has
/// real-time runtime.
fn rt_group(c: &mut Collector) {
    let key = "sched.rt_group";
    let file = "/sys/fs/cgroup/cpu/cpu.rt_runtime_us";
    if c.exists(file) || c.exists("/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us") {
        return c.put_flag(key, file, Ok(true));
    }
    let release = c.read("/proc/sys/kernel/osrelease").unwrap_or_default();
    for path in [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")] {
        if let Ok(text) = c.read(&path) {
            return c.put_flag(key, &path, Ok(text.lines().any(|l| l == "CONFIG_RT_GROUP_SCHED=y")));
        }
    }
    if c.exists("/sys/fs/cgroup/cpu/cpu.shares") || c.exists("/sys/fs/cgroup/cpu,cpuacct/cpu.shares") {
        // With RT_GROUP_SCHED the version 1 hierarchy would have this file.
        return c.put_flag(key, file, Ok(false));
    }
    let why =
        format!("neither a cpu control group nor /boot/config-{release} shows whether the kernel has RT_GROUP_SCHED");
    c.put_flag(key, file, Err(why));
}

fn timer_slack() -> Result<i64, String> {
    // SAFETY: integer arguments only.
    let slack = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0u64, 0u64, 0u64, 0u64) };
    if slack < 0 { Err(std::io::Error::last_os_error().to_string()) } else { Ok(slack) }
}

/// Reads the steal time since boot: the time for which the hypervisor ran other machines while this machine was ready
/// to run, in clock ticks and in parts per million of all CPU time.
fn steal(c: &mut Collector) {
    let stat = c.read("/proc/stat");
    let numbers: Result<Vec<i64>, String> = stat.and_then(|text| {
        let line = text.lines().next().unwrap_or_default();
        let numbers: Vec<i64> = line.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
        if numbers.len() >= 8 { Ok(numbers) } else { Err("the cpu line of /proc/stat is truncated".into()) }
    });
    // The columns are: user nice system idle iowait irq softirq steal; the guest columns after them are part of user
    // and nice.
    let ticks = numbers.as_ref().map(|n| n[7]).map_err(Clone::clone);
    let ppm = numbers.map(|n| n[7] * 1_000_000 / n[..8].iter().sum::<i64>().max(1));
    c.put_number("cpu.steal_ticks", "/proc/stat", ticks);
    c.put_number("cpu.steal_ppm", "/proc/stat", ppm);
}
