//! Sets the scheduling of threads and locks the memory of the process, reads both back and compares them with the
//! request.
//!
//! Input: [`RoleScheduling`] of a study. Output: the thread with these settings, or an error with a remedy. The CPUs
//! are read back even if the system call succeeds, because the kernel silently drops CPUs.

mod error;
mod memory;

pub use error::ApplyError;
pub use memory::{LockError, lock_memory, set_timer_slack_1ns};

use crate::sched_call;
use std::io;
use tailbound_model::{CpuList, Policy, RoleScheduling};

/// CPUs on which the calling thread may run, in ascending order.
pub fn allowed_cpus() -> Vec<u32> {
    sched_call::get_affinity(0).map(|cpus| cpus.0.into_iter().collect()).unwrap_or_default()
}

/// CPUs that the calling thread may set for itself, in ascending order: the kernel reduces a list to the CPUs that the cpuset allows.
pub fn settable_cpus() -> Vec<u32> {
    let wanted = RoleScheduling { policy: None, cpus: Some(CpuList((0..4096).collect())) };
    // The thread ends with its CPUs.
    let on_a_thread = std::thread::spawn(move || enter(&wanted).map(|()| allowed_cpus()));
    on_a_thread.join().ok().and_then(Result::ok).unwrap_or_else(allowed_cpus)
}

/// CPUs to which a study can pin threads, in ascending order: those on which the calling thread may run, and isolated CPUs
/// (`isolcpus`), on which the kernel starts no program that does not ask for them.
pub fn pinnable_cpus() -> Vec<u32> {
    let isolated = std::fs::read_to_string("/sys/devices/system/cpu/isolated").unwrap_or_default();
    let isolated: CpuList = isolated.trim().parse().unwrap_or_default();
    let settable = settable_cpus();
    let mut cpus: CpuList = CpuList(allowed_cpus().into_iter().collect());
    cpus.0.extend(isolated.0.iter().filter(|cpu| settable.contains(cpu)));
    cpus.0.into_iter().collect()
}

/// Sets CPUs and policy of a thread (0 is the caller) and reads the CPUs back.
///
/// CPUs are set before the policy, because the kernel refuses to restrict the CPUs of a thread that has SCHED_DEADLINE.
///
/// # Errors
/// A setting was refused, see [`ApplyError`]; settings made before the error stay.
pub fn apply(tid: i32, wanted: &RoleScheduling) -> Result<(), ApplyError> {
    if let Some(cpus) = &wanted.cpus {
        set_affinity(tid, cpus)?;
    }
    if let Some(policy) = &wanted.policy {
        set_policy(tid, policy, false)?;
    }
    Ok(())
}

/// Sets CPUs and policy of the calling thread in a child process between fork and exec. This function therefore neither
/// allocates memory nor reads the settings back. Children of a deadline thread start with SCHED_OTHER, as the kernel
/// requires.
///
/// # Errors
/// The kernel refuses the CPUs or the policy.
pub fn enter(wanted: &RoleScheduling) -> io::Result<()> {
    if let Some(cpus) = &wanted.cpus {
        sched_call::set_affinity(0, cpus)?;
    }
    match &wanted.policy {
        Some(policy) => sched_call::set_policy(0, policy, matches!(policy, Policy::Deadline { .. })),
        None => Ok(()),
    }
}

/// Restricts a thread to CPUs and reads them back.
///
/// # Errors
/// A CPU does not exist or is outside the cpuset, or the thread has ended.
pub fn set_affinity(tid: i32, cpus: &CpuList) -> Result<(), ApplyError> {
    sched_call::set_affinity(tid, cpus).map_err(|e| ApplyError::for_affinity(tid, cpus, &e))?;
    let kept = sched_call::get_affinity(tid).map_err(|e| ApplyError::for_affinity(tid, cpus, &e))?;
    if kept == *cpus { Ok(()) } else { Err(ApplyError::dropped(cpus, &kept)) }
}

