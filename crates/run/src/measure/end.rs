//! The ends of this process: opened, matched, run, stopped.

use super::told::{json, qos, reason};
use super::{SESSION, Stop, failed, flow, prepare};
use crate::govern;
use crate::hot::*;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::JoinHandle;
use std::time::Duration;
use tailbound_abi::tb_clock;
use tailbound_driver::{Driver, Endpoint, Kind, Session};
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::{EndDone, EndOrder, EndReady, Failed, Order, Role};

/// One end: its session, its end points, its threads.
pub(super) struct End<S: Sink> {
    pub(super) role: Role,
    pub(super) sink: Arc<S>,
    pub(super) session: &'static Session,
    /// What it sends on; a subscriber that does not answer has none.
    writer: Option<Endpoint>,
    /// What it receives on; a publisher without answers has none.
    pub(super) reader: Option<Endpoint>,
    receiver: Arc<Receiver<S>>,
    door: Arc<Door<S>>,
    threads: Vec<JoinHandle<()>>,
    memory: Memory,
    opened_ns: i64,
}

/// All ends of this process.
pub(super) struct Ends<C: Clock> {
    ping: Option<End<Ping<C>>>,
    pong: Option<End<Pong<C>>>,
    pub(super) publisher: Option<End<Publisher<C>>>,
    /// One process has at most one.
    pub(super) subscriber: Option<End<Subscriber<C>>>,
}

/// How soon a thread that does not end is woken again.
const WAKE_AGAIN: Duration = Duration::from_millis(1);

/// How long the last batch may take to go out.
const FLUSH: Duration = Duration::from_secs(5);

fn topic(direction: &str, order: &Order) -> String {
    format!("tailbound_{direction}_{}_{}", order.run_id, order.trial)
}

pub(super) fn memory(order: &Order, memories: &[OwnedFd], index: usize) -> Result<Memory, Failed> {
    let kind = order.ends[index].role.into();
    memories
        .get(index)
        .ok_or_else(|| std::io::Error::other("the supervisor gave no sample memory"))
        .and_then(|fd| Memory::map(fd, kind, order.ring.is_some(), true))
        .map_err(|e| {
            failed(
                "sample_memory",
                ExitCode::MachineNotFit,
                format!("sample memory cannot be mapped: {e}"),
                "use fewer slots",
            )
        })
}

/// The counts of a flow lie behind the sample memories.
pub(super) fn count_memory(order: &Order, memories: &[OwnedFd], index: usize) -> Result<FlowCells, Failed> {
    let given = memories.get(order.ends.len() + index);
    let fd = given.ok_or_else(|| flow::no_counts(&std::io::Error::other("the supervisor gave none")))?;
    let memory = FlowMemory::map(fd).map_err(|e| flow::no_counts(&e))?;
    // Mapped for the life of the process: callbacks of the middleware may still count.
    Ok(memory.cells())
}

impl<C: Clock> Ends<C> {
    pub fn open(order: &Order, memories: &[OwnedFd], driver: &Driver, clock: C) -> Result<Self, Stop> {
        let mut ends = Ends { ping: None, pong: None, publisher: None, subscriber: None };
        let p = match &order.spec.measure {
            Measure::PingPong(p) => p.clone(),
            Measure::Flow(f) => {
                ends.open_flow(order, f, memories, driver, clock)?;
                return Ok(ends);
            }
        };
        let payload = order.spec.payload.0 as usize;
        // Both ends of this process on what the driver opens once.
        let mut shared = None;
        // The pong side first: its reader is there before the first ping writer looks for it.
        let mut indices: Vec<usize> = (0..order.ends.len()).collect();
        indices.sort_by_key(|i| order.ends[*i].role == Role::Ping);
        for index in indices {
            let end = &order.ends[index];
            let memory = memory(order, memories, index)?;
            match end.role {
                Role::Ping => {
                    let pace = match order.spec.rate {
                        Rate::Period(period) => Pace::Open { period_ns: period.0, on_overrun: p.on_overrun },
                        Rate::Max => Pace::StopAndWait { duration_ns: order.duration_ns },
                    };
                    let bytes: Box<[u8]> = (0..payload).map(|i| i as u8).collect();
                    let sink = |memory: &Memory, clock: C, writer: Option<Port>| {
                        let (cells, header) = (memory.sender(), memory.header());
                        let slots = (order.slots, order.warm_up);
                        let writer = writer.expect("a ping end has a writer");
                        Ping::new(clock, NoHook, writer, cells, header, bytes, pace, slots, p.timeout.0)
                    };
                    let opened = open_end(clock, order, (end, BOTH), driver, shared, memory, sink)?;
                    shared = order.spec.is_one_session().then_some(opened.session);
                    ends.ping = Some(opened);
                }
                Role::Pong | Role::Further(_) | Role::Publisher(_) => {
                    let sink = |memory: &Memory, clock: C, writer: Option<Port>| {
                        let writer = writer.expect("a pong end has a writer");
                        Pong { clock, writer, cells: memory.echo(), header: memory.header() }
                    };
                    let opened = open_end(clock, order, (end, BOTH), driver, shared, memory, sink)?;
                    shared = order.spec.is_one_session().then_some(opened.session);
                    ends.pong = Some(opened);
                }
            }
        }
        Ok(ends)
    }

