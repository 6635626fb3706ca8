//! Programs that change settings of this host on their own: Debian's TuneD and irqbalance, which `dev/setup test` unpacks.

use super::Bench;
use super::host::signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running daemon, which ends when this value is dropped.
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

/// Directory of the unpacked programs; `None`, with a line that counts the test as skipped, if it does not exist.
pub fn unpacked() -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/daemons");
    match directory.canonicalize() {
        Ok(directory) => Some(directory),
        Err(_) => {
            println!("skipped: needs TuneD and irqbalance in target/daemons (dev/setup test)");
            None
        }
    }
}

impl Daemon {
    /// Starts TuneD with this profile, and waits until it has set everything. The profile and the files that TuneD writes are in a
    /// mount namespace of its own.
    pub fn tuned(bench: &Bench, unpacked: &Path, profile: &str) -> Daemon {
        let own = bench.path("tuned");
        fs::create_dir(&own).unwrap();
        fs::write(bench.path("tuned.conf"), profile).unwrap();
        let (unpacked, own, profile) = (unpacked.display(), own.display(), bench.path("tuned.conf"));
        let python = "/usr/lib/python3/dist-packages";
        let script = format!(
            "set -e; mount -t tmpfs tmpfs {own}; mkdir -p {own}/etc/tuned/tailbound {own}/work; cp {} {own}/etc/tuned/tailbound/\n\
             mount -t overlay overlay -o lowerdir={unpacked}/etc:/etc,upperdir={own}/etc,workdir={own}/work /etc\n\
             mount -t overlay overlay -o lowerdir={unpacked}{python}:{python} {python}\n\
             mount -t tmpfs tmpfs /run\n\
             exec {unpacked}/usr/sbin/tuned --no-dbus --no-socket --pid {own}/pid --profile tailbound",
            profile.display()
        );
        Daemon::start(bench, &script, "applied")
    }

    /// Starts irqbalance in a mount namespace in which it cannot move an interrupt.
    pub fn irqbalance(bench: &Bench, unpacked: &Path) -> Daemon {
        let script = format!(
            "set -e; mount --bind /proc/irq /proc/irq; mount -o remount,bind,ro /proc/irq\n\
             exec stdbuf -oL {}/usr/sbin/irqbalance --foreground --debug --interval 3600",
            unpacked.display()
        );
        Daemon::start(bench, &script, "Package 0")
    }

    /// Runs a script that ends with `exec`, and waits until the log has these words.
    fn start(bench: &Bench, script: &str, ready: &str) -> Daemon {
        let log = bench.path("daemon.log");
        let file = fs::File::create(&log).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        let child = command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        let mut daemon = Daemon { child, log };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !daemon.log().contains(ready) {
            let ended = daemon.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}: {}", daemon.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        daemon
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends the daemon as its service does. TuneD puts its settings back then.
    pub fn end(mut self) {
        signal(&self.child, libc::SIGTERM);
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(&self.child, libc::SIGTERM);
            let _ = self.child.wait();
        }
    }
}
