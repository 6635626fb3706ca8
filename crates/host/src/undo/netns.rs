//! Entering the network namespace in which something was changed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tailbound_model::NetnsId;

/// The calling thread's network namespace.
pub(super) const OWN: &str = "/proc/thread-self/ns/net";

/// Runs a job in a namespace; `None` when there is no such namespace any more.
pub(super) fn inside<T: Send>(netns: &NetnsId, job: impl FnOnce() -> io::Result<T> + Send) -> io::Result<Option<T>> {
    if fs::metadata(OWN)?.ino() == netns.inode {
        return job().map(Some);
    }
    let Some(path) = find(netns) else { return Ok(None) };
    // A thread of its own: entering a namespace must not move the caller.
    let thread = || {
        let file = File::open(&path)?;
        if file.metadata()?.ino() != netns.inode {
            return Ok(None);
        }
        nix::sched::setns(&file, nix::sched::CloneFlags::CLONE_NEWNET)?;
        job().map(Some)
    };
    std::thread::scope(|scope| scope.spawn(thread).join())
        .map_err(|_| io::Error::other("the thread that entered the namespace ended unexpectedly"))?
}

/// A path through which a namespace can be entered: of a process that lives in it, or a name bound to it.
fn find(netns: &NetnsId) -> Option<PathBuf> {
    let is_it = |path: &PathBuf| fs::metadata(path).is_ok_and(|m| m.ino() == netns.inode);
    let processes = fs::read_dir("/proc").into_iter().flatten().filter_map(|entry| {
        let entry = entry.ok()?;
        entry.file_name().to_str()?.parse::<i32>().ok()?;
        Some(entry.path().join("ns/net"))
    });
    let named = fs::read_dir("/run/netns").into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    std::iter::once(PathBuf::from(&netns.path)).chain(processes).chain(named).find(is_it)
}
