//! One load as a process: a child of the supervisor, never of the measuring process.

use super::guard::Guard;
use crate::load::Did;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tailbound_host as host;
use tailbound_model::*;

/// What a load may take to end after SIGTERM.
const PATIENCE_NS: i64 = 1_000_000_000;
/// What a real-time load may take beyond its time before it is ended by force.
const MARGIN_NS: i64 = 5_000_000_000;
/// A load that ends by itself this close to its time has kept it, 1 in so many.
const EARLY: i64 = 10;

/// A load that was started.
pub(super) struct Running {
    child: Child,
    ended: OwnedFd,
    output: File,
    /// To a sender that is held until it is due.
    held: Option<Held>,
    pub began_ns: i64,
    /// When it is to end; `None` = with the trial.
    pub end_ns: Option<i64>,
    /// As the kernel has it.
    pub policy: Policy,
    /// As the kernel has them.
    pub cpus: CpuList,
    _guard: Option<Guard>,
}

struct Held {
    socket: UnixStream,
    met: bool,
}

impl Running {
    /// Starts it, scheduled as `wanted` (see [`rehearse`]) from its first instruction on; `held`, it sends only once
    /// it is released.
    ///
    /// # Errors
    /// The program cannot be run, or the kernel refuses the scheduling: why.
    pub fn start(
        spec: &LoadSpec,
        input: &[u8],
        wanted: RoleScheduling,
        limit_ns: i64,
        held: bool,
    ) -> Result<Running, String> {
        let output = output().map_err(|e| format!("its output cannot be kept: {e}"))?;
        let longest_ns = spec.duration.filter(|_| !held).map_or(limit_ns, |d| d.0).saturating_add(MARGIN_NS);
        let real_time = wanted.policy.is_some_and(|p| p.is_real_time());
        let (given, socket) = given(input, held).map_err(|e| format!("its input cannot be given: {e}"))?;
        let mut command = command(spec, given, &output).map_err(|e| e.to_string())?;
        let parent = std::process::id() as i32;
        let prepare = move || {
            super::signals::unblock_all()?;
            if real_time {
                let limit_us = (longest_ns / 1000) as u64;
                setrlimit(Resource::RLIMIT_RTTIME, limit_us, limit_us + 1_000_000)?;
            }
            // A supervisor that is killed takes its loads along.
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
        let watched = watch().and_then(|w| Ok((w, socket.map(|s| Held::new(s, input)).transpose()?)));
        match watched {
            Ok(((guard, ended, policy, cpus), held)) => {
                let end_ns = spec.duration.filter(|_| held.is_none()).map(|d| began_ns.saturating_add(d.0));
                Ok(Running { child, ended, output, held, began_ns, end_ns, policy, cpus, _guard: guard })
            }
            Err(e) => {
                // Both fail only if it is gone.
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("it cannot be watched: {e}"))
            }
        }
    }

