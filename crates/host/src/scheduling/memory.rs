//! Locks the memory of a measuring process and makes its timers exact.

use crate::process;
use nix::sys::resource::Resource;
use std::fs;
use std::io;

/// Error: the memory of this process could not be locked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "memory could not be locked ({reason}): RLIMIT_MEMLOCK is {limit} and CAP_IPC_LOCK is {}",
    if *capable { "present" } else { "missing" }
)]
pub struct LockError {
    /// Error of the kernel for the failed lock of the process's memory.
    pub reason: String,
    /// Value of the process's resource limit RLIMIT_MEMLOCK.
    pub limit: String,
    /// Whether the process has the capability CAP_IPC_LOCK.
    pub capable: bool,
}

impl LockError {
    /// What the user can do so that the process's memory can be locked.
    pub const REMEDY: &str = "run as root, grant the capability with `setcap cap_ipc_lock+ep` on the binary (a pod or \
                              container: `capabilities: [IPC_LOCK]`), or raise the limit in /etc/security/limits.d";
}

/// Locks all present and future memory of the process. Returns the number of locked bytes, read back from
/// /proc/self/status.
///
/// # Errors
/// Neither the resource limit nor CAP_IPC_LOCK allows locking.
pub fn lock_memory() -> Result<u64, LockError> {
    const CAP_IPC_LOCK: u32 = 14;
    let fail = |reason: String| LockError {
        reason,
        limit: process::limit_text(Resource::RLIMIT_MEMLOCK),
        capable: process::effective_capabilities().is_ok_and(|bits| bits & (1 << CAP_IPC_LOCK) != 0),
    };
    // SAFETY: mlockall takes flags only.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } != 0 {
        return Err(fail(io::Error::last_os_error().to_string()));
    }
    match locked_bytes() {
        Some(0) => Err(fail("the kernel accepted mlockall but locked no memory".into())),
        Some(bytes) => Ok(bytes),
        None => Err(fail("VmLck could not be read back from /proc/self/status".into())),
    }
}

fn locked_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmLck:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Sets the timer slack of the calling thread to 1 ns and returns the slack in ns that the kernel reports afterwards.
/// New threads inherit the slack. For threads with a real-time policy the kernel reports 0, because they have no slack.
///
/// # Errors
/// The timer slack read back is above 1 ns, or the kernel refuses the call.
pub fn set_timer_slack_1ns() -> io::Result<u64> {
    // SAFETY: prctl with integer arguments only.
    if unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64, 0u64, 0u64, 0u64) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    let slack = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0u64, 0u64, 0u64, 0u64) };
    match u64::try_from(slack) {
        Ok(slack @ 0..=1) => Ok(slack),
        Ok(slack) => Err(io::Error::other(format!("timer slack was set to 1 ns, but the kernel reports {slack} ns"))),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slack_is_one_nanosecond_for_this_thread() {
        std::thread::spawn(|| assert_eq!(set_timer_slack_1ns().unwrap(), 1)).join().unwrap();
    }

    #[test]
    fn the_error_names_limit_and_capability() {
        let error = LockError { reason: "Cannot allocate memory".into(), limit: "8388608".into(), capable: false };
        assert_eq!(
            format!("{error}; {}", LockError::REMEDY),
            "memory could not be locked (Cannot allocate memory): RLIMIT_MEMLOCK is 8388608 and CAP_IPC_LOCK is missing; \
             run as root, grant the capability with `setcap cap_ipc_lock+ep` on the binary (a pod or container: `capabilities: [IPC_LOCK]`), or raise the limit \
             in /etc/security/limits.d"
        );
    }
}
