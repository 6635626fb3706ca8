//! The executors of [`Undo`]: how each kind of change is taken back.
//!
//! In: one undo with the identity of what was changed. Out: what was done about it. A run's own teardown and the cleanup
//! after a crash use the same executors. Each is idempotent and looks at the identity first: a thing that changed hands
//! since is left alone, and the answer says so.

mod containers;
mod domain;
mod files;
mod interface;
mod netns;
mod nic;
mod pods;
mod process;
mod thread;

use crate::libvirt::Virsh;
use std::fmt;
use std::io;
use std::time::Duration;
use tailbound_model::{NetnsId, Undo};

pub use files::normalised;
pub(crate) use thread::as_asked;

/// What became of one undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// It was there and was taken back; a sentence for people.
    Did(String),
    /// There was nothing (left) to do.
    AlreadyGone,
    /// It is not ours any more (or never became so); why, as a sentence. Nobody will try again.
    LeftAlone(String),
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undone::Did(text) | Undone::LeftAlone(text) => f.write_str(text),
            Undone::AlreadyGone => f.write_str("nothing was left"),
        }
    }
}

/// An undo that failed and can be tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not {what}: {reason}")]
pub struct UndoError {
    /// What was to be done, e.g. `delete interface tb1-a`.
    pub what: String,
    /// Why it was not.
    pub reason: String,
}

/// Takes one change back. May block: up to 15 s for a process that will not end.
///
/// # Errors
/// The system refused; the entry must stay in the journal.
pub fn undo(undo: &Undo) -> Result<Undone, UndoError> {
    let result = match undo {
        Undo::EndProcess { process, what, token } => process::end_with_all(*process, what, token),
        Undo::EndProcessByToken { token } => process::end_by_token(token),
        Undo::DeleteInterface { name, ifindex, netns_inode } => interface::delete(name, *ifindex, *netns_inode),
        Undo::UnnamedNetns { .. } | Undo::HeldCpuLatency { .. } => Ok(Undone::AlreadyGone),
        Undo::RestoreSetting { path, before, set, netns } => {
            there(netns.as_ref(), || files::restore(path, before, set))
        }
        Undo::RestoreInterface { interface, ifindex, netns, setting, before, set } => {
            there(netns.as_ref(), || nic::restore(interface, *ifindex, *setting, *before, *set))
        }
        Undo::RestoreThread { thread, name, before, set } => thread::restore(*thread, name, before, set),
        Undo::DeletePod { cluster, token } => pods::delete("delete", cluster, token),
        Undo::DeleteService { cluster, token } => pods::delete("unserve", cluster, token),
        Undo::RemoveContainer { access, token } => containers::remove(access, token),
        Undo::RemoveDirectory { path, inode } => files::remove_directory(path, *inode),
        Undo::RestoreDomainPin { connect, name, uuid, process, pin, before, set } => {
            let domain = domain::Known { virsh: Virsh::new(connect.as_deref()), name, uuid };
            domain::restore_pin(&domain, *process, *pin, before, set)
        }
        Undo::StopDomain { connect, name, uuid, process, asked_ns, patience_ms } => {
            let domain = domain::Known { virsh: Virsh::new(connect.as_deref()), name, uuid };
            domain::stop(&domain, *process, *asked_ns, Duration::from_millis(*patience_ms))
        }
        Undo::RemovePartialRecord { path } => files::remove_partial(path),
    };
    result.map_err(|error: io::Error| UndoError { what: describe(undo), reason: error.to_string() })
}

/// In the namespace in which the change was made: one that nobody holds is gone, and the change with it.
fn there(netns: Option<&NetnsId>, job: impl FnOnce() -> io::Result<Undone> + Send) -> io::Result<Undone> {
    match netns {
        None => job(),
        Some(netns) => netns::inside(netns, job).map(|done| done.unwrap_or(Undone::AlreadyGone)),
    }
}

/// What an undo does, in the imperative, for lists and messages.
pub fn describe(undo: &Undo) -> String {
    match undo {
        Undo::EndProcess { process, what, .. } => format!("end process {} ({what})", process.pid),
        Undo::EndProcessByToken { token } => format!("end the process started with --run-token {token}"),
        Undo::DeleteInterface { name, .. } => format!("delete interface {name}"),
        Undo::UnnamedNetns { inode, what } => format!("let go of network namespace {inode} ({what})"),
        Undo::RestoreSetting { path, before, .. } => format!("write `{before}` back to {path}"),
        Undo::HeldCpuLatency { us } => format!("let go of the bound of {us} us in /dev/cpu_dma_latency"),
        Undo::RestoreThread { thread, name, before, .. } => {
            format!("give thread {} ({name}) `{before}` back", thread.pid)
        }
        Undo::RestoreInterface { interface, setting, before, .. } => {
            format!("set {} of {interface} back to `{}`", setting.word(), setting.text(*before))
        }
        Undo::DeletePod { token, .. } => format!("delete the pod with the label {token} from its cluster"),
        Undo::DeleteService { token, .. } => {
            format!("delete the Service with the label {token} from its cluster, and what serves it")
        }
        Undo::RemoveContainer { access, token } => {
            format!("remove the container with the label {token} ({})", access.client.program())
        }
        Undo::RemoveDirectory { path, .. } => format!("remove the directory {path}"),
        Undo::RestoreDomainPin { name, pin, before, .. } => format!("pin {pin} of domain {name} to CPU {before} again"),
        Undo::StopDomain { name, .. } => format!("shut domain {name} off"),
        Undo::RemovePartialRecord { path } => format!("remove the unfinished record {path}"),
    }
}
