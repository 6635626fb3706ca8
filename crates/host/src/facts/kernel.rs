//! Facts about the kernel: release, command line, preemption, clock sources, tick.

use super::source::Collector;

pub(super) fn read(c: &mut Collector) {
    c.text("kernel.release", "/proc/sys/kernel/osrelease");
    c.text("kernel.version", "/proc/sys/kernel/version");
    c.text("kernel.cmdline", "/proc/cmdline");
    c.number("kernel.tainted", "/proc/sys/kernel/tainted");
    c.flag("kernel.nmi_watchdog", "/proc/sys/kernel/nmi_watchdog");
    preemption(c);

    let clock = "/sys/devices/system/clocksource/clocksource0";
    c.text("clock.source", &format!("{clock}/current_clocksource"));
    c.text("clock.sources_available", &format!("{clock}/available_clocksource"));
    c.put_flag("clock.ntp_synchronised", "adjtimex(2)", ntp_synchronised());
    // The coarse clock advances with the tick, so its resolution is the tick's period.
    c.put_number("kernel.hz", "clock_getres(CLOCK_MONOTONIC_COARSE)", tick_hz());

    let cmdline = c.read("/proc/cmdline");
    let threaded = cmdline.map(|line| has_word(&line, "threadirqs"));
    let rt = is_preempt_rt(c).unwrap_or(false);
    c.put_flag("irq.threaded", "/proc/cmdline threadirqs, or PREEMPT_RT", threaded.map(|t| t || rt));
    c.put_text("library.glibc", "gnu_get_libc_version()", glibc());
    let uptime = c.read("/proc/uptime").and_then(|t| first_whole_number(&t));
    c.put_number("kernel.uptime_s", "/proc/uptime", uptime);
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|w| w == word)
}

pub(super) fn is_preempt_rt(c: &Collector) -> Result<bool, String> {
    if let Ok(number) = c.read_number("/sys/kernel/realtime") {
        return Ok(number == 1);
    }
    c.read("/proc/sys/kernel/version").map(|v| has_word(&v, "PREEMPT_RT"))
}

/// Reads the preemption model in force in the kernel. Kernels with PREEMPT_DYNAMIC choose the model at boot and show it
/// only in debugfs.
fn preemption(c: &mut Collector) {
    let rt = is_preempt_rt(c);
    let version = c.read("/proc/sys/kernel/version");
    let in_force = c.read("/sys/kernel/debug/sched/preempt");
    let asked = c.read("/proc/cmdline").unwrap_or_default();
    let asked = asked.split_whitespace().find_map(|w| w.strip_prefix("preempt=")).map(str::to_owned);
    let (source, model) = match (&rt, &in_force, &version) {
        (Ok(true), _, _) => ("/proc/sys/kernel/version", Ok("realtime".to_owned())),
        (_, Ok(list), _) => ("/sys/kernel/debug/sched/preempt", chosen(list)),
        (_, Err(why), Ok(v)) if v.contains("PREEMPT_DYNAMIC") => match asked {
            Some(word) => ("/proc/cmdline preempt=", Ok(word)),
            None => (
                "/sys/kernel/debug/sched/preempt",
                Err(format!("only debugfs shows the default of PREEMPT_DYNAMIC, which this kernel uses: {why}")),
            ),
        },
        (_, _, Ok(v)) if has_word(v, "PREEMPT_LAZY") => ("/proc/sys/kernel/version", Ok("lazy".into())),
        (_, _, Ok(v)) if has_word(v, "PREEMPT") => ("/proc/sys/kernel/version", Ok("full".into())),
        (_, _, Ok(_)) => ("/proc/sys/kernel/version", Ok("none or voluntary".into())),
        (_, _, Err(why)) => ("/proc/sys/kernel/version", Err(why.clone())),
    };
    c.put_flag("kernel.preempt_rt", "/sys/kernel/realtime or /proc/sys/kernel/version", rt);
    c.put_text("kernel.preemption", source, model);
}

/// The choice that the kernel marks by parentheses in a list of choices: `none voluntary (full) lazy` gives `full`.
fn chosen(list: &str) -> Result<String, String> {
    let word = list.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    word.map(|(word, _)| word.to_owned()).ok_or_else(|| format!("the kernel marks no choice in the list `{list}`"))
}

pub(super) fn first_whole_number(text: &str) -> Result<i64, String> {
    let word = text.split([' ', '.']).next().unwrap_or_default();
    word.parse().map_err(|_| format!("`{text}` does not begin with a number"))
}

fn tick_hz() -> Result<i64, String> {
    use nix::time::{ClockId, clock_getres};
    let period = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_err(|e| e.to_string())?;
    match period.tv_nsec() {
        ns if ns > 1 && period.tv_sec() == 0 => Ok((1_000_000_000 + ns / 2) / ns),
        ns => Err(format!("a clock resolution of {ns} ns is not the period of a tick")),
    }
}

fn ntp_synchronised() -> Result<bool, String> {
    // SAFETY: every bit pattern, zero too, is a valid timex.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: modes 0 only reads; the kernel writes one timex.
    let result = unsafe { libc::adjtimex(&mut state) };
    if result < 0 {
        return Err(std::io::Error::last_os_error().to_string());
    }
    Ok(state.status & libc::STA_UNSYNC == 0)
}

#[cfg(target_env = "gnu")]
fn glibc() -> Result<String, String> {
    // SAFETY: returns a constant, zero-terminated string of the library.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Ok(version.to_string_lossy().into_owned())
}

#[cfg(not(target_env = "gnu"))]
fn glibc() -> Result<String, String> {
    Err("this program is not linked against glibc".into())
}
