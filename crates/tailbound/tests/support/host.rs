//! Settings of the host in tests: read by other programs, one test at a time, and always as found at the end.

use std::fs;
use std::process::{Child, Command, Stdio};

use super::Bench;
use super::processes::wait_for_measuring;

/// Held while a test changes the host; other test programs, also of other checkouts, wait.
pub struct Alone {
    _file: fs::File,
}

pub fn alone() -> Alone {
    let path = std::env::temp_dir().join("tailbound-tests-of-the-host.lock");
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path).expect("a lock file");
    file.lock().expect("the lock");
    Alone { _file: file }
}

/// A file under /proc that has its value again when the test is over, however it ends.
pub struct AsFound {
    pub path: &'static str,
    pub value: String,
}

impl AsFound {
    pub fn keep(path: &'static str) -> AsFound {
        AsFound { path, value: read(path) }
    }
    /// A number that it does not have.
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

/// What a program prints.
pub fn said(program: &str, args: &[&str]) -> String {
    let output =
        Command::new(program).args(args).env("LC_ALL", "C").output().unwrap_or_else(|e| panic!("{program}: {e}"));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub fn is_root() -> bool {
    // SAFETY: no argument, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

impl Bench {
    /// Begins a run, and waits until it measures.
    pub fn begin(&self, study: &str) -> Child {
        let study = self.study(study);
        let mut command = self.tailbound();
        command.arg("run").arg(study).arg("--out").arg(self.path("record"));
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        wait_for_measuring(child.id() as i32, "ping");
        child
    }

    /// What `tailbound lab WORD` says, and its exit code.
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
