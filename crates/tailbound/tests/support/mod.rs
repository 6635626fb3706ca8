//! Running the binary as a user does.
#![allow(dead_code)] // each test program uses a part

pub mod cluster;
pub mod containerd;
pub mod fastdds;
pub mod guests;
pub mod host;
pub mod libvirt;
pub mod processes;
pub mod ros2;
pub mod ssh;
pub mod tags;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory of its own for one test, with a state directory inside, gone at the end.
pub struct Bench {
    pub dir: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The binary, with its journal in this bench.
    pub fn tailbound(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailbound"));
        command.current_dir(self.dir.path()).env("TAILBOUND_STATE_DIR", self.path("state")).env("NO_COLOR", "1");
        command
    }

    pub fn study(&self, text: &str) -> PathBuf {
        let path = self.path("study.yaml");
        std::fs::write(&path, text).expect("the study is written");
        path
    }

    /// Runs a study into `record`; the output.
    pub fn run(&self, study: &str, settings: &[&str]) -> Output {
        self.run_into("record", study, settings)
    }

    /// Writes the record `name`.
    pub fn record(&self, name: &str, study: &str, settings: &[&str]) {
        succeeded(&self.run_into(name, study, settings));
    }

    /// The command with what makes it run a study into the record `name`.
    pub fn to_run(&self, mut command: Command, name: &str, study: &str) -> Command {
        command.arg("run").arg(self.study(study)).arg("--out").arg(self.path(name));
        command
    }

    /// Runs a study, given as its command, until its first trial is being measured; what it says goes on into the file
    /// `said`.
    pub fn measuring(&self, mut command: Command) -> Child {
        let said = std::fs::File::create(self.path("said")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(said).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.said().contains("trial 1/") {
            assert!(Instant::now() < deadline, "no trial began: {}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
        // Matched, and past its warm-up.
        std::thread::sleep(Duration::from_secs(3));
        child
    }

    /// What it has said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.path("said")).unwrap_or_default()
    }

    fn run_into(&self, name: &str, study: &str, settings: &[&str]) -> Output {
        let mut command = self.to_run(self.tailbound(), name, study);
        for setting in settings {
            command.args(["--set", setting]);
        }
        command.output().expect("the binary runs")
    }

    /// The record's manifest as JSON.
    pub fn manifest(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path("record/manifest.json")).unwrap()).unwrap()
    }

    /// The record's report as JSON.
    pub fn report(&self) -> Value {
        report(&self.tailbound(), &self.path("record"))
    }
}

/// A second of ping-pong over loopback, with more keys at the end.
pub fn ping_pong(driver: &str, rest: &str) -> String {
    format!(
        "study: tools\nquestion: q\nmeasure: {{ ping-pong: {{ duration: 1 s }} }}\nrate: 500 Hz\npayload: 64 B\n\
         driver: {driver}\npath: loopback\nplace: process\n{rest}\n"
    )
}

fn report(like: &Command, record: &Path) -> Value {
    let mut command = Command::new(like.get_program());
    for (key, value) in like.get_envs() {
        if let Some(value) = value {
            command.env(key, value);
        }
    }
    let output = command.arg("report").arg(record).args(["--format", "json"]).output().expect("the binary runs");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("no JSON ({e}): {}", String::from_utf8_lossy(&output.stderr)))
}

/// Exit code and standard error.
pub fn told(output: &Output) -> (i32, String) {
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Fails with everything that was said unless the exit code is 0.
pub fn succeeded(output: &Output) {
    let (code, text) = told(output);
    assert_eq!(code, 0, "{text}\n{}", String::from_utf8_lossy(&output.stdout));
}

/// The quantile `q` of a metric of condition 0.
pub fn quantile<'a>(report: &'a Value, metric: &str, q: f64) -> &'a Value {
    let quantiles = report["conditions"][0][metric]["quantiles"].as_array().expect("quantiles");
    quantiles.iter().find(|x| (x["q"].as_f64().unwrap() - q).abs() < 1e-12).expect("this quantile")
}

/// What a program of the machine prints.
pub fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).env("LC_ALL", "C").output().expect("util-linux");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Real-time policies are allowed here; says so where they are not.
pub fn may_be_real_time() -> bool {
    let may = Command::new("chrt").args(["-f", "1", "true"]).status().is_ok_and(|s| s.success());
    if !may {
        println!("skipped: real-time policies are not allowed here");
    }
    may
}
