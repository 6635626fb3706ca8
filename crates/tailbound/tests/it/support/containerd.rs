//! A containerd for one test: its content, its state and its socket are in one directory.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

pub struct Containerd {
    process: Child,
    socket: PathBuf,
    /// Namespace of containerd, and also the name of the cgroups that runc makes.
    namespace: String,
}

impl Containerd {
    /// Starts containerd for a test, and waits until it answers.
    pub fn start(directory: &Path) -> Containerd {
        let socket = directory.join("s");
        let config = directory.join("containerd.toml");
        let at = |name: &str| directory.join(name).display().to_string();
        let text = format!(
            "version = 2\nroot = {:?}\nstate = {:?}\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n\
             [grpc]\naddress = {socket:?}\n[plugins.\"io.containerd.internal.v1.opt\"]\npath = {:?}\n",
            at("root"),
            at("state"),
            at("opt")
        );
        fs::write(&config, text).unwrap();
        let log = fs::File::create(directory.join("containerd.log")).unwrap();
        let process = Command::new("containerd").arg("-c").arg(config).stdout(Stdio::null()).stderr(log).spawn();
        let process = process.expect("Debian's package containerd, which dev/setup test installs");
        let containerd = Containerd { process, socket, namespace: namespace(directory) };
        let deadline = Instant::now() + Duration::from_secs(30);
        while !containerd.ctr(&["version"]).status.success() {
            let log = || fs::read_to_string(directory.join("containerd.log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "containerd does not answer: {}", log());
            thread::sleep(Duration::from_millis(100));
        }
        containerd
    }

    /// Makes a command connect to this containerd, by environment variables.
    pub fn known_to(&self, command: &mut Command) {
        command.env("CONTAINERD_ADDRESS", &self.socket).env("CONTAINERD_NAMESPACE", &self.namespace);
    }

    /// Runs `ctr`, the client of containerd, with the given arguments.
    pub fn ctr(&self, args: &[&str]) -> Output {
        let mut command = Command::new("ctr");
        command.arg("--address").arg(&self.socket).args(["--namespace", &self.namespace]).args(args);
        command.output().expect("ctr of the package containerd")
    }
}

/// Name of a containerd namespace that only this test uses.
fn namespace(directory: &Path) -> String {
    let own = directory.file_name().unwrap().to_string_lossy().replace(|c: char| !c.is_ascii_alphanumeric(), "");
    format!("tailbound-{}-{own}", std::process::id())
}

impl Drop for Containerd {
    fn drop(&mut self) {
        // SAFETY: a child of this test, which is waited for below.
        unsafe { libc::kill(self.process.id() as i32, libc::SIGTERM) };
        let _ = self.process.wait();
        // runc leaves a cgroup with the name of the namespace, in which the cgroups of the containers were.
        for hierarchy in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            let _ = fs::remove_dir(hierarchy.path().join(&self.namespace));
        }
        let _ = fs::remove_dir(Path::new("/sys/fs/cgroup").join(&self.namespace));
    }
}
