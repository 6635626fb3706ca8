//! Where a setting lies: on the host, or in a network namespace of an end.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use tailbound_model::NetnsId;

/// The host with the caller's network namespace, or with that of an end.
#[derive(Debug, Clone)]
pub struct Place {
    /// `ping` or `pong`; empty for the caller's.
    pub name: String,
    netns: Option<(Arc<OwnedFd>, NetnsId)>,
}

impl Place {
    /// Where the caller is.
    pub fn own() -> Place {
        Place { name: String::new(), netns: None }
    }

    /// The network namespace of an end; `path` leads to it when it needs no process to exist.
    ///
    /// # Errors
    /// The descriptor tells no inode.
    pub fn of_end(name: &str, netns: Arc<OwnedFd>, path: &str) -> io::Result<Place> {
        let inode = File::from(netns.try_clone()?).metadata()?.ino();
        let id = NetnsId { inode, path: path.to_owned() };
        Ok(Place { name: name.to_owned(), netns: Some((netns, id)) })
    }

    /// Identity of the namespace; `None` for the caller's.
    pub(super) fn id(&self) -> Option<NetnsId> {
        self.netns.as_ref().map(|(_, id)| id.clone())
    }

    /// The same namespace under another end's name.
    pub(super) fn is_same(&self, other: &Place) -> bool {
        self.id().map(|id| id.inode) == other.id().map(|id| id.inode)
    }

    /// Runs a job inside, on a thread of its own: entering a namespace must not move the caller.
    pub(super) fn inside<T: Send>(&self, job: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let Some((netns, _)) = &self.netns else { return job() };
        let thread = || {
            nix::sched::setns(netns, nix::sched::CloneFlags::CLONE_NEWNET)?;
            job()
        };
        std::thread::scope(|scope| scope.spawn(thread).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
