//! One load as a process: a child of the supervisor, never of the measuring process.

use super::process::Process;
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

/// What a real-time load may take beyond its time before it is ended by force.
const MARGIN_NS: i64 = 5_000_000_000;
/// A load that ends by itself this close to its time has kept it, 1 in so many.
const EARLY: i64 = 10;
/// Octets of what it wrote last that are looked at.
const KEPT: u64 = 4096;

/// A load that was started.
pub(super) struct Running {
    process: Process,
    /// To a sender that is held until it is due.
    held: Option<Held>,
    pub began_ns: i64,
    /// When it is to end; `None` = with the trial.
    pub end_ns: Option<i64>,
}

struct Held {
    socket: UnixStream,
    met: bool,
}

impl Running {
    /// Starts it, scheduled as `wanted` from its first instruction on; `held`, it sends only once it is released.
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
        let longest_ns = spec.duration.filter(|_| !held).map_or(limit_ns, |d| d.0).saturating_add(MARGIN_NS);
        let (given, socket) = given(input, held).map_err(|e| format!("its input cannot be given: {e}"))?;
        let mut command = command(spec).map_err(|e| e.to_string())?;
        command.stdin(given);
        let process = Process::start(command, wanted, longest_ns, None)?;
        let held = socket.map(|s| Held::new(s, input)).transpose().map_err(|e| format!("it cannot be watched: {e}"))?;
        let began_ns = process.began_ns;
        let end_ns = spec.duration.filter(|_| held.is_none()).map(|d| began_ns.saturating_add(d.0));
        Ok(Running { process, held, began_ns, end_ns })
    }

    /// Policy and CPUs as the kernel has them.
    pub fn scheduling(&self) -> (String, String) {
        (self.process.policy.to_string(), self.process.cpus.to_string())
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
        self.process.ended()
    }

    /// It has ended by itself.
    pub fn is_over(&self) -> bool {
        self.process.is_over()
    }

    /// Ends it with everything that it started, and writes down what it did.
    pub fn end(mut self, spec: &LoadSpec, done: &mut LoadDone) {
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
