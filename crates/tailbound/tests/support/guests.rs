//! Ends in guests: a real-time kernel of Debian, emulated, so that it runs everywhere. What `dev/setup vm` brings.

use super::host::{Alone, alone, no_journal};
use super::{Bench, told};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

pub const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guests/rt.deb");

pub struct Guests {
    pub bench: Bench,
    /// Emulated guests want the CPUs for themselves.
    _alone: Alone,
}

impl Guests {
    pub fn new() -> Guests {
        Guests { bench: Bench::new(), _alone: alone() }
    }

    /// With one cache for all tests, so that a kernel is unpacked once; sockets in a directory of the test's own.
    pub fn tailbound(&self) -> Command {
        let mut command = self.bench.tailbound();
        let scratch = self.bench.path("scratch");
        fs::create_dir_all(&scratch).unwrap();
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests")).env("TMPDIR", scratch);
        command
    }

    pub fn run(&self, study: &str) -> Command {
        self.bench.to_run(self.tailbound(), "record", study)
    }

    /// The report of a study that is run to its end, and valid.
    pub fn valid(&self, study: &str) -> Value {
        let (code, text) = told(&self.run(study).output().unwrap());
        assert_eq!(code, 0, "{text}");
        let report = self.bench.report();
        assert_eq!(report["status"], "valid", "{}", report["warnings"]);
        report
    }

    pub fn measuring(&self, study: &str) -> Child {
        self.bench.measuring(self.run(study))
    }

    /// Process ids of programs whose name begins so, of this test.
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

    /// QEMU of the guest of an end.
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

/// Two guests, one for each end: what is measured, further keys of a guest, further keys of the study.
pub fn study(measure: &str, guest: &str, rest: &str) -> String {
    format!(
        "study: guests\nquestion: q\nmeasure: {{ ping-pong: {{ {measure} }} }}\nrate: 200 Hz\n\
         place: {{ vm: {{ kernel: {{ package: {KERNEL} }}, accelerator: emulated, vcpus: 1{guest} }} }}\n{rest}\n"
    )
}