    /// It has met its receiver, or need not.
    pub fn has_met(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.met)
    }

    /// Readable once it has.
    pub fn meeting(&self) -> Option<BorrowedFd<'_>> {
        self.held.as_ref().filter(|held| !held.met).map(|held| held.socket.as_fd())
    }

    /// Takes note of what a held sender says. One that has ended says no more.
    pub fn hear(&mut self) {
        if let Some(held) = self.held.as_mut().filter(|held| !held.met) {
            held.met = !matches!(held.socket.read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
        }
    }

    /// A held sender begins; when.
    ///
    /// # Errors
    /// It does not listen any more.
    pub fn release(&mut self, spec: &LoadSpec) -> Result<i64, String> {
        if let Some(mut held) = self.held.take() {
            // One that has ended has its own reason, which `end` tells.
            if held.socket.write_all(b"g").is_err() && !self.is_over() {
                return Err("it does not listen".into());
            }
        }
        self.began_ns = host::monotonic_ns();
        self.end_ns = spec.duration.map(|d| self.began_ns.saturating_add(d.0));
        Ok(self.began_ns)
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

    /// Ends it with everything that it started, and writes down what it did.
    pub fn end(mut self, spec: &LoadSpec, done: &mut LoadDone) {
        let pid = self.child.id() as i32;
        let group = Pid::from_raw(pid);
        let by_itself = wait(pid, false);
        let mut ended = by_itself;
        if ended.is_none() {
            let _ = killpg(group, Signal::SIGTERM);
            let until = host::monotonic_ns() + PATIENCE_NS;
            while ended.is_none() && host::monotonic_ns() < until {
                std::thread::sleep(Duration::from_millis(2));
                ended = wait(pid, false);
            }
        }
        // Children of a command are in its group; they may outlive it.
        let _ = killpg(group, Signal::SIGKILL);
        let (status, cpu_ns) = ended.or_else(|| wait(pid, true)).unwrap_or_default();
        let now = host::monotonic_ns();
        (done.ended_ns, done.cpu_ns) = (Some(now), cpu_ns);
        let said = self.said();
        if by_itself.is_some() {
            let status = ExitStatus::from_raw(status);
            let kept = status.success() && self.end_ns.is_some_and(|end| end - now <= (end - self.began_ns) / EARLY);
            if !kept {
                let last = said.lines().last().map(|l| format!("; it last wrote: {}", l.trim())).unwrap_or_default();
                let ran = Nanos(now - self.began_ns);
                done.failed = Some(format!("it ended by itself after {ran} ({status}){last}"));
            }
        }
        if matches!(spec.run, LoadKind::Command(_)) {
            return;
        }
        // Libraries may have written before.
        let last = said.trim_end().lines().last().unwrap_or_default();
        match serde_json::from_str::<Did>(last) {
            Ok(did) => did.tell(done),
            Err(_) if done.failed.is_none() => {
                done.failed = Some(format!("it did not say what it did; it last wrote: {}", last.trim()));
            }
            Err(_) => {}
        }
        // What a receiver lacks is told by the controller, which knows what was sent.
        if done.failed.is_none() && done.part == Some(LoadPart::Sends) && done.messages == Some(0) {
            done.failed = Some(format!("it sent nothing in {}", Nanos(now - self.began_ns)));
        }
    }

    /// The end of what it wrote.
    fn said(&mut self) -> String {
        const KEPT: i64 = 4096;
        let mut said = Vec::new();
        let length = self.output.metadata().map_or(0, |m| m.len() as i64);
        // Nothing better can be done than to leave it out.
        let _ = self
            .output
            .seek(io::SeekFrom::Start((length - KEPT).max(0) as u64))
            .and_then(|_| self.output.read_to_end(&mut said));
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// A load without CPUs of its own may run anywhere, as any program; this agent itself may not.
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

/// Tries the scheduling of a load on a thread that ends at once, and returns it: a refusal has its full reason here.
pub(super) fn rehearse(spec: &LoadSpec) -> Result<RoleScheduling, String> {
    let cpus = spec.scheduling.cpus.clone().or_else(all_cpus);
    let wanted = RoleScheduling { policy: spec.scheduling.policy, cpus };
    let tried = std::thread::spawn(move || host::apply(0, &wanted).map(|()| wanted).map_err(|e| e.to_string())).join();
    tried.unwrap_or_else(|_| Err("its scheduling cannot be tried".into()))
}

fn output() -> io::Result<File> {
    Ok(File::from(memfd_create(c"tailbound-load", MFdFlags::MFD_CLOEXEC)?))
}

/// Standard input with this in it, or a socket and the side of it that is kept.
fn given(input: &[u8], held: bool) -> io::Result<(Stdio, Option<UnixStream>)> {
    if held {
        let (ours, theirs) = UnixStream::pair()?;
        return Ok((Stdio::from(OwnedFd::from(theirs)), Some(ours)));
    }
    let mut file = File::from(memfd_create(c"tailbound-load-order", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(input)?;
    file.rewind()?;
    Ok((Stdio::from(file), None))
}

impl Held {
    fn new(mut socket: UnixStream, input: &[u8]) -> io::Result<Held> {
        socket.write_all(input)?;
        socket.set_nonblocking(true)?;
        Ok(Held { socket, met: false })
    }
}

fn command(spec: &LoadSpec, input: Stdio, output: &File) -> io::Result<Command> {
    let mut command = match &spec.run {
        LoadKind::Command(words) => {
            let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        kind => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["agent", "--load", kind.word()]);
            command
        }
    };
    command.stdin(input).stdout(output.try_clone()?).stderr(output.try_clone()?).process_group(0);
    Ok(command)
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
