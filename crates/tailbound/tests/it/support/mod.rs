//! Helpers for all tests: run the binary as a user does.
#![allow(dead_code, reason = "without the feature system-tests much of it is unused")]

pub mod chapter;
pub mod cluster;
pub mod containerd;
pub mod daemons;
pub mod fastdds;
pub mod guests;
pub mod host;
pub mod libvirt;
pub mod processes;
pub mod rcl;
pub mod rclcpp;
pub mod ros2;
pub mod rust_driver;
pub mod security;
pub mod ssh;
pub mod studies;
pub mod tags;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A directory for one test with a state directory inside. The directory is removed when this value is dropped.
pub struct Bench {
    pub dir: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    /// Removes the directory `record`, if the last run left one: a run that measured nothing leaves nothing.
    pub fn remove_record(&self) {
        match std::fs::remove_dir_all(self.path("record")) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            removed => removed.unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The binary under test, with its journal in the directory of the test.
    pub fn tailbound(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tailbound"));
        command.current_dir(self.dir.path()).env("TAILBOUND_STATE_DIR", self.path("state")).env("NO_COLOR", "1");
        command
    }

    /// Writes a study to a file. Without a key `quiet` in the study, trials have no quiet interval: only the tests of
    /// the path check need the interval, which takes up to a second of each trial. Without a key `attribution`, no events
    /// are recorded: finding the level `auto` takes half a second of each run.
    pub fn study(&self, text: &str) -> PathBuf {
        let path = self.path("study.yaml");
        let mut text = text.to_owned();
        for key in ["quiet", "attribution"] {
            if text.contains("measure:") && !text.contains(&format!("{key}:")) {
                text.push_str(&format!("\n{key}: off\n"));
            }
        }
        std::fs::write(&path, text).expect("the study is written");
        path
    }

    /// Runs a study into `record`, and returns its output.
    pub fn run(&self, study: &str, settings: &[&str]) -> Output {
        self.run_into("record", study, settings)
    }

    /// Runs a study into the record `name`; the run must succeed.
    pub fn record(&self, name: &str, study: &str, settings: &[&str]) {
        succeeded(&self.run_into(name, study, settings));
    }

    /// Adds to a command the arguments with which it runs a study into the record `name`.
    pub fn to_run(&self, mut command: Command, name: &str, study: &str) -> Command {
        command.arg("run").arg(self.study(study)).arg("--out").arg(self.path(name));
        command
    }

    /// Starts a command that runs a study into `record`, and returns when the ends measure in the first trial. The
    /// standard error of the command goes into a file: `stderr`.
    pub fn measuring(&self, command: Command) -> Child {
        let child = self.running(command, "measuring begins");
        // The controller does not see messages while the ends measure; some are sent in this time.
        std::thread::sleep(Duration::from_millis(500));
        child
    }

    /// Starts a command as `measuring` does, and returns when the controller has written the text `event` into its log.
    pub fn running(&self, mut command: Command, event: &str) -> Child {
        let printed = std::fs::File::create(self.path("stderr")).unwrap();
        command.env("TAILBOUND_LOG", "debug");
        let mut child = command.stdout(Stdio::null()).stderr(printed).spawn().unwrap();
        self.wait_until(event, 1, || child.try_wait().unwrap().is_none());
        child
    }

    /// Waits until the log of the controller of the run into `record` contains `event` at least `times` times.
    pub fn wait_for_event(&self, event: &str, times: usize) {
        self.wait_until(event, times, || true);
    }

    fn wait_until(&self, event: &str, times: usize, mut runs: impl FnMut() -> bool) {
        let log = self.path("record/logs/controller.log");
        let deadline = Instant::now() + Duration::from_secs(120);
        while std::fs::read_to_string(&log).unwrap_or_default().matches(event).count() < times {
            assert!(runs(), "the command ended before {event:?}: {}", self.stderr());
            assert!(Instant::now() < deadline, "not {times} times {event:?} in the log: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The diagnostics log `name` of the record `record`; empty if there is none.
    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.path("record/logs").join(name)).unwrap_or_default()
    }

    /// Whether the events at this end were recorded by BPF in trial 0 of the record `record`; if not, the test is skipped.
    pub fn is_recorded_by_bpf(&self, end: &str) -> bool {
        let seen = std::fs::read(self.path(&format!("record/switches/0-{end}.json"))).unwrap();
        let seen: tailbound_model::Switches = serde_json::from_slice(&seen).unwrap();
        let is = seen.recorder.is_some_and(|recorder| recorder.by == tailbound_model::RecordedBy::Bpf);
        if !is {
            println!("skipped: BPF cannot be used here");
        }
        is
    }

    /// Starts a run of this study file into `record`; standard error is written to the file that [`Bench::stderr`] reads.
    pub fn start(&self, study: &Path) -> Child {
        let printed = std::fs::File::create(self.path("stderr")).unwrap();
        let mut command = self.tailbound();
        command.arg("run").arg(study).arg("--out").arg(self.path("record"));
        command.stdout(Stdio::null()).stderr(printed).spawn().unwrap()
    }

    /// Standard error, so far, of the command that `running` started.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    fn run_into(&self, name: &str, study: &str, settings: &[&str]) -> Output {
        let mut command = self.to_run(self.tailbound(), name, study);
        for setting in settings {
            command.args(["--set", setting]);
        }
        command.output().expect("the binary runs")
    }

    /// The manifest of the record `record`, as JSON.
    pub fn manifest(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path("record/manifest.json")).unwrap()).unwrap()
    }

    /// The report of the record `record`, as JSON.
    pub fn report(&self) -> Value {
        report(&self.tailbound(), &self.path("record"))
    }
}

/// A study of one second of ping-pong over loopback, with further keys at its end.
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

/// Exit code and standard error in the output of a program that has ended.
pub fn exit_and_stderr(output: &Output) -> (i32, String) {
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Fails with all output of the program unless its exit code is 0.
pub fn succeeded(output: &Output) {
    let (code, text) = exit_and_stderr(output);
    assert_eq!(code, 0, "{text}\n{}", String::from_utf8_lossy(&output.stdout));
}

/// Finds the quantile `q` of a metric of condition 0 in a report.
pub fn quantile<'a>(report: &'a Value, metric: &str, q: f64) -> &'a Value {
    let quantiles = report["conditions"][0][metric]["quantiles"].as_array().expect("quantiles");
    quantiles.iter().find(|x| (x["q"].as_f64().unwrap() - q).abs() < 1e-12).expect("this quantile")
}

/// Standard output of a program of the machine, without white space at both ends.
pub fn output_of(program: &str, args: &[&str]) -> String {
    let output =
        Command::new(program).args(args).env("LC_ALL", "C").output().unwrap_or_else(|e| panic!("{program}: {e}"));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Whether this host allows real-time policies; prints a line if it does not.
pub fn may_be_real_time() -> bool {
    let may = Command::new("chrt").args(["-f", "1", "true"]).status().is_ok_and(|s| s.success());
    if !may {
        println!("skipped: real-time policies are not allowed here");
    }
    may
}

/// Checks that every condition of the record `record` has 300 answered messages and that the record is valid, and
/// returns the report. `what` is printed with a failure.
pub fn all_answered(bench: &Bench, what: &str) -> Value {
    let report = bench.report();
    for condition in report["conditions"].as_array().expect("conditions") {
        let (name, counts) = (&condition["name"], &condition["counts"]);
        assert_eq!(counts["answered"].as_u64(), Some(300), "{what}: {name}: {counts} {}", report["findings"]);
    }
    assert_eq!(report["status"], "valid", "{what}: {}", report["warnings"]);
    report
}
