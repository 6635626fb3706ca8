//! Starts the measuring process: a second process of this program, with a socket and the sample memory as open
//! descriptors.

use crate::end_plan::DriverSource;
use crate::measure;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

/// Number of the socket's descriptor in the measuring process. The descriptors of the sample memories have the next
/// numbers.
const FIRST_FD: RawFd = 3;

/// A measuring process, and the supervisor's side of its streams.
pub(super) struct Started {
    pub child: Child,
    pub socket: OwnedFd,
    /// Pipe from standard output and standard error of the measuring process.
    pub log: OwnedFd,
}

/// Starts `tailbound agent --measure N` on all CPUs of `allowed`. The process sets its own scheduling afterwards.
pub(super) fn start(memories: &[OwnedFd], allowed: &[u32], driver_path: Option<&str>) -> io::Result<Started> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
    let (log, log_end) = io::pipe()?;
    let (log, log_end) = (OwnedFd::from(log), OwnedFd::from(log_end));
    let mut given: Vec<RawFd> = vec![theirs.as_raw_fd()];
    given.extend(memories.iter().map(AsRawFd::as_raw_fd));
    let cpus: Vec<usize> = allowed.iter().map(|c| *c as usize).collect();
    let parent = std::process::id() as i32;

    let mut command = tailbound_host::own_program()?;
    command.args(["agent", "--measure", &memories.len().to_string()]);
    command.stdin(Stdio::null()).stdout(log_end.try_clone()?).stderr(log_end);
    if let Some(path) = driver_path {
        command.env("TAILBOUND_DRIVER_PATH", path);
    }
    let prepare = move || {
        // First to high numbers, so that no descriptor overwrites another, then to their final numbers.
        let mut high = [0; 8];
        let high = high.get_mut(..given.len()).ok_or(io::ErrorKind::InvalidInput)?;
        for (copy, fd) in high.iter_mut().zip(&given) {
            // SAFETY: plain descriptor calls, allowed between fork and exec.
            *copy = unsafe { libc::fcntl(*fd, libc::F_DUPFD_CLOEXEC, 100) };
            if *copy < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        for (copy, target) in high.iter().zip(FIRST_FD..) {
            // SAFETY: as above; dup2 clears close-on-exec.
            if unsafe { libc::dup2(*copy, target) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        let mut set = nix::sched::CpuSet::new();
        for cpu in &cpus {
            set.set(*cpu)?;
        }
        nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)?;
        super::signals::unblock_all()?;
        // If the supervisor is killed, the kernel kills the measuring process.
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
        if nix::unistd::getppid().as_raw() != parent {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    };
    // SAFETY: `prepare` makes system calls on captured numbers only; it neither allocates nor locks.
    unsafe { command.pre_exec(prepare) };
    let child = command.spawn()?;
    Ok(Started { child, socket: ours, log })
}

/// Runs the measuring process (`tailbound agent --measure N`). Returns its exit code.
pub fn measuring_process(memories: usize, drivers: DriverSource) -> i32 {
    // SAFETY: `start` put these descriptors here for this process alone.
    let owned = |fd: RawFd| unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: F_GETFD only reads; if a user started the command, the descriptors are not open.
    if (FIRST_FD..FIRST_FD + 1 + memories as RawFd).any(|fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0) {
        eprintln!("`tailbound agent --measure` is started by an agent, not by hand");
        return 2;
    }
    let socket = File::from(owned(FIRST_FD));
    let memories = (0..memories).map(|i| owned(FIRST_FD + 1 + i as RawFd)).collect();
    measure::main(socket, memories, drivers)
}
