//! Test: if a process is killed while it records by BPF, the kernel detaches its programs.

use crate::interrupts::{last_cpu, own_tid, watched};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tailbound_model::{CpuList, RecordedBy};

/// Ids of the BPF links of this process, which keep programs attached.
fn links() -> Vec<u32> {
    let open = std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    let link = |text: String| text.lines().find_map(|line| line.strip_prefix("link_id:")?.trim().parse().ok());
    open.filter_map(|entry| link(std::fs::read_to_string(entry.path()).ok()?)).collect()
}

/// Whether the kernel still has the BPF link with this id.
fn exists(link: u32) -> bool {
    const BPF_LINK_GET_FD_BY_ID: libc::c_long = 30;
    let attributes: [u32; 3] = [link, 0, 0];
    // SAFETY: attributes with their size.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_LINK_GET_FD_BY_ID, attributes.as_ptr(), 12) };
    if fd >= 0 {
        // SAFETY: the kernel has just returned this descriptor.
        unsafe { libc::close(fd as i32) };
    }
    fd >= 0
}

/// Part of the test below, in a process of its own: attaches, prints the ids of its links, and waits to be killed.
#[test]
#[ignore = "a part of another test"]
fn attached_until_killed() {
    let watch = watched(RecordedBy::Bpf, &[own_tid()], &CpuList::one(last_cpu()));
    println!("\nlinks {:?}", if watch.is_some() { links() } else { Vec::new() });
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_process_leaves_nothing_attached() {
    if watched(RecordedBy::Bpf, &[own_tid()], &CpuList::one(last_cpu())).is_none() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "killed::attached_until_killed", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("links ")).expect("the child attaches");
    let ids: Vec<u32> =
        line["links [".len()..].trim_end_matches(']').split(", ").map(|id| id.parse().unwrap()).collect();
    assert!(ids.len() >= 6 && ids.iter().all(|id| exists(*id)), "{ids:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel frees a link shortly after its last descriptor is closed.
    let until = Instant::now() + Duration::from_secs(10);
    while ids.iter().any(|id| exists(*id)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!ids.iter().any(|id| exists(*id)), "{ids:?}");
}
