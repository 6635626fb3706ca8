//! A guard over real-time ends: it wakes every 100 ms above every priority that a study can ask for, and ends a measuring
//! process that overstays. A real-time thread that spins can keep everything else from a CPU, this agent included.

use nix::sys::signal::Signal;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;
use tailbound_host as host;
use tailbound_model::Policy;

/// Studies use at most 98 (`crates/study/src/resolve/scheduling.rs`).
const ABOVE_ALL: Policy = Policy::Fifo { priority: 99 };
const TURN: Duration = Duration::from_millis(100);

/// Ends the guard when it is dropped.
pub(super) struct Guard(Arc<AtomicBool>);

impl Guard {
    /// Ends the process `pid`, a child that was not waited for, after `deadline_ns`.
    ///
    /// # Errors
    /// The kernel's word. Without the right to a real-time priority the guard runs as it can, and so do the ends.
    pub fn watch(pid: i32, deadline_ns: i64) -> io::Result<Guard> {
        // By descriptor: the number may be another process's one day.
        let process = host::process::pidfd(pid)?;
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        std::thread::Builder::new().name("tb-guard".into()).spawn(move || {
            let _ = host::scheduling::set_policy(0, &ABOVE_ALL, false);
            while !told.load(Acquire) {
                std::thread::sleep(TURN);
                if host::monotonic_ns() > deadline_ns {
                    // SAFETY: an open descriptor, no information to send along. Fails only if the process is gone.
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
    fn what_overstays_is_ended_and_what_does_not_is_left_alone() {
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
