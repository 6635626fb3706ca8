//! One trial as its supervisor sees it.

use super::child::{self, Started};
use super::drain::Drain;
use super::guard::Guard;
use super::loads::Loads;
use super::switches::Watched;
use crate::hot::{FlowMemory, Memory, MemoryKind};
use crate::pipe::Connection;
use crate::store::{self, Rows};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;
use tailbound_host as host;
use tailbound_host::OffsetTrack;
use tailbound_model::*;
use tailbound_wire::*;

/// What opening and closing the driver may take.
const OPENING_NS: i64 = 60_000_000_000;
/// How long waits for a CPU that went on at the end of the trial may take to end, once the loads have ended here.
const WAITS_END: Duration = Duration::from_millis(200);
/// Octets of the measuring process's output that are kept.
const LOG_LIMIT: usize = 64 * 1024;

pub(super) struct Trial {
    order: Order,
    child: Child,
    connection: Connection,
    log: Option<File>,
    log_text: Vec<u8>,
    memories: Vec<(OwnedFd, Memory)>,
    /// The counts of a flow, one for each end.
    counts: Vec<(OwnedFd, FlowMemory)>,
    pub loads: Loads,
    pub switches: Watched,
    drain: Drain,
    /// Rows are drained: between go and done, if the order asks for it.
    draining: bool,
    /// Over real-time ends.
    _guard: Option<Guard>,
    track: OffsetTrack,
    scripted: bool,
    open: bool,
    /// The measuring process is ready, and loads are not: what the controller will be told.
    prepared: Option<Message>,
}

