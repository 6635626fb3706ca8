//! Carries out [`Undo`] entries of the journal: undoes each kind of change that Tailbound makes to a host.
//!
//! Input: one undo with the identity of the changed object. Output: what was done. A run's own teardown and the cleanup
//! after a crash use this code. Each undo is idempotent and checks the identity first: if somebody else has changed or
//! replaced the object since, the object is left alone, and the result says so.

mod containers;
mod domain;
mod files;
mod interface;
mod netns;
mod nic;
mod outcome;
mod pods;
mod preemption;
mod process;
mod queues;
mod stamping;
mod thread;

use crate::virsh::Virsh;
use std::io;
use std::time::Duration;
use tailbound_model::{NetnsId, Undo};

pub use outcome::{UndoError, Undone};

/// Undoes one change to the host. The call may block for up to 15 s while a process ends.
///
/// # Errors
/// The system refused the undo; the entry must then stay in the journal.
pub fn undo(undo: &Undo) -> Result<Undone, UndoError> {
    let result = match undo {
        Undo::EndProcess { process, what, token } => process::end_with_all(*process, what, token),
        Undo::EndProcessByToken { token } => process::end_by_token(token),
        Undo::DeleteInterface { name, ifindex, netns_inode } => interface::delete(name, *ifindex, *netns_inode),
        Undo::UnnamedNetns { .. } | Undo::HeldCpuLatency { .. } => Ok(Undone::AlreadyGone),
        Undo::RestoreSetting { path, before, set, netns } => {
            in_namespace(netns.as_ref(), || files::restore(path, before, set))
        }
        Undo::RestoreInterface { interface, ifindex, netns, setting, before, set } => {
            in_namespace(netns.as_ref(), || nic::restore(interface, *ifindex, *setting, *before, *set))
        }
        Undo::RestoreQueues { interface, ifindex, netns, before, kind, handle } => {
            in_namespace(Some(netns), || queues::restore((interface, *ifindex), before, (kind, *handle)))
        }
        Undo::RestoreStamping { interface, ifindex, netns, before, set } => {
            in_namespace(Some(netns), || stamping::restore((interface, *ifindex), *before, *set))
        }
        Undo::RestorePreemption { interface, ifindex, netns, before, set } => {
            in_namespace(Some(netns), || preemption::restore((interface, *ifindex), *before, *set))
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

/// Runs an undo in the network namespace in which the change was made. If this namespace does not exist any more, the
/// change does not exist any more either.
fn in_namespace(netns: Option<&NetnsId>, job: impl FnOnce() -> io::Result<Undone> + Send) -> io::Result<Undone> {
    match netns {
        None => job(),
        Some(netns) => netns::inside(netns, job).map(|done| done.unwrap_or(Undone::AlreadyGone)),
    }
}

/// Describes an undo in the imperative, such as `delete interface tb1-a`, for lists and messages.
pub fn describe(undo: &Undo) -> String {
    match undo {
        Undo::EndProcess { process, what, .. } => format!("end process {} ({what})", process.pid),
        Undo::EndProcessByToken { token } => format!("end the process started with --run-token {token}"),
        Undo::DeleteInterface { name, .. } => format!("delete interface {name}"),
        Undo::UnnamedNetns { inode, what } => format!("release network namespace {inode} ({what})"),
        Undo::RestoreSetting { path, before, .. } => format!("write `{before}` back to {path}"),
        Undo::HeldCpuLatency { us } => format!("release the bound of {us} us in /dev/cpu_dma_latency"),
        Undo::RestoreThread { thread, name, before, .. } => {
            format!("set thread {} ({name}) back to `{before}`", thread.pid)
        }
        Undo::RestoreInterface { interface, setting, before, .. } => {
            format!("set {} of {interface} back to `{}`", setting.word(), setting.text(*before))
        }
        Undo::RestoreQueues { interface, before, .. } => match before.first().filter(|root| !root.is_default()) {
            Some(root) => format!("give {interface} its queue discipline `{root}` back"),
            None => format!("give {interface} the default queue discipline of the kernel back"),
        },
        Undo::RestoreStamping { interface, before, .. } => {
            format!("set which frames the card of {interface} stamps back to `{before}`")
        }
        Undo::RestorePreemption { interface, before, .. } => {
            format!("set the frame preemption of {interface} back to `{before}`")
        }
        Undo::DeletePod { token, .. } => format!("delete the pod with the label {token} from the cluster"),
        Undo::DeleteService { token, .. } => {
            format!("delete the Service with the label {token} and the pod behind this Service from the cluster")
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
