//! Two hosts for one test: network namespaces that a veth pair joins, with Debian's ssh server in the second namespace.

use super::Bench;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const HERE: &str = "10.97.0.1";
const THERE: &str = "10.97.0.2";

pub struct TwoHosts {
    pub bench: Bench,
    /// Names of the two network namespaces, as `ip netns` lists them.
    pub names: [String; 2],
    server: Child,
}

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl TwoHosts {
    /// Makes two hosts. The monotonic clock of the second host is ahead of the first host's clock by `ahead_s` seconds.
    pub fn new(ahead_s: u32) -> TwoHosts {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|end| format!("tbssh-{}-{number}{end}", std::process::id()));
        let bench = Bench::new();
        let ip = |line: &str| run("ip", &line.split(' ').collect::<Vec<_>>());
        for name in &names {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        ip(&format!("-n {} link add x0 type veth peer name x0 netns {}", names[0], names[1]));
        for (name, address) in names.iter().zip([HERE, THERE]) {
            ip(&format!("-n {name} address add {address}/24 dev x0"));
            ip(&format!("-n {name} link set x0 up"));
        }
        for key in ["host", "user", "other"] {
            let file = bench.path(key).display().to_string();
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &file]);
        }
        let at = |name: &str| bench.path(name).display().to_string();
        fs::copy(bench.path("user.pub"), bench.path("authorized")).unwrap();
        // The ssh server needs this directory, which only the service of Debian makes.
        fs::create_dir_all("/run/sshd").unwrap();
        let config = format!(
            "ListenAddress {THERE}\nHostKey {}\nAuthorizedKeysFile {}\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\nSetEnv XDG_CACHE_HOME={}\n",
            at("host"),
            at("authorized"),
            at("cache")
        );
        fs::write(bench.path("sshd_config"), config).unwrap();
        let client = format!(
            "Host guest-1\n HostName {THERE}\nHost closed\n HostName {THERE}\n Port 4\nHost *\n User root\n \
             IdentitiesOnly yes\n IdentityFile {}\n UserKnownHostsFile {}\n GlobalKnownHostsFile none\n",
            at("user"),
            at("known")
        );
        fs::write(bench.path("ssh_config"), client).unwrap();
        // A program named ssh that calls the real ssh with the configuration of this test.
        fs::create_dir(bench.path("bin")).unwrap();
        let wrapper = bench.path("bin/ssh");
        fs::write(&wrapper, format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("ssh_config"))).unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
        let mut server = Command::new("nsenter");
        server.arg(format!("--net=/run/netns/{}", names[1]));
        if ahead_s > 0 {
            server.args(["unshare", "--time", "--monotonic", &ahead_s.to_string()]);
        }
        server.args(["/usr/sbin/sshd", "-D", "-e", "-f", &at("sshd_config")]);
        let log = fs::File::create(bench.path("sshd.log")).unwrap();
        let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let server = server.expect("Debian's package openssh-server, which dev/setup test installs");
        let hosts = TwoHosts { bench, names, server };
        hosts.knows("host");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !hosts.shell("true").status.success() {
            let log = fs::read_to_string(hosts.bench.path("sshd.log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "the ssh server does not answer: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
        hosts
    }

    /// Makes the first host trust this host key of the second host.
    pub fn knows(&self, key: &str) {
        let public = fs::read_to_string(self.bench.path(&format!("{key}.pub"))).unwrap();
        fs::write(self.bench.path("known"), format!("{THERE} {public}")).unwrap();
    }

    /// Runs a shell command on the second host, by ssh.
    pub fn shell(&self, text: &str) -> std::process::Output {
        self.on_first(Command::new(self.bench.path("bin/ssh"))).args(["guest-1", text]).output().unwrap()
    }

    /// Changes a command so that it runs in the network namespace of the first host.
    pub fn on_first(&self, command: Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net=/run/netns/{}", self.names[0])).arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            if let Some(value) = value {
                inside.env(key, value);
            }
        }
        if let Some(directory) = command.get_current_dir() {
            inside.current_dir(directory);
        }
        inside
    }

    /// The binary on the first host, with the ssh configuration of this test.
    pub fn tailbound(&self) -> Command {
        let mut command = self.on_first(self.bench.tailbound());
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.bench.path("bin").display()));
        command
    }

    /// The command that runs a study on the first host.
    pub fn run(&self, study: &str) -> Command {
        self.bench.to_run(self.tailbound(), "record", study)
    }

    /// Processes of the second host: process id and command line.
    fn all_there(&self) -> Vec<(i32, String)> {
        let Ok(namespace) = fs::metadata(format!("/run/netns/{}", self.names[1])) else { return Vec::new() };
        let its = PathBuf::from(format!("net:[{}]", namespace.ino()));
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let process = |entry: fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse::<i32>().ok()?;
            let there = fs::read_link(entry.path().join("ns/net")).ok()? == its;
            let line = fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
            there.then_some((pid, line))
        };
        processes.filter_map(process).collect()
    }

    /// Processes of the second host that are not its ssh server and have not ended.
    pub fn processes_there(&self) -> Vec<(i32, String)> {
        let mut all = self.all_there();
        all.retain(|(_, line)| !line.contains("sshd") && !line.is_empty());
        all
    }

    /// Waits until the second host has no process of a run.
    pub fn empty_within(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        loop {
            let left = self.processes_there();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "still there: {left:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        // Processes of this test only: the ssh server, its sessions, and the programs that the sessions started.
        for (pid, _) in self.all_there() {
            super::processes::kill(pid);
        }
        let _ = self.server.wait();
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}
