//! Test: a CPU quota that stops the ends is reported.

use crate::support::{Bench, exit_and_stderr, ping_pong, succeeded};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// A control group with a quota of a tenth of a CPU, removed when this value is dropped.
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

    fn quota(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.0.join(name));
        read("cpu.cfs_quota_us").or_else(|_| read("cpu.max")).unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The processes of the group have ended, but the kernel may need a moment to remove them.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_used_up_cpu_quota_is_reported() {
    let Some(group) = Group::new() else { return };
    let bench = Bench::new();
    let study = bench.study(&ping_pong("udp", "").replace("rate: 500 Hz", "rate: max"));
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    let processes = group.0.join("cgroup.procs");
    // SAFETY: between fork and exec the closure only writes to a file, whose name was made before.
    unsafe { command.pre_exec(move || std::fs::write(&processes, "0")) };
    let output = command.output().unwrap();
    succeeded(&output);
    let text = exit_and_stderr(&output).1;
    assert!(text.contains("the CPU quota of the end's control group was used up"), "{text}");
    let counters = &bench.manifest()["trials"][0]["ends"]["pong"]["counters"];
    // Two threads that never wait have a tenth of a CPU for one second.
    assert!(counters["cgroup.nr_throttled"].as_i64().unwrap() >= 3, "{counters}");
    assert!(counters["cgroup.throttled_ns"].as_i64().unwrap() >= 100_000_000, "{counters}");
    bench.remove_record();
    // The quota of the group is removed during the trials, and restored.
    let study = bench.study(&ping_pong("udp", "host: { cpu_quota: off }").replace("rate: 500 Hz", "rate: max"));
    let mut command = bench.tailbound();
    command.arg("run").arg(study).arg("--out").arg(bench.path("record"));
    let (processes, before) = (group.0.join("cgroup.procs"), group.quota());
    // SAFETY: as above.
    unsafe { command.pre_exec(move || std::fs::write(&processes, "0")) };
    let output = command.output().unwrap();
    succeeded(&output);
    let counters = &bench.manifest()["trials"][0]["ends"]["pong"]["counters"];
    assert_eq!(counters["cgroup.nr_throttled"].as_i64(), Some(0), "{counters}");
    assert_eq!(group.quota(), before);
    bench.remove_record();
    // Outside of the control group no quota is reported.
    let free = bench.run(&ping_pong("udp", ""), &[]);
    succeeded(&free);
    assert!(!exit_and_stderr(&free).1.contains("CPU quota"), "{}", exit_and_stderr(&free).1);
}
