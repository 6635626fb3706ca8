//! Helper functions of the tests of labs.

use std::fs;
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tailbound_host::Journal;
use tailbound_lab::netns::{NetNs, run_in};
use tailbound_lab::{Lab, LabSpec, interfaces_here};
use tailbound_model::{Interface, PathFacts, PathSpec, PlaceSpec};

/// The reason for skipping a test: a feature that this machine does not have.
pub struct Skip(pub String);
/// One test case: returns if the test passed, and panics if it failed.
pub type Case = fn() -> Result<(), Skip>;

const STATE: &str = "TAILBOUND_STATE_DIR";
const NOBODY: u32 = 65_534;

/// Puts the journals of the tests into their own directory, not into the directory of the user.
pub fn use_own_state_dir() {
    let dir = tempfile::Builder::new().prefix("tb-labs-").tempdir().unwrap().keep();
    // SAFETY: main calls this before any thread exists.
    unsafe { std::env::set_var(STATE, dir) };
}

pub fn remove_own_state_dir() {
    let _ = fs::remove_dir_all(std::env::var_os(STATE).unwrap());
}

/// Runs this test program as the user nobody; returns true if all tests passed.
pub fn run_again_as_nobody(arguments: &[String]) -> bool {
    let dir = tempfile::tempdir().unwrap();
    // The build directory may be closed to other users.
    let program = dir.path().join("labs");
    fs::copy("/proc/self/exe", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    command.args(arguments).uid(NOBODY).gid(NOBODY).current_dir("/").env("TMPDIR", "/tmp");
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("test all (nobody) ... skipped: the program cannot be started as nobody: {error}");
            true
        }
    }
}

pub fn block_on<T>(job: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(job)
}

pub fn journal(name: &str) -> Journal {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Journal::create(&format!("{name}-{}-{number}", std::process::id())).unwrap()
}

pub fn made(path: PathSpec) -> LabSpec {
    LabSpec {
        path,
        ping: PlaceSpec::Netns,
        pong: PlaceSpec::Netns,
        publishers: 1,
        subscribers: 1,
        apart: false,
        vlan: None,
        gates: [None, None],
        shaping: [None, None],
        police: [None, None],
        launch: None,
    }
}

pub fn veth(mtu: Option<u32>) -> LabSpec {
    made(PathSpec::Veth { mtu, delay: None })
}

/// Builds a lab, does the path check and removes the lab; returns the facts of the path check.
pub fn probe_once(spec: &LabSpec) -> PathFacts {
    let journal = journal("probe");
    block_on(async {
        let lab = Lab::up(spec, journal.run(), &journal).await.unwrap();
        let facts = lab.probe().await.unwrap();
        lab.down(&journal).await.unwrap();
        journal.finish().unwrap();
        facts
    })
}

/// Reads the network interfaces of a network namespace.
pub fn interfaces_of(netns: &NetNs) -> Vec<Interface> {
    run_in(netns, || interfaces_here().unwrap()).unwrap().join().unwrap()
}

/// Starts a process that sleeps in the end's network namespace until it is ended.
pub fn sleeper(lab: &Lab, end: usize) -> Sleeper {
    let child = lab.command(end, Command::new("sleep")).arg("60").spawn().unwrap();
    let sleeper = Sleeper(child);
    let own = NetNs::own().unwrap().inode();
    // Until exec the process is a copy of this process, and at first it is in the namespace of this process.
    wait_until("the sleeper is in its namespace", || sleeper.netns().inode() != own);
    sleeper
}

pub struct Sleeper(std::process::Child);

impl Sleeper {
    pub fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    pub fn netns(&self) -> NetNs {
        NetNs::open(&self.path()).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs a command of the system. If the command fails, the test is skipped.
pub fn run(program: &str, arguments: &[&str]) -> Result<(), Skip> {
    let output = Command::new(program).args(arguments).output().map_err(|e| Skip(format!("{program}: {e}")))?;
    let text = String::from_utf8_lossy(&output.stderr);
    output
        .status
        .success()
        .then_some(())
        .ok_or_else(|| Skip(format!("{program} {}: {}", arguments.join(" "), text.trim())))
}

/// A named network namespace of a test, removed at the end of the test, also if the test failed.
pub struct NamedNetns(pub String);

impl NamedNetns {
    pub fn add(suffix: &str) -> Result<NamedNetns, Skip> {
        let name = format!("tbtest-{}-{suffix}", std::process::id());
        run("ip", &["netns", "add", &name])?;
        Ok(NamedNetns(name))
    }

    pub fn ip(&self, arguments: &str) -> Result<(), Skip> {
        run("ip", &["-n", &self.0].into_iter().chain(arguments.split(' ')).collect::<Vec<_>>())
    }

    pub fn place(&self) -> PlaceSpec {
        PlaceSpec::ExistingNetns(self.0.clone())
    }
}

impl Drop for NamedNetns {
    fn drop(&mut self) {
        let _ = run("ip", &["netns", "delete", &self.0]);
    }
}

/// Path of an executable copy of this test program.
pub fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}