    fn all(&self) -> impl Iterator<Item = &dyn AnyEnd> {
        // Those that receive come first: they listen before anybody sends.
        let receiving = [self.pong.as_ref().map(|e| e as &dyn AnyEnd), self.subscriber.as_ref().map(|e| e as _)];
        let sending = [self.ping.as_ref().map(|e| e as &dyn AnyEnd), self.publisher.as_ref().map(|e| e as _)];
        receiving.into_iter().chain(sending).flatten()
    }

    /// The session of an end of this process.
    pub fn session(&self, role: Role) -> Option<&'static Session> {
        self.all().find(|e| e.open().role == role).map(|e| e.open().session)
    }

    /// The clock of the end that receives, where a calibration gives it one of its own.
    pub fn far_clock(&self) -> Option<tb_clock> {
        self.all().map(AnyEnd::open).find_map(|end| far_clock(end.role, end.session))
    }

    pub fn has_ping(&self) -> bool {
        self.ping.is_some() || self.publisher.is_some()
    }

    /// Waits until all end points of this process have their peers, in turns, for they may wait for each other.
    pub fn wait_matched(&self, order: &Order) -> Vec<EndReady> {
        let deadline = host::monotonic_ns() + order.match_timeout_ns;
        let mut open: Vec<(Role, &'static Session, Endpoint, u32)> = Vec::new();
        for end in self.all().map(AnyEnd::open) {
            let readers = if end.role.receives() { 1 } else { order.spec.measure.subscribers() };
            let writers = if end.role.receives() { order.spec.measure.publishers() } else { 1 };
            let ends = [end.writer.map(|w| (w, readers)), end.reader.map(|r| (r, writers))];
            let mut ends: Vec<(Endpoint, u32)> = ends.into_iter().flatten().collect();
            if end.role.receives() {
                ends.reverse();
            }
            open.extend(ends.into_iter().map(|(ep, peers)| (end.role, end.session, ep, peers)));
        }
        let mut matched_at = BTreeMap::new();
        while !open.is_empty() && host::monotonic_ns() < deadline {
            open.retain(|(role, session, ep, peers)| {
                let turn = (host::monotonic_ns() + 20_000_000).min(deadline);
                let matched = session.wait_matched(*ep, *peers, turn).is_ok();
                if matched {
                    matched_at.insert(role.word(), host::monotonic_ns());
                }
                !matched
            });
        }
        let why = |role: Role| {
            let (_, session, ep, _) = open.iter().find(|(r, ..)| *r == role)?;
            Some(reason(&session.query(*ep, "unmatched").unwrap_or_else(|e| e.to_string())))
        };
        let report = |end: Opened| EndReady {
            name: end.role.word().into(),
            qos: qos(end.session, end.writer, end.reader),
            transport: json(end.session, SESSION, "transport"),
            peers: end.reader.or(end.writer).and_then(|ep| json(end.session, ep, "peers")),
            matched_after_ns: matched_at.get(end.role.word()).map(|t| t - end.opened_ns),
            opened_ns: end.opened_ns,
            unmatched: why(end.role),
            clock: far_clock(end.role, end.session).map_or_else(String::new, |_| "scripted".into()),
            ..EndReady::default()
        };
        // In the order of the order's ends.
        let of = |role: Role| self.all().map(AnyEnd::open).find(|e| e.role == role);
        order.ends.iter().filter_map(|e| of(e.role)).map(report).collect()
    }

    /// Runs the ping end on the calling thread; with an executor of its own the pong end has a thread beside it.
    pub fn run_ping(&self, spec: &TrialSpec, t0_ns: i64, each_second: &mut dyn FnMut()) {
        if let Some(end) = &self.publisher {
            end.sink.run_flow(t0_ns, spec.measure.timeout().0, || {
                if let Some(writer) = end.writer.filter(|_| end.sink.pace.batching) {
                    // What cannot be pushed out is counted as lost.
                    let _ = end.session.flush(writer, host::monotonic_ns() + FLUSH.as_nanos() as i64);
                }
            });
        }
        if let Some(end) = &self.ping {
            let scheduled = match spec.measure.receive() {
                ReceiveMode::Executor => {
                    let mut served: Vec<(Port, &dyn Serve)> = vec![end.served()];
                    if spec.arrangement.is_some_and(|a| a.executors == 1) {
                        served.extend(self.pong.as_ref().map(End::served));
                    }
                    end.sink.run_with(t0_ns, each_second, &mut Executor::new(end.sink.clock, served))
                }
                _ => end.sink.run(t0_ns, each_second),
            };
            end.sink.header.rows.store(scheduled, Release);
        }
    }

    /// The pong end alone in this process, with an executor: serves on the calling thread until `ended` returns.
    ///
    /// # Errors
    /// The thread that waits for the end cannot be made.
    pub fn serve_pong(&self, ended: impl FnOnce() + Send) -> std::io::Result<()> {
        let Some(end) = &self.pong else {
            ended();
            return Ok(());
        };
        let served = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let control = std::thread::Builder::new().name("tb-control".into()).spawn_scoped(scope, || {
                ended();
                end.receiver.stop.store(true, Release);
                while !served.load(Acquire) {
                    let _ = end.session.wake();
                    std::thread::sleep(WAKE_AGAIN);
                }
            });
            if control.is_ok() {
                Executor::new(end.sink.clock, vec![end.served()]).serve(&end.receiver.stop);
            }
            served.store(true, Release);
            control.map(drop)
        })
    }

    pub fn stop(&mut self) {
        // Answers on their way are still echoed and taken until here; then both sides stop.
        if let Some(end) = &mut self.ping {
            end.stop();
        }
        if let Some(end) = &mut self.publisher {
            end.stop();
        }
        if let Some(end) = &mut self.pong {
            end.stop();
        }
        if let Some(end) = &mut self.subscriber {
            end.stop();
            end.sink.end();
        }
    }

    pub fn results(&self, order: &Order, warnings: &mut Vec<Warning>) -> (Vec<EndDone>, String) {
        let mut done = Vec::new();
        let mut log = String::new();
        if let Some(end) = &self.ping {
            done.push(end.result(order, warnings, &mut log));
            let (code, not_sent) = end.sink.send_failures();
            if code != 0 {
                let text = format!(
                    "{not_sent} slots were not sent; the driver's last refusal: {}",
                    tailbound_driver::Code(code)
                );
                warnings.push(Warning::new("send_failed", Severity::Warning, text, "").at_end("ping"));
            }
            if end.sink.foreign() > 0 {
                let text = format!("{} samples carried a sequence number outside the trial", end.sink.foreign());
                warnings.push(
                    Warning::new(
                        "foreign_samples",
                        Severity::Invalid,
                        text,
                        "another program writes to this trial's topic",
                    )
                    .at_end("ping"),
                );
            }
            if end.sink.ran_out_of_memory() {
                let text = "the trial ended before its time because the sample memory was full";
                warnings.push(
                    Warning::new("buffer_full", Severity::Invalid, text, "ask for `slots` in place of `duration`")
                        .at_end("ping"),
                );
            }
        }
        if let Some(end) = &self.pong {
            done.push(end.result(order, warnings, &mut log));
        }
        done.extend(self.flow_results(order, warnings, &mut log));
        (done, log)
    }

    pub fn close(&self) {
        // The process ends next: a driver that cannot destroy an end point cannot hurt anything any more.
        for end in self.all().map(AnyEnd::open) {
            for ep in [end.reader, end.writer].into_iter().flatten() {
                let _ = end.session.destroy(ep);
            }
        }
    }
}

