//! Processes of a network namespace, and their CPU time.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Number of the network namespace of a process, whose directory in /proc is given; `None` = it has ended, or belongs to somebody else.
pub fn namespace_of(process: &Path) -> Option<u64> {
    fs::metadata(process.join("ns/net")).ok().map(|file| file.ino())
}

/// Number of the network namespace of the calling thread.
///
/// # Errors
/// /proc is not mounted.
pub fn own_namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/thread-self/ns/net")?.ino())
}

/// Ids of all processes.
pub fn process_ids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The CPU time until now of each thread of the other processes in the network namespace of the calling thread, ns (first number of
/// /proc/PID/task/TID/schedstat).
///
/// # Errors
/// The kernel does not count it (CONFIG_SCHED_INFO), or /proc is not mounted.
pub fn namespace_cpu() -> io::Result<BTreeMap<i32, u64>> {
    let (namespace, own) = (own_namespace()?, std::process::id() as i32);
    fs::metadata("/proc/thread-self/schedstat")?;
    let mut all = BTreeMap::new();
    for pid in process_ids().into_iter().filter(|pid| *pid != own) {
        let process = Path::new("/proc").join(pid.to_string());
        if namespace_of(&process) != Some(namespace) {
            continue;
        }
        let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        all.extend(threads.filter_map(|thread| {
            // Threads end meanwhile.
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            let ns: u64 = text.split(' ').next()?.parse().ok()?;
            Some((thread.file_name().to_str()?.parse::<i32>().ok()?, ns))
        }));
    }
    Ok(all)
}
