//! Network namespaces: makes and opens them, and runs closures inside them.
//!
//! A job in another namespace runs on a new thread, which enters the namespace and ends with the job, because setns(2)
//! and unshare(2) move the calling thread, and the controller's threads must stay in their own namespace.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Path of the file in /proc for the network namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";
/// Directory in which `ip netns` keeps the names of network namespaces.
const NAMED: &str = "/run/netns";

/// A network namespace that a thread of this process can enter.
#[derive(Debug, Clone)]
pub struct NetNs {
    /// Descriptor of the namespace; `None` for the controller's own namespace, which is not entered and so needs no
    /// privilege.
    fd: Option<Arc<OwnedFd>>,
    inode: u64,
}

impl NetNs {
    /// Returns the network namespace of the calling thread.
    pub fn own() -> io::Result<NetNs> {
        Ok(NetNs { fd: None, inode: fs::metadata(OWN)?.ino() })
    }

    /// Makes a network namespace without a name, which exists as long as a descriptor or a process refers to it.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN; ENOSPC if the limit `user.max_net_namespaces` is reached.
    pub fn make() -> io::Result<NetNs> {
        let job = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open(OWN)
        };
        let file = start(None, job)?.join()??;
        let inode = file.metadata()?.ino();
        Ok(NetNs { fd: Some(Arc::new(file.into())), inode })
    }

    /// Opens an existing network namespace by its name in `ip netns`, or by its path if `name` contains a slash.
    ///
    /// # Errors
    /// The file does not exist, cannot be read, or is not a network namespace.
    pub fn open(name: &str) -> io::Result<NetNs> {
        let file = File::open(path_of(name))?;
        // The kind of file is checked now, because a plain file would fail only when a thread enters it.
        if !is_netns(file.as_fd()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is not a network namespace"));
        }
        let inode = file.metadata()?.ino();
        let own = fs::metadata(OWN)?.ino() == inode;
        Ok(NetNs { fd: (!own).then(|| Arc::new(file.into())), inode })
    }

    /// Inode of the network namespace, which identifies the namespace while it exists.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Whether this network namespace is the controller's own.
    pub fn is_own(&self) -> bool {
        self.fd.is_none()
    }

    /// Moves the calling thread, or the process between fork and exec, into the network namespace. Makes one system
    /// call and allocates nothing.
    pub fn enter(&self) -> io::Result<()> {
        match &self.fd {
            Some(fd) => setns(fd.as_fd(), CloneFlags::CLONE_NEWNET).map_err(io::Error::from),
            None => Ok(()),
        }
    }

    /// Descriptor of the network namespace; `None` for the controller's own namespace.
    pub fn descriptor(&self) -> Option<Arc<OwnedFd>> {
        self.fd.clone()
    }

    /// Number of the namespace's descriptor for netlink attributes; `None` for the controller's own namespace.
    pub(crate) fn raw_fd(&self) -> Option<RawFd> {
        self.fd.as_ref().map(|fd| fd.as_raw_fd())
    }
}

/// Path of the file of a network namespace that a study names.
pub fn path_of(name: &str) -> PathBuf {
    if name.contains('/') { PathBuf::from(name) } else { Path::new(NAMED).join(name) }
}

/// Sorted names of all network namespaces that `ip netns` lists.
pub fn names() -> Vec<String> {
    let entries = fs::read_dir(NAMED).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Finds the ids and names of processes whose main thread is in the network namespace with this inode. Processes that
/// this user may not read are left out.
pub fn processes_in(inode: u64) -> Vec<(i32, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let there = fs::metadata(entry.path().join("ns/net")).is_ok_and(|m| m.ino() == inode);
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        there.then(|| (pid, name.trim().to_owned()))
    });
    found.collect()
}

/// Number of the request NS_GET_NSTYPE of ioctl_nsfs(2), which returns the kind of a namespace.
const NS_GET_NSTYPE: libc::Ioctl = 0xb703 as libc::Ioctl;

fn is_netns(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: the request takes no argument and returns an integer; another kind of file answers ENOTTY.
    let kind = unsafe { libc::ioctl(fd.as_raw_fd(), NS_GET_NSTYPE) };
    kind == libc::CLONE_NEWNET
}

/// A job that runs inside a network namespace, on a thread of its own.
#[derive(Debug)]
pub struct Task<T> {
    thread: JoinHandle<io::Result<T>>,
    done: oneshot::Receiver<()>,
}

impl<T> Task<T> {
    /// Blocks until the job has ended. A panic of the job is passed on to the caller.
    ///
    /// # Errors
    /// The namespace could not be entered, so the job did not run.
    pub fn join(self) -> io::Result<T> {
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Waits until the job has ended, like [`Task::join`], without blocking the caller's executor.
    pub async fn wait(self) -> io::Result<T> {
        // An error means that the sender was dropped by a panic, which join passes on.
        let _ = self.done.await;
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Starts `job` inside a network namespace.
///
/// # Errors
/// No thread could be started.
pub fn run_in<T, F>(netns: &NetNs, job: F) -> io::Result<Task<T>>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    start(Some(netns.clone()), job)
}

fn start<T, F>(netns: Option<NetNs>, job: F) -> io::Result<Task<T>>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let (sender, done) = oneshot::channel();
    let thread = std::thread::Builder::new().name("tb-netns".into()).spawn(move || {
        if let Some(netns) = &netns {
            netns.enter()?;
        }
        let result = job();
        let _ = sender.send(());
        Ok(result)
    })?;
    Ok(Task { thread, done })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_the_directory_of_ip_netns_and_a_path_is_used_directly() {
        assert_eq!(path_of("blue"), Path::new("/run/netns/blue"));
        assert_eq!(path_of("/proc/1/ns/net"), Path::new("/proc/1/ns/net"));
    }

    #[test]
    fn files_that_are_not_network_namespaces_are_refused() {
        let error = NetNs::open("/proc/self/status").unwrap_err();
        assert_eq!(error.to_string(), "the file is not a network namespace");
        assert!(NetNs::open("/proc/self/ns/uts").is_err());
        assert_eq!(NetNs::open("nowhere-at-all").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_own_namespace_is_recognised_by_any_path_and_is_not_entered() {
        let own = NetNs::open("/proc/self/ns/net").unwrap();
        assert!(own.is_own());
        assert_eq!(own.inode(), NetNs::own().unwrap().inode());
        assert_eq!(run_in(&own, || 7).unwrap().join().unwrap(), 7);
    }

    #[test]
    #[should_panic(expected = "in the job")]
    fn a_panic_of_the_job_is_passed_on() {
        let _ = run_in(&NetNs::own().unwrap(), || panic!("in the job")).unwrap().join();
    }
}
