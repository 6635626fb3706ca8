//! Runs one load as a process. The process is a child of the supervisor, never of the measuring process.

use super::child_process::Process;
use crate::load::Did;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use tailbound_host as host;
use tailbound_model::*;

/// Time after the planned end of a real-time load at which the load is killed, ns.
const MARGIN_NS: i64 = 5_000_000_000;
/// Tolerance for a load that ends by itself: the load may end early by its duration divided by this number.
const EARLY: i64 = 10;
/// Number of bytes that are read from the end of a load's output.
const KEPT: u64 = 4096;

/// A running process that does the work of a load.
pub(super) struct Running {
    process: Process,
    /// Socket by which the agent orders a waiting load process to begin to send.
    held: Option<Held>,
    pub began_ns: i64,
    /// Time at which the load is to end, monotonic ns. `None` = the load ends with the trial, or a waiting sender has
    /// not begun to send yet.
    pub end_ns: Option<i64>,
}

struct Held {
    socket: UnixStream,
    met: bool,
}

impl Running {
    /// Starts a load process with the scheduling `wanted`. If `held`, the load sends nothing until `release` is called.
    ///
    /// # Errors
    /// The program cannot be run, or the kernel refuses the scheduling.
    pub fn start(
        spec: &LoadSpec,
        input: &[u8],
        wanted: RoleScheduling,
        limit_ns: i64,
        held: bool,
    ) -> Result<Running, Problem> {
        let longest_ns = spec.duration.filter(|_| !held).map_or(limit_ns, |d| d.0).saturating_add(MARGIN_NS);
        let (given, socket) = given(input, held)
            .map_err(|e| not_begun(format!("the standard input of the load cannot be created: {e}")))?;
        let mut command = command(spec).map_err(|e| not_begun(e.to_string()))?;
        command.stdin(given);
        let process = Process::start(command, wanted, longest_ns, None)?;
        let held = socket
            .map(|s| Held::new(s, input))
            .transpose()
            .map_err(|e| not_begun(format!("the order cannot be sent to the load: {e}")))?;
        let began_ns = process.began_ns;
        let end_ns = spec.duration.filter(|_| held.is_none()).map(|d| began_ns.saturating_add(d.0));
        Ok(Running { process, held, began_ns, end_ns })
    }

    /// Scheduling policy and CPUs of the load process, as the kernel reports them.
    pub fn scheduling(&self) -> (String, String) {
        (self.process.policy.to_string(), self.process.cpus.to_string())
    }

    /// True if a waiting sender is matched with its receiver, or if the load does not wait.
    pub fn has_met(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.met)
    }

    /// Descriptor that becomes readable when a waiting sender is matched with its receiver.
    pub fn meeting(&self) -> Option<BorrowedFd<'_>> {
        self.held.as_ref().filter(|held| !held.met).map(|held| held.socket.as_fd())
    }

    /// Reads whether a waiting sender is matched with its receiver. A sender that has ended counts as matched.
    pub fn hear(&mut self) {
        if let Some(held) = self.held.as_mut().filter(|held| !held.met) {
            held.met = !matches!(held.socket.read(&mut [0]), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
        }
    }

    /// Orders a waiting sender to begin to send. Returns the present time, ns.
    ///
    /// # Errors
    /// The sender no longer reads its socket.
    pub fn release(&mut self, spec: &LoadSpec) -> Result<i64, Problem> {
        if let Some(mut held) = self.held.take() {
            // If the load has ended, `end` reports the reason.
            if held.socket.write_all(b"g").is_err() && !self.is_over() {
                return Err(not_begun("the load no longer reads its socket"));
            }
        }
        self.began_ns = host::monotonic_ns();
        self.end_ns = spec.duration.map(|d| self.began_ns.saturating_add(d.0));
        Ok(self.began_ns)
    }

    /// Descriptor that is readable once the load process has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.process.ended()
    }

    /// True if the load process has ended.
    pub fn is_over(&self) -> bool {
        self.process.is_over()
    }

    /// Ends the load with all processes that it started, and completes the result of the load.
    pub fn end(mut self, spec: &LoadSpec, done: &mut LoadDone) {
        if matches!(spec.run, LoadKind::Command(_)) {
            // The CPUs tell on which threads of the ends the load could have an effect.
            let mut cpus = self.process.cpus_now();
            cpus.0.extend(&self.process.cpus.0);
            done.cpus = cpus.to_string();
        }
        let over = self.process.end(Signal::SIGTERM);
        let now = over.at_ns;
        (done.ended_ns, done.cpu_ns) = (Some(now), over.cpu_ns);
        let said = self.process.said(KEPT);
        if over.by_itself {
            let status = over.status;
            let kept = status.success() && self.end_ns.is_some_and(|end| end - now <= (end - self.began_ns) / EARLY);
            if !kept {
                let last = said.lines().last().map(|l| format!("; it last wrote: {}", l.trim())).unwrap_or_default();
                let ran = Nanos(now - self.began_ns);
                done.failed = Some(format!("the load ended by itself after {ran} ({status}){last}"));
            }
        }
        if matches!(spec.run, LoadKind::Command(_)) {
            return;
        }
        // Libraries may write other lines before the result.
        let last = said.trim_end().lines().last().unwrap_or_default();
        match serde_json::from_str::<Did>(last) {
            Ok(did) => did.tell(done),
            Err(_) if done.failed.is_none() => {
                done.failed = Some(format!("the load did not report its counts; it last wrote: {}", last.trim()));
            }
            Err(_) => {}
        }
        // The controller checks which messages a receiver lacks, because the controller knows how many were sent.
        if done.failed.is_none() && done.part == Some(LoadPart::Sends) && done.messages == Some(0) {
            done.failed = Some(format!("the load sent no message in {}", Nanos(now - self.began_ns)));
        }
    }
}

/// Makes the [`Problem`] for a load that cannot begin.
fn not_begun(what: impl Into<String>) -> Problem {
    Problem::new("load", what, "")
}

/// Standard input of a load process: a file or, for a waiting sender, a socket. For a waiting sender, the function also
/// returns the agent's socket of the pair.
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

fn command(spec: &LoadSpec) -> io::Result<Command> {
    match &spec.run {
        LoadKind::Command(words) => {
            let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
            let mut command = Command::new(program);
            command.args(arguments);
            Ok(command)
        }
        kind => {
            let mut command = tailbound_host::own_program()?;
            command.args(["agent", "--load", kind.word()]);
            Ok(command)
        }
    }
}
