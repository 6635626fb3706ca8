//! Settings of the host: what can be told without looking at one.

use crate::error::Fault;
use crate::format::{HostKeys, SwitchChoice};
use crate::source::Pos;
use tailbound_model::KnobSpec;

/// Real-time throttling, and its value on a kernel that nobody has changed (sched(7)).
const THROTTLING: &str = "kernel.sched_rt_runtime_us";
const THROTTLED_US: &str = "950000";

/// Settings that a kernel takes once and never back.
const ONE_WAY: [&str; 4] = [
    "kernel.modules_disabled",
    "kernel.kexec_load_disabled",
    "kernel.unprivileged_bpf_disabled",
    "kernel.yama.ptrace_scope",
];

/// All settings, in the order in which they are set.
pub(super) fn knobs(keys: &HostKeys) -> Result<Vec<KnobSpec>, Fault> {
    let mut all: Vec<KnobSpec> = Vec::new();
    let mut add = |at: Pos, spec: KnobSpec| {
        if all.iter().any(|known| known.key() == spec.key()) {
            return Err(Fault::new(at, format!("{} is given twice", spec.key())).help("remove one of the two"));
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
    Ok(all)
}

fn sysctl(name: &str, name_at: Pos, value: &str, value_at: Pos) -> Result<KnobSpec, Fault> {
    // As sysctl(8) does: whichever of `.` and `/` comes first separates the parts, and the other stands for a dot.
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
        return Err(
            Fault::new(name_at, reason).help("for example `kernel.sched_rt_runtime_us`, as `sysctl -a` shows it")
        );
    }
    if ONE_WAY.contains(&dotted.as_str()) {
        let reason = format!("`{name}` cannot be put back: the kernel takes it once");
        return Err(Fault::new(name_at, reason).help("set it before the run, if it is to be set"));
    }
    if value.trim().is_empty() {
        let reason = format!("the value of `{name}` is empty");
        return Err(Fault::new(value_at, reason).help("write the value that it is to have"));
    }
    Ok(KnobSpec::Sysctl { name: dotted, value: value.split_whitespace().collect::<Vec<_>>().join(" ") })
}
