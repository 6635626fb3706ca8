//! A program as a child of the supervisor, never of the measuring process: scheduled from its first instruction on, watched,
//! and ended with everything that it started.

use super::guard::Guard;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;
use tailbound_host as host;
use tailbound_model::*;

/// What a program may take to end once it was asked to.
const PATIENCE_NS: i64 = 1_000_000_000;

/// A program that was started.
pub(super) struct Process {
    child: Child,
    ended: OwnedFd,
    output: File,
    pub began_ns: i64,
    /// As the kernel has it.
    pub policy: Policy,
    /// As the kernel has them.
    pub cpus: CpuList,
    over: Option<Over>,
    _guard: Option<Guard>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Over {
    pub status: ExitStatus,
    /// CPU time of it and of the children it waited for.
    pub cpu_ns: u64,
    pub at_ns: i64,
    /// Nobody asked it to.
    pub by_itself: bool,
}

impl Process {
    /// Starts it, scheduled as `wanted` (see [`rehearse`]) from its first instruction on. Both its outputs are kept, up to
    /// `most_output` octets where that is given: a program that writes more is ended by the kernel.
    ///
    /// # Errors
    /// The program cannot be run, or the kernel refuses the scheduling: why.
    pub fn start(
        mut command: Command,
        wanted: RoleScheduling,
        longest_ns: i64,
        most_output: Option<u64>,
    ) -> Result<Process, String> {
        let real_time = wanted.policy.is_some_and(|p| p.is_real_time());
        let output = memfd_create(c"tailbound-output", MFdFlags::MFD_CLOEXEC).map(File::from);
        let output = output.map_err(|e| format!("its output cannot be kept: {e}"))?;
        let copy = || output.try_clone().map_err(|e| format!("its output cannot be kept: {e}"));
        command.stdout(copy()?).stderr(copy()?).process_group(0);
        let parent = std::process::id() as i32;
        let prepare = move || {
            super::signals::unblock_all()?;
            if real_time {
                let limit_us = (longest_ns / 1000) as u64;
                setrlimit(Resource::RLIMIT_RTTIME, limit_us, limit_us + 1_000_000)?;
            }
            if let Some(most) = most_output {
                setrlimit(Resource::RLIMIT_FSIZE, most, most)?;
            }
            // A supervisor that is killed takes it along.
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            if nix::unistd::getppid().as_raw() != parent {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            host::scheduling::enter(&wanted)
        };
        // SAFETY: `prepare` makes system calls on what it captured; it neither allocates nor locks.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn().map_err(|e| e.to_string())?;
        let (pid, began_ns) = (child.id() as i32, host::monotonic_ns());
        let watch = || -> io::Result<_> {
            let guard = real_time.then(|| Guard::watch(pid, began_ns.saturating_add(longest_ns))).transpose()?;
            let (policy, cpus) = host::read_back(pid)?;
            Ok((guard, host::process::pidfd(pid)?, policy, cpus))
        };
        match watch() {
            Ok((guard, ended, policy, cpus)) => {
                Ok(Process { child, ended, output, began_ns, policy, cpus, over: None, _guard: guard })
            }
            Err(e) => {
                // Both fail only if it is gone.
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("it cannot be watched: {e}"))
            }
        }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Readable once it has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// It has ended by itself.
    pub fn is_over(&self) -> bool {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        poll(&mut [PollFd::new(self.ended(), PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|n| n > 0)
    }

    /// Ends it with everything that it started: by this signal first, then by force.
    pub fn end(&mut self, by: Signal) -> Over {
        if let Some(over) = self.over {
            return over;
        }
        let pid = self.pid();
        let group = Pid::from_raw(pid);
        let by_itself = wait(pid, false);
        let mut ended = by_itself;
        if ended.is_none() {
            let _ = killpg(group, by);
            let until = host::monotonic_ns() + PATIENCE_NS;
            while ended.is_none() && host::monotonic_ns() < until {
                std::thread::sleep(Duration::from_millis(2));
                ended = wait(pid, false);
            }
        }
        // Children of a command are in its group; they may outlive it.
        let _ = killpg(group, Signal::SIGKILL);
        let (status, cpu_ns) = ended.or_else(|| wait(pid, true)).unwrap_or_default();
        let over = Over {
            status: ExitStatus::from_raw(status),
            cpu_ns,
            at_ns: host::monotonic_ns(),
            by_itself: by_itself.is_some(),
        };
        *self.over.insert(over)
    }

    /// Octets that it wrote.
    pub fn written(&self) -> u64 {
        self.output.metadata().map_or(0, |m| m.len())
    }

    /// The last octets of what it wrote, at most so many.
    pub fn said(&self, most: u64) -> String {
        let mut said = Vec::new();
        let from = self.written().saturating_sub(most);
        // By a description of its own: the place where the program writes on stays where it is.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.output));
        // Nothing better can be done than to leave it out.
        let _ = File::open(path).and_then(|mut own| {
            own.seek(io::SeekFrom::Start(from))?;
            own.take(most).read_to_end(&mut said)
        });
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end(Signal::SIGTERM);
    }
}

/// One without CPUs of its own may run anywhere, as any program; this agent itself may not.
fn all_cpus() -> Option<CpuList> {
    let agent = host::allowed_cpus();
    let all = CpuList((0..4096).collect());
    // The kernel keeps those that the cpuset allows.
    let on_a_thread = std::thread::spawn(move || {
        let wanted = RoleScheduling { policy: None, cpus: Some(all) };
        host::scheduling::enter(&wanted).map(|()| host::allowed_cpus())
    });
    let cpus = on_a_thread.join().ok().and_then(Result::ok).unwrap_or(agent);
    Some(CpuList(cpus.into_iter().collect()))
}

/// Tries a scheduling on a thread that ends at once, and returns it whole: a refusal has its full reason here.
pub(super) fn rehearse(asked: &RoleScheduling) -> Result<RoleScheduling, String> {
    let cpus = asked.cpus.clone().or_else(all_cpus);
    let wanted = RoleScheduling { policy: asked.policy, cpus };
    let tried = std::thread::spawn(move || host::apply(0, &wanted).map(|()| wanted).map_err(|e| e.to_string())).join();
    tried.unwrap_or_else(|_| Err("its scheduling cannot be tried".into()))
}

/// Status and CPU time of a child that has ended, with that of the children it waited for.
fn wait(pid: i32, block: bool) -> Option<(i32, u64)> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let flags = if block { 0 } else { libc::WNOHANG };
    // SAFETY: both places are ours; all-zero is a valid rusage.
    let (found, usage) = unsafe { (libc::wait4(pid, &mut status, flags, usage.as_mut_ptr()), usage.assume_init()) };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    (found == pid).then(|| (status, ns(usage.ru_utime) + ns(usage.ru_stime)))
}
