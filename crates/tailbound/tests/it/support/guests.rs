//! Runs trials with ends in guests. QEMU emulates the guests, so that the tests need no KVM; their kernel is Debian's
//! real-time kernel, which `dev/setup vm` downloads.

use super::host::no_journal;
use super::{Bench, exit_and_stderr};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

pub const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guests/rt.deb");

/// Environment variable that lets guests start from a snapshot: the first guest with the same devices and files boots,
/// and the others start from its state.
pub const SNAPSHOTS: &str = "TAILBOUND_GUEST_SNAPSHOTS";

pub struct Guests {
    pub bench: Bench,
    boot: bool,
}

impl Guests {
    pub fn new() -> Guests {
        Guests { bench: Bench::new(), boot: false }
    }

    /// Guests that boot, for tests of boots and of clocks: the clock of a restored guest goes on from the time of the
    /// snapshot.
    pub fn that_boot() -> Guests {
        Guests { bench: Bench::new(), boot: true }
    }

    /// The binary under test, with a cache that all tests share, so that a kernel is unpacked only once, and with the
    /// sockets in a directory of the test.
    pub fn tailbound(&self) -> Command {
        let mut command = self.bench.tailbound();
        let scratch = self.bench.path("scratch");
        fs::create_dir_all(&scratch).unwrap();
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests")).env("TMPDIR", scratch);
        if !self.boot {
            command.env(SNAPSHOTS, "1");
        }
        command
    }

    pub fn run(&self, study: &str) -> Command {
        self.bench.to_run(self.tailbound(), "record", study)
    }

    /// Runs a study to its end, checks that the record is valid, and returns the report.
    pub fn valid(&self, study: &str) -> Value {
        let (code, text) = exit_and_stderr(&self.run(study).output().unwrap());
        assert_eq!(code, 0, "{text}");
        let report = self.bench.report();
        assert_eq!(report["status"], "valid", "{}", report["warnings"]);
        report
    }

    pub fn measuring(&self, study: &str) -> Child {
        self.bench.measuring(self.run(study))
    }

    /// Process ids of programs of this test whose name begins with `name`.
    pub fn processes(&self, name: &str) -> Vec<i32> {
        let own = self.bench.dir.path().to_str().unwrap().to_owned();
        let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        let is = |pid: &i32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).into_owned();
            words.split('/').any(|part| part.starts_with(name)) && words.contains(&own)
        };
        all.filter(is).collect()
    }

    /// Process id of the QEMU that runs the guest of an end.
    pub fn of_end(&self, end: &str) -> i32 {
        let found = self.processes("qemu-system").into_iter().find(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
            String::from_utf8_lossy(&words).contains(&format!("tailbound-{end}"))
        });
        found.expect("a guest of that end")
    }

    pub fn nothing_is_left(&self) {
        for name in ["qemu-system", "ovs"] {
            assert_eq!(self.processes(name), Vec::<i32>::new(), "{name}");
        }
        let left: Vec<_> = fs::read_dir(self.bench.path("scratch")).unwrap().flatten().map(|e| e.path()).collect();
        assert!(left.is_empty(), "{left:?}");
        no_journal(&self.bench);
    }
}

/// A study with two guests, one for each end. `measure`: keys of the ping-pong; `guest`: more keys of each guest;
/// `rest`: more keys of the study.
pub fn study(measure: &str, guest: &str, rest: &str) -> String {
    format!(
        "study: guests\nquestion: q\nmeasure: {{ ping-pong: {{ {measure} }} }}\nrate: 200 Hz\n\
         place: {{ vm: {{ kernel: {{ package: {KERNEL} }}, accelerator: emulated, vcpus: 1{guest} }} }}\n{rest}\n"
    )
}