impl Trial {
    pub fn start(order: Order, allowed: &[u32]) -> Result<Trial, Failed> {
        let fail = |code: &str, exit: ExitCode, text: String, mend: &str| Failed {
            code: code.into(),
            text,
            mend: mend.into(),
            exit: exit as u8,
        };
        let out_of_memory = |e: io::Error| {
            let text = format!("sample memory for {} slots cannot be had: {e}", order.slots);
            fail("sample_memory", ExitCode::MachineNotFit, text, "ask for fewer slots")
        };
        // This process keeps off the measured CPUs; failing that it shares the last one, which the plan already says.
        let _ = host::scheduling::set_affinity(0, &order.housekeeping);
        let mut memories = Vec::new();
        for end in &order.ends {
            let kind = end.role.into();
            let cells = match kind {
                MemoryKind::Sender => order.slots,
                // Room for duplicates.
                MemoryKind::Echo if order.spec.measure.flow().is_some() => order.slots,
                MemoryKind::Echo => order.slots + order.slots / 8 + 1024,
            };
            let fd = Memory::create(kind, order.ring.unwrap_or(cells)).map_err(out_of_memory)?;
            let memory = Memory::map(&fd, kind, order.ring.is_some(), false).map_err(out_of_memory)?;
            memories.push((fd, memory));
        }
        let limit_ns = order.match_timeout_ns + OPENING_NS + order.limit_ns;
        let mut counts = Vec::new();
        if order.spec.measure.flow().is_some() {
            let seconds = (limit_ns / 1_000_000_000) as usize + 2;
            for _ in &order.ends {
                let fd = FlowMemory::create(seconds).map_err(out_of_memory)?;
                let memory = FlowMemory::map(&fd).map_err(out_of_memory)?;
                counts.push((fd, memory));
            }
        }
        let loads = Loads::begin(&order, limit_ns).map_err(|text| fail("load", ExitCode::MachineNotFit, text, ""))?;
        let fds = memories.iter().map(|(fd, _)| fd).chain(counts.iter().map(|(fd, _)| fd));
        let given: io::Result<Vec<OwnedFd>> = fds.map(OwnedFd::try_clone).collect();
        let started =
            given.and_then(|given| child::start(&given, allowed, order.driver_path.as_deref())).map_err(|e| {
                fail(
                    "measuring_process",
                    ExitCode::RunFailed,
                    format!("the measuring process cannot be started: {e}"),
                    "",
                )
            })?;
        let Started { child, socket, log } = started;
        let connect = || -> io::Result<Connection> {
            let input = File::from(socket);
            let output = input.try_clone()?;
            let mut connection = Connection::new(input, output);
            connection.send(Message::Prepare(Box::new(order.clone())))?;
            Ok(connection)
        };
        let connection = connect().map_err(|e| {
            fail("measuring_process", ExitCode::RunFailed, format!("the measuring process does not listen: {e}"), "")
        })?;
        let deadline_ns = host::monotonic_ns() + limit_ns;
        let guard = order.is_real_time().then(|| Guard::watch(child.id() as i32, deadline_ns));
        let guard = guard.transpose().map_err(|e| {
            fail("guard", ExitCode::RunFailed, format!("the guard over real-time ends cannot begin: {e}"), "")
        })?;
        Ok(Trial {
            _guard: guard,
            switches: Watched::new(child.id() as i32),
            drain: Drain::new(&order.spec, order.ends.len()),
            draining: false,
            order,
            child,
            connection,
            log: Some(File::from(log)),
            log_text: Vec::new(),
            memories,
            counts,
            loads,
            track: OffsetTrack::new(),
            scripted: false,
            open: true,
            prepared: None,
        })
    }

    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.open.then(|| self.connection.input().as_fd())
    }

    pub fn log(&self) -> Option<BorrowedFd<'_>> {
        self.log.as_ref().map(AsFd::as_fd)
    }

    pub fn read_log(&mut self) {
        let mut buffer = [0; 4096];
        match self.log.as_mut().map(|log| log.read(&mut buffer)) {
            Some(Ok(n)) if n > 0 => {
                if self.log_text.len() < LOG_LIMIT {
                    self.log_text.extend_from_slice(&buffer[..n]);
                }
            }
            _ => self.log = None,
        }
    }

    pub fn read_clocks(&mut self) {
        self.track.push(host::read_offset());
    }

    pub fn tell(&mut self, message: Message) {
        if message == Message::Go {
            self.draining = self.order.ring.is_some();
            self.loads.go();
            self.switches.begin();
        }
        // A child that is gone is noticed by `hear`.
        let _ = self.connection.send(message);
    }

    /// What the measuring process says, made ready for the controller.
    pub fn hear(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        let alive = self.connection.fill().unwrap_or(false);
        while let Ok(Some(Frame::Message(message))) = self.connection.pending() {
            match *message {
                Message::Prepared(mut prepared) => {
                    self.scripted = prepared.scripted_clock;
                    if self.order.spec.attribution == Attribution::On {
                        self.switches.open(&prepared.threads, self.scripted);
                    }
                    let fds = self.memories.iter().map(|(fd, _)| fd).chain(self.counts.iter().map(|(fd, _)| fd));
                    prepared.memory_fds = fds.map(AsRawFd::as_raw_fd).collect();
                    self.prepared = Some(Message::Prepared(prepared));
                }
                Message::Done(mut done) => {
                    self.draining = false;
                    self.switches.end();
                    done.loads.extend(self.loads.end());
                    // Those that the loads kept from a CPU have one now.
                    host::read_later(self.child.id() as i32, &mut done.threads.after, WAITS_END);
                    let ends = self.order.ends.iter().map(|e| e.role.word().to_owned()).collect();
                    done.process = host::process_seen(self.child.id() as i32, ends);
                    self.read_clocks();
                    if !self.scripted {
                        for end in &mut done.ends {
                            end.clock = self.track.readings().to_vec();
                        }
                    }
                    done.log.push_str(&String::from_utf8_lossy(&self.log_text));
                    messages.push(Message::Done(done));
                }
                // The child's own farewell; the controller hears `finished` from us.
                Message::Finished => {}
                Message::Failed(failed) => messages.push(Message::Failed(failed)),
                _ => {}
            }
        }
        if !alive && self.open {
            (self.open, self.draining) = (false, false);
            self.loads.end();
            let how = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
            self.read_log();
            let log = String::from_utf8_lossy(&self.log_text);
            let last = log.lines().last().map(|l| format!("; it last wrote: {l}")).unwrap_or_default();
            if !messages.iter().any(|m| matches!(m, Message::Failed(_))) {
                messages.push(Message::Failed(Failed {
                    code: "measuring_process".into(),
                    text: format!("the measuring process ended early ({how}){last}"),
                    mend: String::new(),
                    exit: ExitCode::RunFailed as u8,
                }));
            }
        }
        messages
    }

    /// That all is prepared, once: a load whose halves meet late would be there for a part of the trial only.
    pub fn prepared(&mut self) -> Option<Message> {
        self.prepared.take_if(|_| self.loads.have_met())
    }

    /// When the rings are to be drained next; `None` = not now, or not at all.
    pub fn next_drain_ns(&self) -> Option<i64> {
        self.draining.then_some(self.drain.next_ns)
    }

    /// Drains the rings.
    pub fn drain(&mut self, controller: &mut Connection) -> io::Result<()> {
        self.drain.turn(&self.memories, &self.track, controller)
    }

    /// The controller has rows on disk.
    pub fn stored(&mut self, stored: Stored) {
        self.drain.stored(stored, &self.memories);
    }

    /// Sends the counts of a flow, and the sample memory, or what is left of it.
    pub fn collect(&mut self, controller: &mut Connection) -> io::Result<()> {
        self.draining = false;
        if !self.counts.is_empty() {
            let counts = self.counts.iter().map(|(_, memory)| memory.cells().read()).collect();
            controller.send(Message::Counted(counts))?;
        }
        self.drain.rest(&self.memories, controller)
    }

    /// What happened to the threads of the ends within these times.
    pub fn switches_within(&mut self, windows: &[(i64, i64)]) -> Switches {
        let ends = self.order.ends.iter().map(|e| e.role.word().to_owned()).collect();
        Switches { ends, ..self.switches.within(windows) }
    }

    /// The trial is stored.
    pub fn finish(mut self) {
        self.tell(Message::Finish);
        for _ in 0..200 {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                _ => break,
            }
        }
        self.end();
    }

    fn end(mut self) {
        // Both fail only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for (_, memory) in self.memories {
            // SAFETY: the trial is over; nothing of it is used any more.
            unsafe { memory.unmap() };
        }
        for (_, memory) in self.counts {
            // SAFETY: as above.
            unsafe { memory.unmap() };
        }
    }

    /// The controller is gone: what was measured goes into the record from here.
    pub fn rescue(mut self) {
        self.loads.end();
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.read_clocks();
        if let Some(dir) = self.order.rescue.clone() {
            for (index, end) in self.order.ends.iter().enumerate() {
                let (_, memory) = &self.memories[index];
                let (first, octets) = self.drain.unsaved(index, memory);
                let t0 = memory.header().t0_ns.load(Acquire);
                let rows = Rows { role: end.role, first, octets: &octets, cut: true };
                let stored = store::rescue(Path::new(&dir), &self.order, rows, t0, &self.track);
                if let Err(e) = stored {
                    // Standard error is all that is left.
                    let trial = self.order.trial;
                    let _ =
                        writeln!(io::stderr(), "tailbound agent: the samples of trial {trial} cannot be saved: {e}");
                }
            }
        }
        self.end();
    }
}