/// Sets the policy of a thread. With `reset_on_fork`, threads that this thread creates start with SCHED_OTHER.
///
/// # Errors
/// The privilege is missing, the control group has no real-time runtime, a parameter is out of range, or the thread has
/// ended.
pub fn set_policy(tid: i32, policy: &Policy, reset_on_fork: bool) -> Result<(), ApplyError> {
    sched_call::set_policy(tid, policy, reset_on_fork).map_err(|e| ApplyError::for_policy(tid, policy, &e))
}

/// Reads policy and CPUs of a thread from the kernel; thread 0 is the caller.
///
/// # Errors
/// The thread has ended, so its policy and CPUs cannot be read.
pub fn read_back(tid: i32) -> io::Result<(Policy, CpuList)> {
    Ok((sched_call::get_policy(tid)?.0, sched_call::get_affinity(tid)?))
}

/// Compares policy and CPUs of a thread with the request. If they differ or cannot be read, returns a sentence about
/// it for the user; the trial is then invalid.
pub fn verify(tid: i32, wanted: &RoleScheduling) -> Option<String> {
    let (policy, cpus) = match read_back(tid) {
        Ok(found) => found,
        Err(error) => return Some(format!("scheduling of thread {tid} could not be read back: {error}")),
    };
    match (&wanted.policy, &wanted.cpus) {
        (Some(asked), _) if *asked != policy => {
            Some(format!("thread {tid} should run with policy {asked}, but the kernel reports {policy}"))
        }
        (_, Some(asked)) if *asked != cpus => {
            Some(format!("thread {tid} should run on CPUs {asked}, but the kernel reports {cpus}"))
        }
        _ => None,
    }
}

/// Reads from a thread only the settings (policy, CPUs) that `asked` contains.
pub(crate) fn as_asked(tid: i32, asked: &RoleScheduling) -> io::Result<RoleScheduling> {
    let (policy, cpus) = read_back(tid)?;
    Ok(RoleScheduling { policy: asked.policy.map(|_| policy), cpus: asked.cpus.as_ref().map(|_| cpus) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test on a new thread, so that the scheduling set by the test ends with the thread.
    fn on_a_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn applied_settings_are_read_back() {
        on_a_thread(|| {
            let cpus = CpuList::one(allowed_cpus()[0]);
            let wanted = RoleScheduling { policy: Some(Policy::Batch { nice: 3 }), cpus: Some(cpus.clone()) };
            apply(0, &wanted).unwrap();
            assert_eq!(read_back(0).unwrap(), (Policy::Batch { nice: 3 }, cpus));
            assert_eq!(verify(0, &wanted), None);
            let other = RoleScheduling { policy: Some(Policy::Idle), cpus: None };
            assert_eq!(
                verify(0, &other).unwrap(),
                "thread 0 should run with policy idle, but the kernel reports batch nice 3"
            );
        });
    }

    #[test]
    fn a_real_time_policy_works_or_says_what_is_missing() {
        on_a_thread(|| match apply(0, &RoleScheduling { policy: Some(Policy::Fifo { priority: 5 }), cpus: None }) {
            Ok(()) => assert_eq!(read_back(0).unwrap().0, Policy::Fifo { priority: 5 }),
            Err(error) => assert!(error.to_string().contains("RLIMIT_RTPRIO"), "{error}"),
        });
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named_with_those_that_do() {
        on_a_thread(|| {
            let error = set_affinity(0, &CpuList::one(4000)).unwrap_err();
            assert!(matches!(error, ApplyError::NoSuchCpu { .. }), "{error:?}");
            assert!(error.to_string().starts_with("CPU 4000 does not exist"), "{error}");
            let mixed: CpuList = format!("{},4000", allowed_cpus()[0]).parse().unwrap();
            assert!(matches!(set_affinity(0, &mixed), Err(ApplyError::NoSuchCpu { .. })));
        });
    }

    #[test]
    fn parameters_out_of_range_and_dead_threads_are_told_apart() {
        on_a_thread(|| {
            let error = set_policy(0, &Policy::Fifo { priority: 100 }, false).unwrap_err();
            assert!(matches!(error, ApplyError::OutOfRange { .. }), "{error:?}");
            let error = set_policy(i32::MAX, &Policy::Idle, false).unwrap_err();
            assert!(matches!(error, ApplyError::Gone { .. }), "{error:?}");
        });
    }
}
