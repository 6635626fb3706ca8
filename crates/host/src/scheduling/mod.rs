//! Scheduling of threads and memory of the process: applied, read back, compared with what was asked.
//!
//! In: [`RoleScheduling`] of a study. Out: the thread set up, or an error that names the cause a user can mend. Nothing is
//! ever taken to have worked because the call returned 0: the kernel drops CPUs silently and lends policies.

mod error;
mod memory;

pub use error::ApplyError;
pub use memory::{LockError, lock_memory, set_timer_slack_1ns};

use crate::sched_call;
use std::io;
use tailbound_model::{CpuList, Policy, RoleScheduling};

/// CPUs that the calling thread may run on, ascending.
pub fn allowed_cpus() -> Vec<u32> {
    sched_call::get_affinity(0).map(|cpus| cpus.0.into_iter().collect()).unwrap_or_default()
}

/// Gives a thread (0 = the caller) its CPUs and its policy and reads both back.
///
/// CPUs come first: SCHED_DEADLINE is refused on a thread that is confined afterwards, and allowed before.
///
/// # Errors
/// See [`ApplyError`]; what was set before the error stays set.
pub fn apply(tid: i32, wanted: &RoleScheduling) -> Result<(), ApplyError> {
    if let Some(cpus) = &wanted.cpus {
        set_affinity(tid, cpus)?;
    }
    if let Some(policy) = &wanted.policy {
        set_policy(tid, policy, false)?;
    }
    Ok(())
}

/// Gives the calling thread its CPUs and its policy, for a child between fork and exec: neither allocates nor reads back.
/// Children of a deadline thread begin as time-sharing ones, as the kernel wants it.
///
/// # Errors
/// The kernel's word.
pub fn enter(wanted: &RoleScheduling) -> io::Result<()> {
    if let Some(cpus) = &wanted.cpus {
        sched_call::set_affinity(0, cpus)?;
    }
    match &wanted.policy {
        Some(policy) => sched_call::set_policy(0, policy, matches!(policy, Policy::Deadline { .. })),
        None => Ok(()),
    }
}

/// Confines a thread to CPUs; an error when the kernel kept fewer than asked.
///
/// # Errors
/// A CPU that does not exist or lies outside the cpuset; the thread is gone.
pub fn set_affinity(tid: i32, cpus: &CpuList) -> Result<(), ApplyError> {
    sched_call::set_affinity(tid, cpus).map_err(|e| ApplyError::for_affinity(tid, cpus, &e))?;
    let kept = sched_call::get_affinity(tid).map_err(|e| ApplyError::for_affinity(tid, cpus, &e))?;
    if kept == *cpus { Ok(()) } else { Err(ApplyError::dropped(cpus, &kept)) }
}

/// Sets policy and priority; with `reset_on_fork` the thread's children start as SCHED_OTHER.
///
/// # Errors
/// No privilege, no real-time runtime in the control group, parameters out of range; the thread is gone.
pub fn set_policy(tid: i32, policy: &Policy, reset_on_fork: bool) -> Result<(), ApplyError> {
    sched_call::set_policy(tid, policy, reset_on_fork).map_err(|e| ApplyError::for_policy(tid, policy, &e))
}

/// Policy and CPUs of a thread (0 = the caller) as the kernel has them.
///
/// # Errors
/// The thread is gone.
pub fn read_back(tid: i32) -> io::Result<(Policy, CpuList)> {
    Ok((sched_call::get_policy(tid)?.0, sched_call::get_affinity(tid)?))
}

/// Compares what a thread has with what was asked; `Some` is the sentence that makes a trial invalid.
pub fn verify(tid: i32, wanted: &RoleScheduling) -> Option<String> {
    let (policy, cpus) = match read_back(tid) {
        Ok(found) => found,
        Err(error) => return Some(format!("scheduling of thread {tid} could not be read back: {error}")),
    };
    match (&wanted.policy, &wanted.cpus) {
        (Some(asked), _) if *asked != policy => {
            Some(format!("thread {tid} was to run with policy {asked}, the kernel says {policy}"))
        }
        (_, Some(asked)) if *asked != cpus => {
            Some(format!("thread {tid} was to run on CPUs {asked}, the kernel says {cpus}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs on a thread of its own, so that the settings die with it.
    fn on_a_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn what_was_applied_is_read_back() {
        on_a_thread(|| {
            let cpus = CpuList::one(allowed_cpus()[0]);
            let wanted = RoleScheduling { policy: Some(Policy::Batch { nice: 3 }), cpus: Some(cpus.clone()) };
            apply(0, &wanted).unwrap();
            assert_eq!(read_back(0).unwrap(), (Policy::Batch { nice: 3 }, cpus));
            assert_eq!(verify(0, &wanted), None);
            let other = RoleScheduling { policy: Some(Policy::Idle), cpus: None };
            assert_eq!(
                verify(0, &other).unwrap(),
                "thread 0 was to run with policy idle, the kernel says batch nice 3"
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
