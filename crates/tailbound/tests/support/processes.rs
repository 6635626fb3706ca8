//! Processes of a run, as a test sees them.

use std::fs;
use std::time::{Duration, Instant};

/// Children of `pid`, and their children.
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

/// Ends a process of this test at once.
pub fn kill(pid: i32) {
    // SAFETY: a process of this test.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// The supervisor of `end`, once its measuring process runs its loop.
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
