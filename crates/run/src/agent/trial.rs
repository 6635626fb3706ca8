//! The supervisor's work for one trial: sample memory, loads, measuring process.

use super::card_clocks::CardClocks;
use super::late_messages::{self, LateMessages};
use super::live_causes::{LiveCauses, Question};
use super::live_figures::LiveFigures;
use super::loads::Loads;
use super::measuring_process::{self, Started};
use super::real_time_guard::Guard;
use super::ring_drain::Drain;
use super::thread_watch::Watched;
use crate::connection::Connection;
use crate::hot::{FlowMemory, Memory, MemoryKind};
use crate::kept_windows::{apart, widened};
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
use tailbound_record::{KeptRow, Notable, WorstIncident};
use tailbound_wire::*;

/// A trial that runs for longer than this can have more events than an agent keeps, ns.
const LONG_NS: i64 = 20_000_000_000;
/// Time from the begin of a trial until the agent sends its first summary of late messages, ns.
const FIRST_SUMMARY_NS: i64 = 60_000_000_000;
/// Time between two summaries of late messages, ns.
const SUMMARY_NS: i64 = 30_000_000_000;
/// Time from the begin of the search for causes until the summary that has them, ns: the agents of both ends look for causes one
/// after the other, and send one message per second.
const SEARCH_NS: i64 = 8_000_000_000;
/// Longest time for opening and closing the driver in a trial, ns.
const OPENING_NS: i64 = 60_000_000_000;
/// Longest time for which the supervisor waits, after the loads have ended, for threads that the loads kept from a CPU.
const WAITS_END: Duration = Duration::from_millis(200);
/// Largest number of bytes of the measuring process's output that are kept.
const LOG_LIMIT: usize = 64 * 1024;

/// Sample memories, and memories of flow counts, with their files: one sample memory for each end, and one memory of
/// flow counts for each end of a flow.
type Memories = (Vec<(OwnedFd, Memory)>, Vec<(OwnedFd, FlowMemory)>);

/// Longest time from the order for a trial to the end of the trial, ns.
pub(super) fn longest_ns(order: &Order) -> i64 {
    order.match_timeout_ns + OPENING_NS + order.limit_ns
}

/// Allocates the sample memory and the flow counts of a trial that takes at most `limit_ns`.
fn allocate(order: &Order, limit_ns: i64) -> io::Result<Memories> {
    let is_flow = order.spec.measure.flow().is_some();
    let (mut memories, mut counts) = (Vec::new(), Vec::new());
    for end in &order.ends {
        let kind = end.role.into();
        let cells = match kind {
            MemoryKind::Sender => order.slots,
            MemoryKind::Echo if is_flow => order.slots,
            // An eighth more, for duplicates.
            MemoryKind::Echo => order.slots + order.slots / 8 + 1024,
        };
        let fd = Memory::create(kind, order.ring.unwrap_or(cells))?;
        let memory = Memory::map(&fd, kind, order.ring.is_some(), false)?;
        memories.push((fd, memory));
        if is_flow {
            let fd = FlowMemory::create((limit_ns / 1_000_000_000) as usize + 2)?;
            let memory = FlowMemory::map(&fd)?;
            counts.push((fd, memory));
        }
    }
    Ok((memories, counts))
}

/// Connects the agent with a measuring process and sends the measuring process the order to prepare a trial.
fn connect(socket: OwnedFd, order: &Order) -> io::Result<Connection> {
    let input = File::from(socket);
    let output = input.try_clone()?;
    let mut connection = Connection::new(input, output);
    connection.send(Message::Prepare(Box::new(order.clone())))?;
    Ok(connection)
}

/// Keeps the events of these time spans.
fn spare(switches: &mut Watched, found: Vec<Notable>) {
    for notable in found {
        let span = (notable.begin_ns, notable.end_ns);
        switches.spare(span, notable.rank);
        if !notable.is_ordinary() {
            switches.add_moved(span);
        }
    }
}

/// One trial in progress, as the agent sees it.
pub(super) struct Trial {
    order: Order,
    child: Child,
    connection: Connection,
    log: Option<File>,
    log_text: Vec<u8>,
    memories: Vec<(OwnedFd, Memory)>,
    /// Memories of flow counts with their files, one for each end of a flow.
    counts: Vec<(OwnedFd, FlowMemory)>,
    pub loads: Loads,
    pub switches: Watched,
    drain: Drain,
    late: LateMessages,
    /// Time of the message `go`, monotonic ns.
    begun_ns: i64,
    /// Number of summaries of late messages that were sent.
    summaries: i64,
    live_causes: LiveCauses,
    /// Round trips so far, if the order asks for them.
    figures: Option<LiveFigures>,
    /// Number of summaries for which causes were looked for.
    searches: i64,
    /// True while the rings are drained: between the messages `go` and `done`, if the controller's order asks for rings
    /// of sample memory.
    draining: bool,
    /// Guard that kills real-time ends if they exceed their deadline.
    _guard: Option<Guard>,
    track: OffsetTrack,
    card_clocks: CardClocks,
    scripted: bool,
    open: bool,
    /// The message `prepared` for the controller, which the agent sends only when the loads are ready too.
    prepared: Option<Message>,
}

