//! What a node of a cluster runs for the cluster, and what a control group was given of its CPUs.
//!
//! CPU time is that of the process's own clock (clock_getcpuclockid(3)): to the nanosecond, with threads that have ended,
//! and told of every process that is seen, to whoever asks.

use crate::process::{cgroup_dir, process_id};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use std::fs;
use tailbound_model::{CpuList, NodeProcess};

/// Names of processes, of which the kernel keeps 15 octets, by their fronts; and the program that they are told as.
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

/// The processes of a cluster that are seen from here: all of the node in its process namespace, else none or few.
pub fn processes() -> Vec<NodeProcess> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let program = program(fs::read_to_string(entry.path().join("comm")).ok()?.trim())?;
        // It may end meanwhile.
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

/// CPUs of this process's control group: those that it was given, less those that are offline. `None` where it does not
/// tell.
pub fn cpuset() -> Option<CpuList> {
    let dir = cgroup_dir("cpuset")?;
    let read = |file: &str| fs::read_to_string(dir.join(file)).ok();
    // Version 2, and version 1.
    let text = read("cpuset.cpus.effective").or_else(|| read("cpuset.effective_cpus"))?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn processes_are_known_by_their_names_and_told_with_their_cpu_time() {
        assert_eq!((program("containerd"), program("containerd-shim")), (Some("containerd"), Some("shim")));
        assert_eq!((program("kubelet"), program("bash")), (Some("kubelet"), None));
        // A shell of another name that has worked for a while and then waits.
        let dir = tempfile::tempdir().unwrap();
        let fake = dir.path().join("kindnetd");
        fs::copy(fs::canonicalize("/bin/sh").unwrap(), &fake).unwrap();
        let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; read line";
        let mut child = Command::new(&fake).args(["-c", work]).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        let its = || processes().into_iter().find(|p| p.pid == pid);
        // Until it waits.
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
    fn the_cpuset_holds_all_that_may_be_used() {
        let Some(cpus) = cpuset() else { return println!("skipped: no control group tells CPUs here") };
        assert!(crate::allowed_cpus().iter().all(|cpu| cpus.0.contains(cpu)), "{cpus}");
    }
}
