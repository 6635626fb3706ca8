//! Keeps CPUs from idling while a cost is measured, and lets one process of this host measure at a time.
//!
//! In a virtual machine an idle CPU halts, and the next wake-up waits for the hypervisor: for some microseconds, or for tens
//! of microseconds if the hypervisor ran something else meanwhile. A recording moves the time at which a CPU halts, so that
//! the difference of two measurements could be any of these waits.

use nix::fcntl::{Flock, FlockArg};
use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tailbound_model::{CpuList, Policy, RoleScheduling};

/// Time for which a process waits for its turn; after that it measures beside the other one.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two attempts to get a turn.
const AGAIN: Duration = Duration::from_millis(5);
/// Number of pauses of a CPU between two system calls, one or two microseconds. Some kernels let a thread that was woken
/// run only when the present one makes a system call.
const PAUSES: u32 = 64;

/// A turn to measure, until the value is dropped. `None` if the other processes do not end in time.
pub(super) fn turn() -> Option<Flock<File>> {
    // All agents of a host run the same program.
    let mut file = File::open("/proc/self/exe").ok()?;
    let begin = Instant::now();
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(turn) => return Some(turn),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) if begin.elapsed() >= PATIENCE => return None,
            Err((again, nix::errno::Errno::EWOULDBLOCK)) => file = again,
            Err(_) => return None,
        }
        std::thread::sleep(AGAIN);
    }
}

/// CPUs that are busy whenever nothing else wants them, until this value is dropped.
pub(super) struct Awake(Arc<AtomicBool>);

impl Awake {
    /// Keeps the first and the last one of `cpus` busy, by threads of the policy SCHED_IDLE.
    pub fn keep(cpus: &CpuList) -> Awake {
        let rest = Arc::new(AtomicBool::new(false));
        let ends: BTreeSet<u32> = cpus.0.first().into_iter().chain(cpus.0.last()).copied().collect();
        for cpu in ends {
            let rest = Arc::clone(&rest);
            // Without the thread, the CPU idles, and the cost is less certain.
            let _ = std::thread::Builder::new().name("awake".into()).spawn(move || {
                let wanted = RoleScheduling { policy: Some(Policy::Idle), cpus: Some(CpuList::one(cpu)) };
                if crate::scheduling::apply(0, &wanted).is_err() {
                    return;
                }
                while !rest.load(Ordering::Relaxed) {
                    (0..PAUSES).for_each(|_| std::hint::spin_loop());
                    std::thread::yield_now();
                }
            });
        }
        Awake(rest)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        // The threads are not joined: without a CPU they would never end.
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_has_its_turn() {
        let first = turn().expect("nobody else measures");
        let file = File::open("/proc/self/exe").unwrap();
        let (file, error) = Flock::lock(file, FlockArg::LockExclusiveNonblock).expect_err("the turn is taken");
        assert_eq!(error, nix::errno::Errno::EWOULDBLOCK);
        drop(first);
        assert!(Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok());
    }
}
