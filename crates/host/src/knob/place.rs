//! The place of a host setting: the host, or the network namespace of an end.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use tailbound_model::NetnsId;

/// The host as seen from the network namespace of the caller or of an end.
#[derive(Debug, Clone)]
pub struct Place {
    /// Name of the end to which the network namespace belongs, such as `ping`; empty for the caller's namespace.
    pub name: String,
    netns: Option<(Arc<OwnedFd>, NetnsId)>,
}

impl Place {
    /// The network namespace of the caller as the place at which host settings are read and made.
    pub fn own() -> Place {
        Place { name: String::new(), netns: None }
    }

    /// The place with the network namespace of an end. If the namespace exists without a process in it, `path` is the
    /// namespace's file, else `path` is empty.
    ///
    /// # Errors
    /// The inode of the namespace cannot be read.
    pub fn of_end(name: &str, netns: Arc<OwnedFd>, path: &str) -> io::Result<Place> {
        let inode = File::from(netns.try_clone()?).metadata()?.ino();
        let id = NetnsId { inode, path: path.to_owned() };
        Ok(Place { name: name.to_owned(), netns: Some((netns, id)) })
    }

    /// Identity of the place's network namespace; `None` for the caller's namespace.
    pub(super) fn id(&self) -> Option<NetnsId> {
        self.netns.as_ref().map(|(_, id)| id.clone())
    }

    /// Identity of the place's network namespace, also of the caller's.
    ///
    /// # Errors
    /// /proc is not available.
    pub(super) fn network(&self) -> io::Result<NetnsId> {
        self.id().map_or_else(|| Ok(NetnsId { inode: crate::namespace::own_namespace()?, path: String::new() }), Ok)
    }

    /// Whether both places have the same network namespace; the names of their ends can differ.
    pub(super) fn is_same(&self, other: &Place) -> bool {
        self.id().map(|id| id.inode) == other.id().map(|id| id.inode)
    }

    /// Whether the network namespace of the place is the one of the calling thread.
    pub(super) fn is_callers(&self) -> bool {
        self.id().is_none_or(|id| crate::namespace::own_namespace().is_ok_and(|own| id.inode == own))
    }

    /// Runs a function inside the network namespace of the place, on a new thread, so that the caller stays in its own
    /// namespace.
    pub(super) fn inside<T: Send>(&self, job: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let Some((netns, _)) = &self.netns else { return job() };
        let thread = || {
            nix::sched::setns(netns, nix::sched::CloneFlags::CLONE_NEWNET)?;
            job()
        };
        std::thread::scope(|scope| scope.spawn(thread).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
