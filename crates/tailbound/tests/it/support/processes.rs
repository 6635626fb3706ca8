//! Finds the processes of a run in /proc, and kills them.

use super::{Bench, exit_and_stderr, output_of};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ids of the child processes of `pid` and of all their descendants.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        for task in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|c| c.parse().ok()) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}

/// Process id of the process that measures the given end at the moment.
pub fn measuring(controller: i32, end: &str) -> Option<i32> {
    let name = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    descendants(controller).into_iter().find(|pid| name(pid).trim() == format!("tb-{end}"))
}

/// Kills a process of this test with SIGKILL.
pub fn kill(pid: i32) {
    // SAFETY: a process of this test.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Waits until the measuring process of `end` runs, and returns the process id of its supervisor.
pub fn wait_for_measuring(controller: i32, end: &str) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        for supervisor in descendants(controller) {
            let names: Vec<String> = descendants(supervisor)
                .into_iter()
                .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).ok())
                .collect();
            if names.iter().any(|n| n.trim() == format!("tb-{end}")) {
                return supervisor;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the measuring process of {end} never began");
}

/// Runs a study, and reads the threads of the ping end during the run with util-linux and procfs. Returns for each
/// thread name: policy, priority or nice value, and CPUs.
pub fn seen_from_outside(bench: &Bench, study: &str) -> BTreeMap<String, String> {
    seen_while_running(bench, bench.to_run(bench.tailbound(), "record", study))
}

/// The same of a command that runs a study into `record`.
pub fn seen_while_running(bench: &Bench, mut command: Command) -> BTreeMap<String, String> {
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let measuring = descendants(wait_for_measuring(child.id() as i32, "ping"))[0];
    std::thread::sleep(Duration::from_millis(300));
    let mut seen = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{measuring}/task")).unwrap().flatten() {
        let tid = task.file_name().to_string_lossy().into_owned();
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default().trim().to_owned();
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let nice = stat.rsplit(')').next().and_then(|s| s.split_whitespace().nth(16)).unwrap_or("?").to_owned();
        let last = |text: &str, what: &str| {
            let line = text.lines().find(|l| l.contains(what)).unwrap_or_default();
            line.rsplit(": ").next().unwrap_or_default().replace("|SCHED_RESET_ON_FORK", "")
        };
        let chrt = output_of("chrt", &["-p", &tid]);
        let cpus = output_of("taskset", &["-pc", &tid]);
        let (policy, priority) = (last(&chrt, "scheduling policy"), last(&chrt, "scheduling priority"));
        // A nice value matters for time-sharing threads only; under another policy the kernel still stores an old nice value.
        let value = if matches!(policy.as_str(), "SCHED_OTHER" | "SCHED_BATCH") { nice } else { priority };
        seen.insert(name, format!("{policy} {value} {}", last(&cpus, "affinity list")));
    }
    let output = child.wait_with_output().unwrap();
    let (code, text) = exit_and_stderr(&output);
    assert!(code == 0 || code == 6, "{text}");
    let report = bench.report();
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    seen
}

/// A process that is killed when this value is dropped.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