impl Trial {
    /// Prepares a trial: allocates the sample memory, and starts loads and measuring process.
    ///
    /// # Errors
    /// A step fails. All processes that were started before are ended.
    pub fn start(order: Order, allowed: &[u32]) -> Result<Trial, Failed> {
        // This process keeps off the measured CPUs. If that fails, it shares the last CPU, which the plan says already.
        let _ = host::scheduling::set_affinity(0, &order.housekeeping);
        let limit_ns = longest_ns(&order);
        let (memories, counts) = allocate(&order, limit_ns).map_err(|e| {
            let text = format!("cannot allocate sample memory for {} slots: {e}", order.slots);
            Failed::new("sample_memory", ExitCode::MachineNotFit, text, "ask for fewer slots")
        })?;
        let loads = Loads::begin(&order, limit_ns).map_err(|problem| Failed::of(ExitCode::MachineNotFit, problem))?;
        let fds = memories.iter().map(|(fd, _)| fd).chain(counts.iter().map(|(fd, _)| fd));
        let given: Vec<u32> = order.allowed.0.iter().copied().collect();
        let allowed = if given.is_empty() { allowed } else { &given };
        let fds: io::Result<Vec<OwnedFd>> = fds.map(OwnedFd::try_clone).collect();
        let run_failed = |code: &str, text: String| Failed::new(code, ExitCode::RunFailed, text, "");
        let Started { child, socket, log } = fds
            .and_then(|fds| measuring_process::start(&fds, allowed, order.driver_path.as_deref()))
            .map_err(|e| run_failed("measuring_process", format!("the measuring process cannot be started: {e}")))?;
        let connection = connect(socket, &order).map_err(|e| {
            run_failed("measuring_process", format!("the order cannot be sent to the measuring process: {e}"))
        })?;
        let deadline_ns = host::monotonic_ns() + limit_ns;
        let guard = order.is_real_time().then(|| Guard::watch(child.id() as i32, deadline_ns));
        let guard = guard.transpose().map_err(|e| {
            run_failed("guard", format!("the thread that guards real-time ends cannot be started: {e}"))
        })?;
        tracing::debug!(trial = order.trial, pid = child.id(), "measuring process started");
        Ok(Trial {
            _guard: guard,
            switches: Watched::new(child.id() as i32),
            drain: Drain::new(&order.spec, order.ends.len()),
            late: LateMessages::new(&order),
            begun_ns: i64::MAX,
            summaries: 0,
            live_causes: LiveCauses::new(&order),
            figures: order.figures.then(LiveFigures::default),
            searches: 0,
            draining: false,
            card_clocks: CardClocks::open(&order),
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

    /// Socket that connects the agent with the measuring process, while the process runs.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.open.then(|| self.connection.input().as_fd())
    }

    /// Pipe with the output of the measuring process, while the pipe is open.
    pub fn log(&self) -> Option<BorrowedFd<'_>> {
        self.log.as_ref().map(AsFd::as_fd)
    }

    /// Reads what the measuring process has written to its output.
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

    /// Reads the differences between CLOCK_REALTIME and CLOCK_MONOTONIC, and between hardware clocks and CLOCK_MONOTONIC.
    pub fn read_clocks(&mut self) {
        self.track.push(host::read_offset());
        self.card_clocks.read();
    }

    /// Passes a message of the controller to the measuring process.
    pub fn pass_on(&mut self, message: Message) {
        if message == Message::Go {
            self.draining = self.order.ring.is_some();
            self.begun_ns = host::monotonic_ns();
            self.loads.go();
            self.switches.begin();
        }
        // `receive` notices if the child is gone.
        let _ = self.connection.send(message);
    }

    /// Receives messages from the measuring process. Returns messages for the controller.
    pub fn receive(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        let alive = self.connection.fill().unwrap_or(false);
        while let Ok(Some(Frame::Message(message))) = self.connection.pending() {
            match *message {
                Message::Prepared(mut prepared) => {
                    self.scripted = prepared.scripted_clock;
                    let order = &self.order;
                    let level = order.spec.attribution;
                    self.live_causes.begin(&prepared.threads);
                    self.switches.open(&prepared.threads, self.scripted, (level, &order.guest_cpus));
                    let fds = self.memories.iter().map(|(fd, _)| fd).chain(self.counts.iter().map(|(fd, _)| fd));
                    prepared.memory_fds = fds.map(AsRawFd::as_raw_fd).collect();
                    self.prepared = Some(Message::Prepared(prepared));
                }
                Message::Done(mut done) => {
                    self.draining = false;
                    self.switches.end();
                    done.warnings.extend(self.switches.falls_short(self.order.spec.attribution));
                    done.warnings.append(&mut self.card_clocks.warnings);
                    done.loads.extend(self.loads.end());
                    // Threads that the loads kept from a CPU run now.
                    host::read_later(self.child.id() as i32, &mut done.threads.after, WAITS_END);
                    let ends = self.order.ends.iter().map(|e| e.role.word().to_owned()).collect();
                    done.process = host::process_resources(self.child.id() as i32, ends);
                    self.read_clocks();
                    for end in done.ends.iter_mut().filter(|_| !self.scripted) {
                        end.clock = self.track.readings().to_vec();
                        end.card_clock = self.card_clocks.readings(&end.name);
                    }
                    done.log.push_str(&String::from_utf8_lossy(&self.log_text));
                    tracing::debug!(trial = self.order.trial, "the ends are done");
                    done.diagnostics = crate::log::take();
                    messages.push(Message::Done(done));
                }
                stamped @ Message::Stamped(_) => messages.push(stamped),
                // The supervisor sends `finished` itself, once the trial is released.
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
                let text = format!("the measuring process ended early ({how}){last}");
                tracing::error!(trial = self.order.trial, text);
                messages.push(Message::Failed(Failed::new("measuring_process", ExitCode::RunFailed, text, "")));
            }
        }
        messages
    }

    /// Takes the message `prepared` for the controller once ends and loads are ready. If the controller got the message
    /// earlier, a load whose sender and receiver are matched later would run for a part of the trial only.
    pub fn prepared(&mut self) -> Option<Message> {
        self.prepared.take_if(|_| self.loads.have_met())
    }

    /// Time at which the agent drains the rings next; `None` = the rings are not drained now.
    pub fn next_drain_ns(&self) -> Option<i64> {
        self.draining.then_some(self.drain.next_ns)
    }

    /// Sends the rows of samples that will not change any more from the rings to the controller.
    pub fn drain(&mut self, controller: &mut Connection) -> io::Result<()> {
        let Trial { drain, late, live_causes, memories, switches, order, .. } = self;
        drain.turn(memories, &self.track, controller, &mut |index, first, bytes| {
            if switches.is_watching() && order.ends.get(index).is_some_and(|end| end.role.receives()) {
                live_causes.remember(bytes);
            } else if switches.is_watching() {
                spare(switches, late.add(order, index, (first, bytes), &memories[index].1));
            }
        })
    }

    /// Whether events may be discarded before the trial ends: here, or by an agent on a busier machine, of which this agent
    /// knows nothing.
    fn may_discard(&self) -> bool {
        let is_long = || host::monotonic_ns() - self.begun_ns > LONG_NS;
        self.switches.may_discard() || self.switches.is_watching() && is_long()
    }

    /// Looks for late messages if events may be discarded before the trial ends. The rows of a ring are looked at when they
    /// are drained.
    pub fn look_for_late_messages(&mut self) {
        if self.order.ring.is_none() && self.may_discard() {
            spare(&mut self.switches, self.late.look(&self.order, &self.memories));
        }
    }

    /// Keeps the events of a time span that another agent found worth keeping.
    pub fn spare_for_another(&mut self, wanted: Spare) {
        self.switches.spare(wanted.span(), wanted.rank());
        if !wanted.is_ordinary() {
            self.switches.add_moved(wanted.span());
        }
    }

    /// The late messages so far, if a summary of them is due; never in a trial of less than a minute, and never if the study asks for
    /// no causes.
    pub fn summary(&mut self) -> Option<SoFar> {
        if !self.is_due(FIRST_SUMMARY_NS + self.summaries * SUMMARY_NS) {
            return None;
        }
        self.summaries += 1;
        self.live_causes.give_up();
        Some(SoFar { moved: self.switches.moved, ..self.late.so_far(self.t0_ns()) })
    }

    /// The round trips so far, if the order asks for them and something was answered or lost.
    pub fn figures(&mut self) -> Option<Figures> {
        self.figures.as_mut()?.look(&self.order, &self.memories)
    }

    /// Whether the trial measures messages with answers, and has run for this time, ns.
    fn is_due(&self, after_ns: i64) -> bool {
        let measures = self.switches.next_ns().is_some() && self.order.spec.measure.flow().is_none();
        measures && host::monotonic_ns() >= self.begun_ns.saturating_add(after_ns)
    }

    /// Time at which the first message was due, ns.
    fn t0_ns(&self) -> i64 {
        self.memories.first().map_or(0, |(_, memory)| memory.header().t0_ns.load(Acquire))
    }

    /// Looks for the causes of the worst incident since the last search, if a summary is due soon. Returns what was found and is not
    /// sent yet.
    pub fn causes(&mut self) -> Option<Message> {
        if self.is_due(FIRST_SUMMARY_NS + self.searches * SUMMARY_NS - SEARCH_NS) {
            self.searches += 1;
            let worst = self.late.take_worst();
            worst.into_iter().for_each(|(worst, ordinary)| self.search_at_sender(worst, ordinary));
        }
        self.live_causes.unsent()
    }

    fn search_at_sender(&mut self, worst: WorstIncident, ordinary: Vec<KeptRow>) {
        if !self.live_causes.has_cpu() {
            return self.live_causes.refuse();
        }
        if !self.live_causes.can_search() {
            return;
        }
        let due_ns = |row: &SenderRow| if row.intended_ns == NO_TIME { row.send_begin_ns } else { row.intended_ns };
        let spans = ordinary.iter().map(|kept| (due_ns(&kept.row), kept.row.receive_ns));
        let spans = std::iter::once((worst.incident.begin_ns, worst.incident.end_ns)).chain(spans);
        let seen = self.switches_within(&apart(spans.map(widened)));
        let after_ms = (worst.incident.begin_ns - self.t0_ns()) / 1_000_000;
        self.live_causes.search(Question::Sender(Box::new(worst), ordinary, after_ms), seen);
    }

    /// Looks for causes in a time in which the sender of another agent had no message.
    pub fn look_for_causes(&mut self, absence: Absence) {
        if !self.live_causes.has_cpu() {
            return self.live_causes.refuse();
        }
        let is_ring = self.order.ring.is_some();
        let memories = self.memories.iter().filter(|(_, memory)| !is_ring && !memory.echo().is_empty());
        let written = memories.filter_map(|(_, memory)| late_messages::received(memory, &absence)).next();
        let row = written.or_else(|| self.live_causes.remembered(&absence));
        if let Some(row) = row.filter(|_| self.live_causes.can_search()) {
            let seen = self.switches_within(&[widened((absence.begin_ns, absence.end_ns))]);
            self.live_causes.search(Question::Receiver(absence, row), seen);
        }
    }

    /// Takes a time span whose events the other agents should keep.
    pub fn unsent(&mut self) -> Option<Spare> {
        if self.may_discard() { self.late.unsent() } else { None }
    }

    /// Lets the senders end the trial early, if their memory is a ring.
    pub fn end_early(&mut self) {
        if self.draining {
            Drain::end_early(&self.memories);
        }
    }

    /// Frees the copies of rows of samples that the controller has on disk now.
    pub fn stored(&mut self, stored: Stored) {
        self.drain.stored(stored, &self.memories);
    }

    /// Sends the flow counts, and all rows of samples in the sample memory that were not sent yet, to the controller.
    pub fn collect(&mut self, controller: &mut Connection) -> io::Result<()> {
        self.draining = false;
        if !self.counts.is_empty() {
            let counts = self.counts.iter().map(|(_, memory)| memory.cells().read()).collect();
            controller.send(Message::Counted(counts))?;
        }
        self.drain.rest(&self.memories, controller)
    }

    /// Returns the thread switches of the trial's ends within the given time spans.
    pub fn switches_within(&mut self, windows: &[(i64, i64)]) -> Switches {
        let ends = self.order.ends.iter().map(|e| e.role.word().to_owned()).collect();
        Switches { ends, ..self.switches.within(windows) }
    }

    /// Ends a trial whose samples the controller has stored.
    pub fn finish(mut self) {
        self.pass_on(Message::Finish);
        for _ in 0..200 {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                _ => break,
            }
        }
        self.end();
    }

    fn end(mut self) {
        // Both calls fail only if the process is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for (_, memory) in self.memories {
            // SAFETY: the trial is over, and no reference into its memory is used any more.
            unsafe { memory.unmap() };
        }
        for (_, memory) in self.counts {
            // SAFETY: as above.
            unsafe { memory.unmap() };
        }
    }

    /// Writes the samples into the record if the controller has disappeared.
    pub fn rescue(mut self) {
        self.loads.end();
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.read_clocks();
        if let Some(dir) = self.order.rescue.clone() {
            for (index, end) in self.order.ends.iter().enumerate() {
                let (_, memory) = &self.memories[index];
                let (first, bytes) = self.drain.unsaved(index, memory);
                let t0 = memory.header().t0_ns.load(Acquire);
                let rows = Rows { role: end.role, first, bytes: &bytes, cut: true };
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
