//! Runs a program as a child of the supervisor. The program has its scheduling from its first instruction on, and the
//! supervisor notices when the program ends. When the supervisor ends the program, all processes that the program
//! started end too.

use super::real_time_guard::Guard;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;
use tailbound_host as host;
use tailbound_model::*;

/// Longest time for a program to end after the signal that asks it to end, ns. After this time the program is killed.
const PATIENCE_NS: i64 = 1_000_000_000;

/// A running program (of a load or of a tool) that the supervisor has started.
pub(super) struct Process {
    child: Child,
    ended: OwnedFd,
    output: File,
    pub began_ns: i64,
    /// Scheduling policy of the program, as the kernel reports it.
    pub policy: Policy,
    /// CPUs on which the program may run, as the kernel reports them.
    pub cpus: CpuList,
    over: Option<Over>,
    _guard: Option<Guard>,
}

/// Result of a program (of a load or of a tool) that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Over {
    pub status: ExitStatus,
    /// CPU time of the program, and of its children for which the program waited, ns.
    pub cpu_ns: u64,
    pub at_ns: i64,
    /// True if the program ended by itself, without a signal of the supervisor.
    pub by_itself: bool,
}

impl Process {
    /// Starts a program with the scheduling `wanted` (see [`rehearse`]) and keeps its output. If the program writes
    /// more than `most_output` bytes, the kernel ends it.
    ///
    /// # Errors
    /// The program cannot be run, or the kernel refuses the scheduling.
    pub fn start(
        mut command: Command,
        wanted: RoleScheduling,
        longest_ns: i64,
        most_output: Option<u64>,
    ) -> Result<Process, Problem> {
        let real_time = wanted.policy.is_some_and(|p| p.is_real_time());
        let output = memfd_create(c"tailbound-output", MFdFlags::MFD_CLOEXEC).map(File::from);
        let no_file = |e| not_started(format!("no file can be created for the output of the program: {e}"));
        let output = output.map_err(|e| no_file(e.into()))?;
        let copy = || output.try_clone().map_err(no_file);
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
            // If the supervisor is killed, the kernel kills the program.
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            if nix::unistd::getppid().as_raw() != parent {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            host::scheduling::enter(&wanted)
        };
        // SAFETY: `prepare` makes system calls on what it captured; it neither allocates nor locks.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn().map_err(|e| not_started(e.to_string()))?;
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
                // Both calls fail only if the program is gone.
                let _ = child.kill();
                let _ = child.wait();
                Err(not_started(format!("the program cannot be watched: {e}")))
            }
        }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// CPUs on which the program, its threads and its children may run now, as the kernel reports them. A program can
    /// choose other CPUs than the ones with which it was started.
    pub fn cpus_now(&self) -> CpuList {
        let (mut cpus, mut rest) = (BTreeSet::new(), vec![self.pid()]);
        while let Some(pid) = rest.pop() {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            for tid in tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()) {
                // A thread that has just ended has no CPUs any more.
                cpus.extend(host::read_back(tid).map(|(_, list)| list.0).unwrap_or_default());
                let children = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
                rest.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
            }
        }
        CpuList(cpus)
    }

    /// Descriptor that is readable once the program has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// True if the program that the supervisor started has ended.
    pub fn is_over(&self) -> bool {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        poll(&mut [PollFd::new(self.ended(), PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|n| n > 0)
    }

    /// Ends the program and all processes that it started: first with the signal `by`, then with SIGKILL.
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
        // Children of the program are in its process group, and may outlive it.
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

    /// Number of bytes that the program has written to its output.
    pub fn written(&self) -> u64 {
        self.output.metadata().map_or(0, |m| m.len())
    }

    /// The last bytes of the program's output, at most `most` of them, as text.
    pub fn said(&self, most: u64) -> String {
        let mut said = Vec::new();
        let from = self.written().saturating_sub(most);
        // Opened again, so that the position at which the program writes does not change.
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.output));
        // If the output cannot be read, it is left out.
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

/// Makes the [`Problem`] for a program that cannot be started.
fn not_started(what: String) -> Problem {
    Problem::new("program_not_started", what, "")
}

/// All CPUs that a program may use. The agent itself runs on fewer CPUs, which its children would inherit.
fn all_cpus() -> Option<CpuList> {
    Some(CpuList(host::scheduling::settable_cpus().into_iter().collect()))
}

/// Tries to set a scheduling on a thread that ends at once, so that a refusal is known with its full reason. Returns
/// the scheduling; if it names no CPUs, all CPUs are filled in.
pub(super) fn rehearse(asked: &RoleScheduling) -> Result<RoleScheduling, Problem> {
    let cpus = asked.cpus.clone().or_else(all_cpus);
    let wanted = RoleScheduling { policy: asked.policy, cpus };
    let refused = |what: String| Problem::new("scheduling", what, "");
    let tried = std::thread::spawn(move || host::apply(0, &wanted).map(|()| wanted)).join();
    let tried = tried.map_err(|_| refused("the scheduling of the program cannot be tried".into()))?;
    tried.map_err(|e| refused(e.to_string()))
}

/// Checks whether a child process has ended. Returns its wait status, and the CPU time of the child and of those of its
/// children for which it waited, in ns. `None` = the child still runs.
fn wait(pid: i32, block: bool) -> Option<(i32, u64)> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let flags = if block { 0 } else { libc::WNOHANG };
    // SAFETY: both places are ours; all-zero is a valid rusage.
    let (found, usage) = unsafe { (libc::wait4(pid, &mut status, flags, usage.as_mut_ptr()), usage.assume_init()) };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    (found == pid).then(|| (status, ns(usage.ru_utime) + ns(usage.ru_stime)))
}
