//! The processes that run on the node of a Kubernetes cluster for the cluster itself, and the CPUs that a control group
//! may use.
//!
//! CPU times are read from the clock of each process (clock_getcpuclockid(3)): in nanoseconds, including threads that
//! have ended, without privilege.

use crate::process::{cgroup_dir, process_id};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use std::fs;
use tailbound_model::{CpuList, NodeProcess};

/// Beginnings of process names (the kernel keeps 15 bytes of a name), and the program name that is reported for each
/// beginning.
const PROGRAMS: &[(&str, &str)] = &[
    ("kubelet", "kubelet"),
    ("k3s", "k3s"),
    ("rke2", "rke2"),
    ("kube-proxy", "kube-proxy"),
    ("containerd-shim", "shim"),
    ("conmon", "shim"),
    ("containerd", "containerd"),
    ("crio", "crio"),
    ("cri-dockerd", "cri-dockerd"),
    ("dockerd", "dockerd"),
    ("flannel", "flannel"),
    ("calico-node", "calico-node"),
    ("cilium-agent", "cilium-agent"),
    ("antrea-agent", "antrea-agent"),
    ("ovs-vswitchd", "ovs-vswitchd"),
    ("kube-router", "kube-router"),
    ("kindnetd", "kindnetd"),
];

/// The processes of the cluster that are visible to the calling process: all in the PID namespace of the node, few or
/// none in any other PID namespace.
pub fn processes() -> Vec<NodeProcess> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let program = program(fs::read_to_string(entry.path().join("comm")).ok()?.trim())?;
        // The process may end meanwhile.
        let time = clock_getcpuclockid(Pid::from_raw(pid)).ok()?.now().ok()?;
        let cpu_ns = time.tv_sec() * 1_000_000_000 + time.tv_nsec();
        let start_ticks = process_id(pid).ok()?.start_ticks;
        Some(NodeProcess { program: program.to_owned(), pid, start_ticks, cpu_ns })
    });
    found.collect()
}

fn program(comm: &str) -> Option<&'static str> {
    PROGRAMS.iter().find(|(front, _)| comm.starts_with(front)).map(|(_, program)| *program)
}

/// Online CPUs that this process's control group may use; `None` if the control group does not show them.
pub fn cpuset() -> Option<CpuList> {
    let dir = cgroup_dir("cpuset")?;
    let read = |file: &str| fs::read_to_string(dir.join(file)).ok();
    // The first file is of control groups version 2, the second of version 1.
    let text = read("cpuset.cpus.effective").or_else(|| read("cpuset.effective_cpus"))?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn processes_are_recognised_by_name_and_reported_with_their_cpu_time() {
        assert_eq!((program("containerd"), program("containerd-shim")), (Some("containerd"), Some("shim")));
        assert_eq!((program("kubelet"), program("bash")), (Some("kubelet"), None));
        // A copy of the shell under another name works for a while and then waits.
        let dir = tempfile::tempdir().unwrap();
        let fake = dir.path().join("kindnetd");
        fs::copy(fs::canonicalize("/bin/sh").unwrap(), &fake).unwrap();
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read line";
        let mut child = Command::new(&fake).args(["-c", work]).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let its = || processes().into_iter().find(|p| p.pid == pid);
        // Wait until the process sleeps.
        let state = || crate::process::Stat::read(&format!("/proc/{pid}/stat")).unwrap().state();
        while state() != 'S' {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let seen = its().unwrap();
        assert_eq!(seen.program, "kindnetd");
        assert!(seen.cpu_ns > 100_000, "{seen:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(its(), None);
    }

    #[test]
    fn the_cpuset_contains_all_allowed_cpus() {
        let Some(cpus) = cpuset() else { return println!("skipped: no control group shows CPUs here") };
        assert!(crate::allowed_cpus().iter().all(|cpu| cpus.0.contains(cpu)), "{cpus}");
    }
}
