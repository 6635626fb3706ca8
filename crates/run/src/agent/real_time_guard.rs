//! A guard for real-time processes. A real-time thread that spins can keep all other threads from a CPU, also the
//! agent. The guard wakes every 100 ms with a higher priority than a study can ask for, and kills a process that
//! exceeds its deadline.

use nix::sys::signal::Signal;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;
use tailbound_host as host;
use tailbound_model::Policy;

/// Policy of the guard. The highest priority that a study may use is 98 (`crates/study/src/resolve/scheduling.rs`).
const ABOVE_ALL: Policy = Policy::Fifo { priority: 99 };
const TURN: Duration = Duration::from_millis(100);

/// A guard that kills one real-time process if the process exceeds its deadline. The guard ends when it is dropped.
pub(super) struct Guard(Arc<AtomicBool>);

impl Guard {
    /// Starts a guard that kills the process `pid` after `deadline_ns`. The process must be a child for which this
    /// process has not waited yet. If the guard is not permitted a real-time priority, the guard runs without a
    /// real-time priority; the ends then have none either.
    ///
    /// # Errors
    /// The process does not exist, or the thread of the guard cannot be created.
    pub fn watch(pid: i32, deadline_ns: i64) -> io::Result<Guard> {
        // A descriptor, because the process id may be reused.
        let process = host::process::pidfd(pid)?;
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        std::thread::Builder::new().name("tb-guard".into()).spawn(move || {
            let _ = host::scheduling::set_policy(0, &ABOVE_ALL, false);
            while !is_over.load(Acquire) {
                std::thread::sleep(TURN);
                if host::monotonic_ns() > deadline_ns {
                    // SAFETY: the descriptor is open, and the null pointer sends no information along. The call fails
                    // only if the process is gone.
                    unsafe {
                        let fd = process.as_raw_fd();
                        libc::syscall(libc::SYS_pidfd_send_signal, fd, Signal::SIGKILL as i32, 0, 0);
                    }
                    return;
                }
            }
        })?;
        Ok(Guard(over))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::time::Instant;

    #[test]
    fn only_a_process_that_exceeds_its_deadline_is_killed() {
        let mut child = std::process::Command::new("sleep").arg("20").spawn().unwrap();
        let early = Guard::watch(child.id() as i32, host::monotonic_ns() + 10_000_000_000).unwrap();
        drop(early);
        std::thread::sleep(Duration::from_millis(250));
        assert!(child.try_wait().unwrap().is_none());
        let begin = Instant::now();
        let _guard = Guard::watch(child.id() as i32, host::monotonic_ns() + 300_000_000).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!((Duration::from_millis(300)..Duration::from_secs(5)).contains(&begin.elapsed()));
    }
}