/// What every end has, whatever it does.
#[derive(Clone, Copy)]
struct Opened {
    role: Role,
    session: &'static Session,
    writer: Option<Endpoint>,
    reader: Option<Endpoint>,
    opened_ns: i64,
}

trait AnyEnd {
    fn open(&self) -> Opened;
}

impl<S: Sink> AnyEnd for End<S> {
    fn open(&self) -> Opened {
        let End { role, session, writer, reader, opened_ns, .. } = self;
        Opened { role: *role, session, writer: *writer, reader: *reader, opened_ns: *opened_ns }
    }
}

/// The clock of an end that receives, where a calibration gives it one of its own.
fn far_clock(role: Role, session: &Session) -> Option<tb_clock> {
    let far = session.far_clock().ok().flatten().filter(|_| role.receives());
    far.map(|clock| *clock.raw())
}

/// Whether an end has a writer, and whether it has a reader.
type Points = (bool, bool);
const BOTH: Points = (true, true);

/// Opens session, writer, end, reader and threads, in this order: a callback finds everything in place.
pub(super) fn open_end<S: Sink, C: Clock>(
    clock: C,
    order: &Order,
    (end, (writes, reads)): (&EndOrder, Points),
    driver: &Driver,
    shared: Option<&'static Session>,
    memory: Memory,
    sink: impl FnOnce(&Memory, C, Option<Port>) -> S,
) -> Result<End<S>, Stop> {
    let (receive, hand_off) = (order.spec.measure.receive(), order.spec.measure.hand_off());
    let opened_ns = host::monotonic_ns();
    let door: Arc<Door<S>> = Arc::default();
    let (to, from) = match end.role {
        Role::Ping | Role::Publisher(_) => ("ping", "pong"),
        Role::Pong | Role::Further(_) => ("pong", "ping"),
    };
    let opening = govern::during(c"open");
    let open = || Session::open(driver, &prepare::open_options(order, end, driver), door.clone());
    let opened = shared.map_or_else(|| open().map(|s| &*Box::leak(Box::new(s))), Ok);
    let session: &'static Session = opened.map_err(|e| {
        let mut failed = prepare::open_failed(e);
        let log = door.log_text();
        if !log.is_empty() {
            failed.text = format!("{}\n{}", failed.text, log.trim_end());
        }
        failed
    })?;
    drop(opening);
    let _creating = govern::during(c"create");
    let max = order.spec.message_octets();
    let create = |kind, topic: &str, of_writer, tag| {
        let qos = prepare::policies(order, end.role, of_writer);
        session.create(kind, topic, max, &qos, tag).map_err(prepare::open_failed)
    };
    let writer = writes.then(|| create(Kind::Writer, &topic(to, order), true, 0)).transpose()?;
    let far = far_clock(end.role, session);
    let sink = Arc::new(sink(&memory, clock.of_far_end(far), writer.map(|ep| Port::new(session, ep))));
    let mailbox = match hand_off {
        HandOff::None => None,
        // Only the pong end sends back what it was handed.
        HandOff::Thread { .. } if end.role == Role::Pong => Some(Arc::new(Mailbox::new(max as usize))),
        HandOff::Thread { .. } => Some(Arc::new(Mailbox::new(0))),
    };
    let receiver = Arc::new(Receiver { sink: sink.clone(), mailbox, stop: AtomicBool::new(false) });
    door.open(&receiver);
    let mode = prepare::mode(receive);
    let reader = reads.then(|| create(Kind::Reader(mode), &topic(from, order), false, 1)).transpose()?;
    let mut threads = Vec::new();
    let port = reader.map(|ep| Port::new(session, ep));
    let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new()
            .name(name.into())
            .spawn(body)
            .map_err(|e| failed("thread", ExitCode::MachineNotFit, format!("thread {name} cannot be made: {e}"), ""))
    };
    if let (Some(port), ReceiveMode::Block | ReceiveMode::Spin) = (port, receive) {
        let receiver = receiver.clone();
        let spin = receive == ReceiveMode::Spin;
        threads.push(spawn(
            "tb-receive",
            Box::new(move || if spin { receiver.spin(&port) } else { receiver.block(&port) }),
        )?);
    }
    let beside_ping = end.role == Role::Pong && order.spec.is_one_session();
    let own_executor = beside_ping && order.spec.arrangement.is_some_and(|a| a.executors > 1);
    if let (Some(port), ReceiveMode::Executor, true) = (port, receive, own_executor) {
        let (receiver, clock) = (receiver.clone(), clock);
        let body = move || Executor::new(clock, vec![(port, &*receiver)]).serve(&receiver.stop);
        threads.push(spawn("tb-executor", Box::new(body))?);
    }
    if let (Some(mailbox), HandOff::Thread { cpus }) = (receiver.mailbox.clone(), hand_off) {
        let (sink, cpus) = (sink.clone(), cpus.clone());
        let (ready, wait) = std::sync::mpsc::channel();
        threads.push(spawn(
            "tb-process",
            Box::new(move || {
                let set = cpus.map_or(Ok(()), |cpus| host::scheduling::set_affinity(0, &cpus));
                let _ = ready.send(set);
                mailbox.serve(|arrival| sink.process(arrival));
            }),
        )?);
        wait.recv()
            .unwrap_or(Ok(()))
            .map_err(|e| failed("scheduling", ExitCode::MachineNotFit, format!("hand_off: {e}"), ""))?;
    }
    Ok(End { role: end.role, sink, session, writer, reader, receiver, door, threads, memory, opened_ns })
}

