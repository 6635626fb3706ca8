//! A libvirtd for one test, in a network namespace and in a mount namespace with its own directories and without
//! /dev/kvm.
//!
//! /dev/kvm is hidden, because libvirtd probes QEMU again for each answer if /dev/kvm exists but KVM does not work. The
//! control groups of this libvirtd do not use the controller `cpu`: on a kernel with RT_GROUP_SCHED, groups of this
//! controller have no real-time runtime.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

const DEVICES: [&str; 8] = ["null", "zero", "full", "random", "urandom", "tty", "net/tun", "pts"];
const CONFIGURATION: &str = "namespaces = [ ]\ncgroup_controllers = [ \"cpuset\", \"cpuacct\" ]\nuser = \"root\"\ngroup = \"root\"\n\
                             security_driver = \"none\"\nstdio_handler = \"file\"\n";

pub struct Libvirt {
    daemon: Child,
    directory: PathBuf,
    /// Control groups of the test's libvirtd that did not exist before the test, and that are removed at the end of the
    /// test.
    groups: Vec<PathBuf>,
}

/// Runs a test on a thread in the namespaces of libvirtd, so that the test and its child processes can connect to
/// libvirtd.
pub fn with_libvirt(directory: &Path, test: impl FnOnce(&Libvirt) + Send) {
    let job = || {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET).expect("namespaces for root");
        test(&Libvirt::start(directory));
    };
    thread::scope(|scope| scope.spawn(job).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn bind(from: &Path, to: &str) {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .unwrap_or_else(|e| panic!("{} on {to}: {e}", from.display()));
}

impl Libvirt {
    fn start(directory: &Path) -> Libvirt {
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_PRIVATE | MsFlags::MS_REC, None::<&str>).unwrap();
        let at = |name: &str| directory.join(name);
        // Debian's libvirtd wants a user of this name for QEMU, although the tests run QEMU as root.
        for (name, line) in [
            ("passwd", "libvirt-qemu:x:64055:64055::/:/bin/false\n"),
            ("group", "libvirt-qemu:x:64055:\nkvm:x:64056:\n"),
        ] {
            let file = format!("/etc/{name}");
            fs::write(at(name), fs::read_to_string(&file).unwrap() + line).unwrap();
            bind(&at(name), &file);
        }
        fs::create_dir_all(at("dev/net")).unwrap();
        for device in DEVICES.into_iter().filter(|d| Path::new("/dev").join(d).exists()) {
            let place = at("dev").join(device);
            if device == "pts" { fs::create_dir(&place) } else { fs::write(&place, "") }.unwrap();
            bind(&Path::new("/dev").join(device), place.to_str().unwrap());
        }
        symlink("pts/ptmx", at("dev/ptmx")).unwrap();
        fs::create_dir(at("dev/shm")).unwrap();
        for (name, place) in [
            ("dev", "/dev"),
            ("run", "/run"),
            ("etc", "/etc/libvirt"),
            ("lib", "/var/lib"),
            ("cache", "/var/cache"),
            ("log", "/var/log"),
        ] {
            fs::create_dir_all(at(name)).unwrap();
            bind(&at(name), place);
        }
        fs::write("/etc/libvirt/qemu.conf", CONFIGURATION).unwrap();
        fs::write("/etc/libvirt/libvirtd.conf", "auth_unix_rw = \"none\"\nunix_sock_group = \"root\"\n").unwrap();
        let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|e| e.path());
        let groups = hierarchies.chain([PathBuf::from("/sys/fs/cgroup")]).map(|d| d.join("machine"));
        let groups = groups.filter(|g| !g.exists()).collect();
        let log = fs::File::create(at("libvirtd.log")).unwrap();
        let daemon = Command::new("libvirtd").stdout(Stdio::null()).stderr(log).spawn();
        let daemon = daemon.expect("Debian's package libvirt-daemon, which dev/setup vm installs");
        let libvirt = Libvirt { daemon, directory: directory.to_owned(), groups };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !Command::new("virsh").arg("version").output().expect("package libvirt-clients").status.success() {
            let log = || fs::read_to_string(at("libvirtd.log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "libvirtd does not answer: {}", log());
            thread::sleep(Duration::from_millis(100));
        }
        libvirt
    }

    /// Runs virsh with the given arguments, and returns its standard output.
    pub fn virsh(&self, words: &[&str]) -> String {
        let output = Command::new("virsh").arg("--quiet").args(words).output().unwrap();
        super::succeeded(&output);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Defines a libvirt domain from its XML description.
    pub fn define(&self, xml: &str) {
        let file = self.directory.join("domain.xml");
        fs::write(&file, xml).unwrap();
        self.virsh(&["define", "--validate", file.to_str().unwrap()]);
    }

    /// Process id of the QEMU that runs a libvirt domain; `None` if the domain does not run.
    pub fn process(&self, name: &str) -> Option<i32> {
        fs::read_to_string(format!("/run/libvirt/qemu/{name}.pid")).ok()?.trim().parse().ok()
    }
}

impl Drop for Libvirt {
    fn drop(&mut self) {
        let files = fs::read_dir("/run/libvirt/qemu").into_iter().flatten().flatten().map(|e| e.path());
        for file in files.filter(|f| f.extension().is_some_and(|e| e == "pid") && !f.ends_with("driver.pid")) {
            let pid = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
            if let Some(process) = pid.and_then(|pid| tailbound_host::process_id(pid).ok()) {
                let _ = tailbound_host::process::end(process, Duration::from_secs(5));
            }
        }
        super::host::signal(&self.daemon, libc::SIGTERM);
        let _ = self.daemon.wait();
        self.groups.iter().for_each(|group| remove(group));
    }
}

/// Removes a cgroup and all cgroups below it.
fn remove(group: &Path) {
    let inner = fs::read_dir(group).into_iter().flatten().flatten().map(|e| e.path());
    inner.filter(|path| path.is_dir()).for_each(|path| remove(&path));
    let _ = fs::remove_dir(group);
}
