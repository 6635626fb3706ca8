//! Enters the network namespace in which the change to be undone was made.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tailbound_model::NetnsId;

/// Path of the file in /proc for the network namespace of the calling thread.
pub(super) const OWN: &str = "/proc/thread-self/ns/net";

/// Runs a function in a network namespace; returns `None` if the namespace does not exist any more.
pub(super) fn inside<T: Send>(netns: &NetnsId, job: impl FnOnce() -> io::Result<T> + Send) -> io::Result<Option<T>> {
    if fs::metadata(OWN)?.ino() == netns.inode {
        return job().map(Some);
    }
    let Some(path) = find(netns) else { return Ok(None) };
    // A new thread enters the namespace, so that the caller stays in its own.
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

/// Finds a path by which a network namespace can be entered: the path of a process in the namespace, or a name bound to
/// it.
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
