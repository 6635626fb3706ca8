//! Helpers for tests of host settings: programs other than Tailbound read each setting, and every test restores the
//! settings.

use std::fs;
use std::process::{Child, Stdio};

use super::Bench;
use super::processes::wait_for_measuring;

/// A file under /proc whose value is restored when this value is dropped, even if the test fails.
pub struct AsFound {
    pub path: &'static str,
    pub value: String,
}

impl AsFound {
    pub fn keep(path: &'static str) -> AsFound {
        AsFound { path, value: read(path) }
    }
    /// Computes a number that differs by `by` from the value that the file had when this value was made.
    pub fn other(&self, by: i64) -> String {
        (self.value.parse::<i64>().expect("a number") + by).to_string()
    }
}

impl Drop for AsFound {
    fn drop(&mut self) {
        if read(self.path) != self.value {
            let _ = fs::write(self.path, &self.value);
        }
    }
}

pub fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}")).trim().to_owned()
}

pub fn is_root() -> bool {
    // SAFETY: no argument, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

impl Bench {
    /// Starts a run, and returns when the process of the ping end measures.
    pub fn begin(&self, study: &str) -> Child {
        let study = self.study(study);
        let mut command = self.tailbound();
        command.arg("run").arg(study).arg("--out").arg(self.path("record"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        wait_for_measuring(child.id() as i32, "ping");
        child
    }

    /// Runs `tailbound lab WORD`. Returns its exit code and standard output.
    pub fn lab(&self, word: &str) -> (i32, String) {
        let output = self.tailbound().args(["lab", word]).output().expect("the binary runs");
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

pub fn signal(child: &Child, signal: i32) {
    // SAFETY: a process of this test.
    unsafe { libc::kill(child.id() as i32, signal) };
}

pub fn study(slots: u32, rest: &str) -> String {
    format!(
        "study: knobs\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {slots}, warm_up: 0, timeout: 2 s }} }}\n\
         rate: 500 Hz\ndriver: udp\npath: loopback\nplace: process\n{rest}\n"
    )
}

pub fn cannot() -> bool {
    if !is_root() {
        println!("skipped: settings of the host can be changed by root only");
    }
    !is_root()
}

pub fn no_journal(bench: &Bench) {
    let left: Vec<_> = std::fs::read_dir(bench.path("state/journal")).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Whether the CPUs of this machine stand still so often (a hypervisor has them) that faults of milliseconds cannot be judged. A
/// real-time thread, before which nothing in the machine comes, reads the clock all the time; what is missing between two readings
/// was taken from it.
pub fn stands_still() -> bool {
    let spun = std::thread::spawn(|| {
        let policy = Some(tailbound_model::Policy::Fifo { priority: 95 });
        tailbound_host::apply(0, &tailbound_model::RoleScheduling { policy, cpus: None }).ok()?;
        let (mut missing_ns, mut all_ns) = (0, 0);
        for _ in 0..12 {
            let begin_ns = tailbound_host::monotonic_ns();
            let mut last_ns = begin_ns;
            while last_ns < begin_ns + 40_000_000 {
                let now_ns = tailbound_host::monotonic_ns();
                missing_ns += Some(now_ns - last_ns).filter(|gap_ns| *gap_ns > 1_000_000).unwrap_or(0);
                last_ns = now_ns;
            }
            all_ns += last_ns - begin_ns;
            // Real-time threads must not have a CPU all the time.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Some((missing_ns, all_ns))
    });
    let Ok(Some((missing_ns, all_ns))) = spun.join() else { return false };
    let stands_still = missing_ns * 100 > all_ns;
    if stands_still {
        println!(
            "skipped: the CPUs of this machine stood still for {} of {} ms",
            missing_ns / 1_000_000,
            all_ns / 1_000_000
        );
    }
    stands_still
}