impl<S: Sink> End<S> {
    /// What an executor serves of this end.
    fn served(&self) -> (Port, &dyn Serve) {
        let reader = self.reader.expect("an end that an executor serves has a reader");
        (Port::new(self.session, reader), &*self.receiver)
    }

    fn stop(&mut self) {
        self.receiver.stop.store(true, Release);
        let _ = self.session.wake();
        if let Some(mailbox) = &self.receiver.mailbox {
            mailbox.close();
        }
        for thread in self.threads.drain(..) {
            // Both ends may wait in one session, and one `wake` ends one wait.
            while !thread.is_finished() {
                let _ = self.session.wake();
                std::thread::sleep(WAKE_AGAIN);
            }
            let _ = thread.join();
        }
    }

    pub(super) fn result(&self, order: &Order, warnings: &mut Vec<Warning>, log: &mut String) -> EndDone {
        let header = self.memory.header();
        let handed = self.receiver.mailbox.as_ref().map_or(0, |m| m.dropped.load(Relaxed));
        let dropped = header.dropped.load(Relaxed) + handed;
        let mut warn = |code, severity, text, mend| {
            warnings.push(Warning::new(code, severity, text, mend).at_end(self.role.word()));
        };
        match (dropped, order.ring.is_some()) {
            (0, _) => {}
            (_, false) => {
                let text = format!("{dropped} rows did not fit into the sample memory");
                warn("buffer_full", Severity::Invalid, text, "");
            }
            (_, true) => {
                let what = if !self.role.receives() { "slots were not sent" } else { "rows were not kept" };
                let text = format!("{dropped} {what}: the samples in memory were not stored in time");
                let mend = "something kept the agent or the controller from its CPU, or the record lies on a slow disk";
                warn("buffer_full", Severity::Invalid, text, mend);
            }
        }
        let late = header.late.load(Relaxed);
        if late > 0 {
            let after = Nanos(crate::live::settle_ns(&order.spec));
            let text = format!(
                "{late} answers came more than {after} after their slot was sent, which had been stored by then"
            );
            warn("late_answers", Severity::Warning, text, "use a longer timeout, or `collect: after`");
        }
        let raced = header.raced.load(Relaxed);
        if raced > 0 {
            let text = format!("{raced} answers came at the very moment at which their slot was stored");
            warn("late_answers", Severity::Invalid, text, "use a longer timeout, or `collect: after`");
        }
        let refused = header.refused.load(Relaxed);
        if refused > 0 {
            let code = tailbound_driver::Code(header.refusal.load(Relaxed) as i32);
            let text = format!("{refused} answers were not sent; the driver's last refusal: {code}");
            warnings.push(Warning::new("send_failed", Severity::Warning, text, "").at_end(self.role.word()));
        }
        log.push_str(&self.door.log_text());
        let rows = header.rows.load(Relaxed);
        EndDone {
            name: self.role.word().into(),
            t0_ns: header.t0_ns.load(Relaxed),
            scheduled: rows,
            rows,
            dropped,
            sent: 0,
            told: self
                .writer
                .filter(|_| order.spec.measure.flow().is_some())
                .and_then(|ep| json(self.session, ep, "flow")),
            stats: self.writer.or(self.reader).and_then(|ep| json(self.session, ep, "stats")),
            clock: Vec::new(),
        }
    }
}
