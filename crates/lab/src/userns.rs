//! Enters a user namespace in which network namespaces can be made without root, if the kernel allows it.
//!
//! The whole process enters the user namespace once, before it has several threads. User and group ids stay the same
//! (identity map), so access to files, the directory of the journal and the permissions of agents do not change; the
//! process only gains capabilities over namespaces made later. The process loses capabilities over the machine itself
//! (such as CAP_SYS_NICE from file capabilities), so the process enters only if a study needs it. See
//! user_namespaces(7).

use crate::error::{LabError, lack};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork, getegid, geteuid, pipe};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::OnceLock;
use tailbound_model::Problem;

/// Whether the process can make network namespaces, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Privilege {
    /// Network namespaces can be made: the process has the capabilities on this machine.
    Root,
    /// Network namespaces can be made: the process has the capabilities in a user namespace that it has entered.
    UserNamespace,
    /// Network namespaces cannot be made: the process does not have the capabilities.
    None {
        /// The reason why the process lacks the capabilities: the kernel setting that forbids user namespaces if it is
        /// known, or that no study needs a network namespace.
        reason: String,
    },
}

/// Bits of CAP_NET_ADMIN and CAP_SYS_ADMIN in the set of effective capabilities (capability.h).
const NEEDED: u64 = 1 << 12 | 1 << 21;

const SYSCTLS: &str = "/proc/sys";

/// Result of the only attempt to enter a user namespace.
static ATTEMPT: OnceLock<Privilege> = OnceLock::new();

/// Enters a user namespace if network namespaces must be made (see
/// [`LabSpec::makes_namespaces`](crate::LabSpec::makes_namespaces)) and the process lacks the capabilities. Must be
/// called before the process starts a thread. A second call returns the result of the first. If the kernel does not
/// permit it, the result is [`Privilege::None`], not an error.
///
/// # Errors
/// The process already has several threads, or the kernel refused the namespace although a child process could enter
/// one.
pub fn enter_if_needed(spec_needs_netns: bool) -> Result<Privilege, LabError> {
    if let Some(before) = ATTEMPT.get() {
        return Ok(before.clone());
    }
    if is_capable() {
        return Ok(Privilege::Root);
    }
    if !spec_needs_netns {
        return Ok(Privilege::None { reason: "the study needs no network namespace".into() });
    }
    let failed = |error| LabError::read("entering a user namespace", "this process", error);
    let threads = fs::read_dir("/proc/self/task").map_err(failed)?.count();
    if threads != 1 {
        let text = format!("a process with {threads} threads cannot enter a user namespace: it must have one thread");
        return Err(failed(io::Error::other(text)));
    }
    // A process that fails in the middle has lost privileges for good, so a child process tries first.
    let privilege = match try_in_child().map_err(failed)? {
        None => {
            enter().map_err(failed)?;
            Privilege::UserNamespace
        }
        Some(refusal) => Privilege::None { reason: why_refused(&refusal) },
    };
    Ok(ATTEMPT.get_or_init(|| privilege).clone())
}

/// Returns the problem that prevents making network namespaces, if there is a problem.
pub(crate) fn problem() -> Option<Problem> {
    if is_capable() {
        return None;
    }
    let reason = match ATTEMPT.get() {
        Some(Privilege::None { reason }) => reason.clone(),
        Some(_) => return None,
        None => forbidden_by(Path::new(SYSCTLS))?,
    };
    Some(lack(
        format!("network namespaces cannot be made: this user is not root, and {reason}"),
        "run as root, permit user namespaces, or use `path: loopback` with `place: process`",
    ))
}

fn is_capable() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    bits & NEEDED == NEEDED
}

fn enter() -> io::Result<()> {
    let (uid, gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // The kernel accepts a group map of an unprivileged process only after setgroups(2) is disabled.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Tries to enter a user namespace in a child process; returns the error message, or `None` if all steps worked.
fn try_in_child() -> io::Result<Option<String>> {
    let (reader, writer) = pipe()?;
    // SAFETY: the process has one thread (checked by the caller), so the child may do anything that the parent may.
    match unsafe { fork() }? {
        ForkResult::Child => {
            let result = enter().and_then(|()| unshare(CloneFlags::CLONE_NEWNET).map_err(io::Error::from));
            if let Err(error) = result {
                let _ = File::from(writer).write_all(error.to_string().as_bytes());
            }
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            drop(writer);
            let mut refusal = String::new();
            File::from(reader).read_to_string(&mut refusal)?;
            waitpid(child, None)?;
            Ok((!refusal.is_empty()).then_some(refusal))
        }
    }
}

fn why_refused(refusal: &str) -> String {
    forbidden_by(Path::new(SYSCTLS)).unwrap_or_else(|| {
        format!("the kernel refuses user namespaces ({refusal}), although no sysctl forbids them: a container or a security module forbids them")
    })
}

/// Finds the kernel setting that forbids user namespaces, or network namespaces in user namespaces; `None` if none is
/// found.
fn forbidden_by(sysctls: &Path) -> Option<String> {
    let settings = [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "1000"),
        ("user.max_net_namespaces", "0", "1000"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    settings.iter().find_map(|(name, forbids, permits)| {
        let value = fs::read_to_string(sysctls.join(name.replace('.', "/"))).ok()?;
        let forbidden = value.trim() == *forbids;
        forbidden.then(|| format!("the sysctl {name} is {forbids} (`sysctl -w {name}={permits}` permits it)"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden_with(name: &str, value: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name.replace('.', "/"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{value}\n")).unwrap();
        forbidden_by(dir.path())
    }

    #[test]
    fn the_setting_that_forbids_is_named_with_the_command_that_permits() {
        assert_eq!(
            forbidden_with("kernel.unprivileged_userns_clone", "0").unwrap(),
            "the sysctl kernel.unprivileged_userns_clone is 0 (`sysctl -w kernel.unprivileged_userns_clone=1` permits it)"
        );
        let apparmor = "kernel.apparmor_restrict_unprivileged_userns";
        assert!(forbidden_with(apparmor, "1").unwrap().contains(&format!("{apparmor} is 1 (`sysctl -w {apparmor}=0`")));
        assert!(forbidden_with("user.max_user_namespaces", "0").is_some());
        assert_eq!(forbidden_with(apparmor, "0"), None);
        assert_eq!(forbidden_with("user.max_user_namespaces", "96365"), None);
    }

    #[test]
    fn a_process_with_threads_is_refused_unless_it_needs_no_namespace() {
        // The test harness runs this on a second thread.
        match enter_if_needed(true) {
            Ok(privilege) => assert_eq!(privilege, Privilege::Root),
            Err(error) => assert!(error.to_string().contains("threads cannot enter a user namespace"), "{error}"),
        }
        assert!(enter_if_needed(false).is_ok());
    }
}
