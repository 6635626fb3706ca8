//! Facts about CPUs: which CPUs exist, frequencies, idle states, mitigations.

use super::source::{Collector, grouped};
use tailbound_model::CpuList;

const CPU: &str = "/sys/devices/system/cpu";

pub(super) fn read(c: &mut Collector) {
    let info = c.read("/proc/cpuinfo");
    for (key, names) in [("cpu.model", ["model name", "Model"]), ("cpu.microcode", ["microcode", "CPU revision"])] {
        let value = info.clone().and_then(|text| {
            names.iter().find_map(|name| of_cpuinfo(&text, name)).ok_or_else(|| "not in /proc/cpuinfo".into())
        });
        c.put_text(key, "/proc/cpuinfo", value);
    }
    let online = c.read(&format!("{CPU}/online"));
    let cpus: Vec<u32> =
        online.as_ref().ok().and_then(|t| t.parse::<CpuList>().ok()).unwrap_or_default().0.into_iter().collect();
    c.put_text("cpu.online", &format!("{CPU}/online"), online);
    c.put_number("cpu.count", &format!("{CPU}/online"), Ok(cpus.len() as i64));
    let allowed = crate::sched_call::get_affinity(0).map(|list| list.to_string()).map_err(|e| e.to_string());
    c.put_text("cpu.allowed", "sched_getaffinity(2)", allowed);
    // An empty text means that no CPU is isolated.
    c.text("cpu.isolated", &format!("{CPU}/isolated"));
    nohz_full(c);
    let smt = match c.read_number(&format!("{CPU}/smt/active")) {
        Ok(n) => Ok(n != 0),
        Err(why) => Err(why),
    };
    c.put_flag("cpu.smt_active", &format!("{CPU}/smt/active"), smt);

    frequency(c, &cpus);
    idle(c, &cpus);
    let dir = format!("{CPU}/vulnerabilities");
    for name in c.names(&dir) {
        c.text(&format!("cpu.vulnerability.{name}"), &format!("{dir}/{name}"));
    }
    let nodes: Vec<String> = c.names("/sys/devices/system/node").into_iter().filter(|n| is_node(n)).collect();
    for node in &nodes {
        c.text(&format!("numa.{node}.cpus"), &format!("/sys/devices/system/node/{node}/cpulist"));
    }
    let count = if nodes.is_empty() { Err("the kernel shows no NUMA node".into()) } else { Ok(nodes.len() as i64) };
    c.put_number("numa.nodes", "/sys/devices/system/node", count);
}

fn is_node(name: &str) -> bool {
    name.strip_prefix("node").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn of_cpuinfo(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Reads the list of CPUs without a timer tick (nohz_full). A kernel without NO_HZ_FULL has no such file; a kernel with
/// NO_HZ_FULL prints `(null)` if no CPU is listed.
fn nohz_full(c: &mut Collector) {
    let path = format!("{CPU}/nohz_full");
    let value = match c.read(&path) {
        Ok(text) if text == "(null)" => Ok(String::new()),
        Err(_) if !c.exists(&path) && c.exists(CPU) => Ok(String::new()),
        other => other,
    };
    c.put_text("cpu.nohz_full", &path, value);
}

fn frequency(c: &mut Collector, cpus: &[u32]) {
    for (key, file) in [
        ("cpu.governor", "scaling_governor"),
        ("cpu.frequency_driver", "scaling_driver"),
        ("cpu.frequency_min_khz", "scaling_min_freq"),
        ("cpu.frequency_max_khz", "scaling_max_freq"),
        ("cpu.energy_preference", "energy_performance_preference"),
    ] {
        c.per_cpu(key, cpus, &format!("{CPU}/cpuN/cpufreq/{file}"));
    }
    // The current frequency differs between CPUs and changes all the time, so only its range is reported.
    let current = cpus.iter().map(|cpu| c.read_number(&format!("{CPU}/cpu{cpu}/cpufreq/scaling_cur_freq")));
    let current: Result<Vec<i64>, String> = current.collect();
    let range = |pick: fn(&Vec<i64>) -> Option<i64>| match &current {
        Ok(all) => pick(all).ok_or_else(|| "no CPU was read".to_owned()),
        Err(why) => Err(why.clone()),
    };
    let (low, high) = (range(|all| all.iter().min().copied()), range(|all| all.iter().max().copied()));
    let source = format!("{CPU}/cpuN/cpufreq/scaling_cur_freq");
    c.put_number("cpu.frequency_now_lowest_khz", &source, low);
    c.put_number("cpu.frequency_now_highest_khz", &source, high);

    let (pstate, boost) = (format!("{CPU}/intel_pstate/no_turbo"), format!("{CPU}/cpufreq/boost"));
    match c.read_number(&pstate) {
        Ok(off) => c.put_flag("cpu.turbo", &pstate, Ok(off == 0)),
        Err(_) => c.flag("cpu.turbo", &boost),
    }
}

/// Reads the idle states of CPUs, and the latency that each idle state adds to a wake-up.
fn idle(c: &mut Collector, cpus: &[u32]) {
    c.text("cpu.idle_driver", &format!("{CPU}/cpuidle/current_driver"));
    let governor = format!("{CPU}/cpuidle/current_governor");
    let read_only = format!("{governor}_ro");
    let governor = if c.exists(&governor) { governor } else { read_only };
    c.text("cpu.idle_governor", &governor);

    let mut deepest = None;
    let mut of_cpu = |cpu: u32| -> Result<String, String> {
        let dir = format!("{CPU}/cpu{cpu}/cpuidle");
        let mut states = Vec::new();
        for index in 0.. {
            let state = format!("{dir}/state{index}");
            let Ok(name) = c.read(&format!("{state}/name")) else { break };
            let latency = c.read_number(&format!("{state}/latency"))?;
            let disabled = c.read_number(&format!("{state}/disable"))? != 0;
            if !disabled {
                deepest = deepest.max(Some(latency));
            }
            states.push(format!("{name} {latency} us{}", if disabled { " disabled" } else { "" }));
        }
        if states.is_empty() { Err("the kernel shows no idle states".into()) } else { Ok(states.join("; ")) }
    };
    let states = grouped(cpus.iter().map(|&cpu| (cpu, of_cpu(cpu))));
    let source = format!("{CPU}/cpuN/cpuidle/stateN");
    c.put_number(
        "cpu.idle_deepest_us",
        &source,
        deepest.ok_or_else(|| "the kernel shows no enabled idle state".into()),
    );
    c.put_text("cpu.idle_states", &source, states);

    // The device shows the bound in force for the whole machine: a 32-bit number of microseconds.
    let path = "/dev/cpu_dma_latency";
    let bound = if c.is_live() { dma_latency(path) } else { c.read_number(path) };
    c.put_number("cpu.dma_latency_us", path, bound);
}

fn dma_latency(path: &str) -> Result<i64, String> {
    use std::io::Read;
    let mut bytes = [0; 4];
    let mut file = std::fs::File::open(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::PermissionDenied => "only root may read this value".to_owned(),
        _ => e.to_string(),
    })?;
    file.read_exact(&mut bytes).map_err(|e| e.to_string())?;
    Ok(i64::from(i32::from_ne_bytes(bytes)))
}
