//! A CPU quota that stops the ends is told.
#![cfg(feature = "system-tests")]

mod support;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use support::{Bench, ping_pong, succeeded, told};

/// A control group with a quota of a tenth of a CPU, gone at the end.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Group> {
        let name = format!("tailbound-test-{}", std::process::id());
        let (v1, v2) = (Path::new("/sys/fs/cgroup/cpu"), Path::new("/sys/fs/cgroup"));
        let dir = if v1.is_dir() { v1.join(name) } else { v2.join(name) };
        let made = std::fs::create_dir(&dir).and_then(|()| match v1.is_dir() {
            true => std::fs::write(dir.join("cpu.cfs_quota_us"), "10000"),
            false => std::fs::write(dir.join("cpu.max"), "10000 100000"),
        });
        if let Err(e) = made {
            let _ = std::fs::remove_dir(&dir);
            println!("skipped: no control group with a quota can be made here: {e}");
            return None;
        }
        Some(Group(dir))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes have ended, but the kernel may take a moment.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_quota_that_is_used_up_is_told() {
    let Some(group) = Group::new() else { return };
    let bench = Bench::new();
    let study = bench.study(&ping_pong("udp", "").replace("rate: 500 Hz", "rate: max"));
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    let processes = group.0.join("cgroup.procs");
    // SAFETY: between fork and exec it writes to a file, by its name that was made before.
    unsafe { command.pre_exec(move || std::fs::write(&processes, "0")) };
    let output = command.output().unwrap();
    succeeded(&output);
    let text = told(&output).1;
    assert!(text.contains("the CPU quota of its control group was used up"), "{text}");
    let counters = &bench.manifest()["trials"][0]["ends"]["pong"]["counters"];
    // A second at a tenth of a CPU for two threads that never wait.
    assert!(counters["cgroup.nr_throttled"].as_i64().unwrap() >= 3, "{counters}");
    assert!(counters["cgroup.throttled_ns"].as_i64().unwrap() >= 100_000_000, "{counters}");
    std::fs::remove_dir_all(bench.path("record")).unwrap();
    // Outside of it nothing is said.
    let free = bench.run(&ping_pong("udp", ""), &[]);
    succeeded(&free);
    assert!(!told(&free).1.contains("CPU quota"), "{}", told(&free).1);
}
