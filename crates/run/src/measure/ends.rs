//! Opens, matches, runs and stops the ends of the measuring process.

use super::driver_report::{json, qos, reason};
use super::prepare::open_failed;
use super::stream::{LAUNCH_HELP, Stream};
use super::{SESSION, Stop, end_warnings, stages};
use crate::end_plan::EndPlan;
use crate::hot::*;
use crate::thread_policy;
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
use tailbound_wire::{EndDone, EndReady, Failed, Order, Role};

/// One end of a trial: its session, its end points and its threads.
pub(super) struct End<S: Sink> {
    pub(super) role: Role,
    pub(super) sink: Arc<S>,
    pub(super) session: &'static Session,
    /// End point that sends. A subscriber that does not answer has no writer.
    writer: Option<Endpoint>,
    /// End point that receives. A publisher that receives no answers has no reader.
    pub(super) reader: Option<Endpoint>,
    receiver: Arc<Receiver<S>>,
    door: Arc<Door<S>>,
    threads: Vec<JoinHandle<()>>,
    memory: Memory,
    opened_ns: i64,
}

/// All ends of a trial that run in this measuring process.
pub(super) struct Ends<C: Clock> {
    ping: Option<End<Ping<C>>>,
    pong: Option<End<Pong<C>>>,
    pub(super) publisher: Option<End<Publisher<C>>>,
    /// Subscriber of a flow. A process has at most one subscriber.
    pub(super) subscriber: Option<End<Subscriber<C>>>,
}

/// Time between two attempts to wake a receiving thread that has to end.
const WAKE_AGAIN: Duration = Duration::from_millis(1);

/// Longest time for the driver to send its last batch of messages.
const FLUSH: Duration = Duration::from_secs(5);

/// Maps the sample memory of the end with this index.
pub(super) fn memory(order: &Order, memories: &[OwnedFd], index: usize) -> Result<Memory, Failed> {
    let kind = order.ends[index].role.into();
    memories
        .get(index)
        .ok_or_else(|| std::io::Error::other("the supervisor gave no sample memory"))
        .and_then(|fd| Memory::map(fd, kind, order.ring.is_some(), true))
        .map_err(|e| {
            Failed::new(
                "sample_memory",
                ExitCode::MachineNotFit,
                format!("sample memory cannot be mapped: {e}"),
                "use fewer slots",
            )
        })
}

/// Maps the flow counts of the end with this index. The descriptors of flow counts follow the descriptors of the sample
/// memories.
pub(super) fn count_memory(order: &Order, memories: &[OwnedFd], index: usize) -> Result<FlowCells, Failed> {
    let no_counts = |e: &std::io::Error| {
        let text = format!("the memory for flow counts cannot be mapped: {e}");
        Failed::new("sample_memory", ExitCode::MachineNotFit, text, "use a shorter flow")
    };
    let given = memories.get(order.ends.len() + index);
    let fd = given.ok_or_else(|| no_counts(&std::io::Error::other("the supervisor gave no memory for flow counts")))?;
    let memory = FlowMemory::map(fd).map_err(|e| no_counts(&e))?;
    // The counts stay mapped until the process ends, because callbacks of the middleware may still count.
    Ok(memory.cells())
}

impl<C: Clock> Ends<C> {
    /// Opens all ends in the controller's order. `plans` has the driver settings of each end.
    pub fn open(
        order: &Order,
        plans: &[EndPlan],
        memories: &[OwnedFd],
        driver: &Driver,
        clock: C,
    ) -> Result<Self, Stop> {
        let mut ends = Ends { ping: None, pong: None, publisher: None, subscriber: None };
        // Ends that receive come first, so that their readers exist before the first writer looks for readers.
        let mut indices: Vec<usize> = (0..plans.len()).collect();
        indices.sort_by_key(|i| !plans[*i].role.receives());
        // Session that both ends of this process share.
        let mut shared = None;
        for index in indices {
            let plan = &plans[index];
            let memory = memory(order, memories, index)?;
            let opening = Opening { clock, order, plan, driver, shared };
            let session = match &order.spec.measure {
                Measure::Flow(flow) => {
                    let counts = count_memory(order, memories, index)?;
                    ends.open_flow(flow, opening, memory, counts)?
                }
                Measure::PingPong(p) if plan.role == Role::Ping => ends.open_ping(p, opening, memory)?,
                Measure::PingPong(_) => ends.open_pong(opening, memory)?,
            };
            shared = order.spec.is_one_session().then_some(session);
        }
        Ok(ends)
    }

    fn open_ping(&mut self, p: &PingPong, opening: Opening<'_, C>, memory: Memory) -> Result<&'static Session, Stop> {
        let (order, plan) = (opening.order, opening.plan);
        let pace = match order.spec.rate {
            Rate::Period(period) => {
                Pace::Open { period_ns: period.0, on_overrun: p.on_overrun, loops: p.length.loops() }
            }
            Rate::Max => Pace::StopAndWait { duration_ns: order.duration_ns },
        };
        let sink = |memory: &Memory, clock: C, writer: Option<Port>| {
            let (cells, header) = (memory.sender(), memory.header());
            let slots = (order.slots, order.warm_up);
            let writer = writer.expect("a ping end has a writer");
            Ping::new(clock, NoHook, writer, cells, header, plan.payload(), pace, slots, p.timeout.0)
        };
        Ok(self.ping.insert(opening.open(memory, BOTH, sink)?).session)
    }

    fn open_pong(&mut self, opening: Opening<'_, C>, memory: Memory) -> Result<&'static Session, Stop> {
        let sink = |memory: &Memory, clock: C, writer: Option<Port>| {
            let writer = writer.expect("a pong end has a writer");
            Pong { clock, writer, cells: memory.echo(), header: memory.header() }
        };
        Ok(self.pong.insert(opening.open(memory, BOTH, sink)?).session)
    }

    fn all(&self) -> impl Iterator<Item = &dyn AnyEnd> {
        // Ends that receive come first, so that they receive before any end sends.
        let receiving = [self.pong.as_ref().map(|e| e as &dyn AnyEnd), self.subscriber.as_ref().map(|e| e as _)];
        let sending = [self.ping.as_ref().map(|e| e as &dyn AnyEnd), self.publisher.as_ref().map(|e| e as _)];
        receiving.into_iter().chain(sending).flatten()
    }

    /// Driver session of the end with this role (for example ping); `None` = this process has no such end.
    pub fn session(&self, role: Role) -> Option<&'static Session> {
        self.all().find(|e| e.open().role == role).map(|e| e.open().session)
    }

    /// The session and the writer of the end with this role, and the times at which its network card received messages; `None` in the
    /// second member = the study does not ask for them.
    pub fn writer(&self, role: Role) -> Option<((&'static Session, Endpoint), Option<&'static CardReceipts>)> {
        let end = self.all().map(AnyEnd::open).find(|end| end.role == role)?;
        Some(((end.session, end.writer?), end.card_receipts))
    }

    /// Clock of the receiving end, if the driver scripts a clock for that end; `None` = the driver provides no such
    /// clock, or no end of this process receives.
    pub fn far_clock(&self) -> Option<tb_clock> {
        self.all().map(AnyEnd::open).find_map(|end| far_clock(end.role, end.session))
    }

    /// True if this process has an end that sends on schedule.
    pub fn has_sender(&self) -> bool {
        self.ping.is_some() || self.publisher.is_some()
    }

    /// Waits until all end points of this process are matched with their peers, at most for the match timeout. The end
    /// points are asked in turns, because they may wait for each other.
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
        // The reports have the sequence of the ends in the order.
        let of = |role: Role| self.all().map(AnyEnd::open).find(|e| e.role == role);
        order.ends.iter().filter_map(|e| of(e.role)).map(report).collect()
    }

    /// Runs the sending end on the calling thread. `each_second` is called about once a second of a scripted clock.
    pub fn run_sender(&self, spec: &TrialSpec, (t0_ns, stream): (i64, Option<&Stream>), each_second: &mut dyn FnMut()) {
        if let Some(end) = &self.publisher {
            end.sink.run_flow(t0_ns, spec.measure.timeout().0, || {
                if let Some(writer) = end.writer.filter(|_| end.sink.pace.batching) {
                    // Messages that cannot be flushed count as lost.
                    let _ = end.session.flush(writer, host::monotonic_ns() + FLUSH.as_nanos() as i64);
                }
            });
        }
        if let Some(end) = &self.ping {
            let t0_ns = stream.map_or(t0_ns, |stream| stream.t0_ns);
            if let Some(after_ns) = stream.and_then(|stream| stream.launch_after_ns) {
                end.sink.launch(after_ns);
            }
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

    /// Runs the executor of a pong end that is alone in this process. The executor runs on the calling thread until
    /// `ended`, which runs on another thread, returns.
    ///
    /// # Errors
    /// The thread that calls `ended` cannot be created.
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

    /// Stops all ends of this process and waits for their threads.
    pub fn stop(&mut self) {
        // Until now, late messages are still answered and late answers are still received. Senders stop first.
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

    /// Returns the results of all ends and the log of the middleware, and adds warnings.
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
                // The kernel also refuses messages in this way whose launch time has passed.
                let launches = order.spec.stream.is_some_and(|stream| stream.launch.is_some());
                let help = if launches { LAUNCH_HELP } else { "" };
                warnings.push(Warning::new("send_failed", Severity::Warning, text, help).at_end("ping"));
            }
            if end.sink.foreign() > 0 {
                let text =
                    format!("{} samples had a sequence number that does not belong to the trial", end.sink.foreign());
                warnings.push(
                    Warning::new(
                        "foreign_samples",
                        Severity::Invalid,
                        text,
                        "end the other program that writes to the topic of this trial",
                    )
                    .at_end("ping"),
                );
            }
            if let Some(missing) = end.sink.missing_loops() {
                let most = tailbound_model::Length::MOST_SLOTS_PER_LOOP;
                let text = format!(
                    "the trial ended {missing} loops early: the sender missed so many slots that the trial had {most} times as \
                     many slots as loops"
                );
                let help = "use a longer period, or `slots` in place of `loops`";
                warnings.push(Warning::new("loops_missing", Severity::Invalid, text, help).at_end("ping"));
            }
            if end.sink.ran_out_of_memory() {
                let text = "the trial ended earlier than planned because the sample memory was full";
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

    /// Destroys all end points of this measuring process.
    pub fn close(&self) {
        // The process ends next, so an end point that cannot be destroyed does no harm.
        for end in self.all().map(AnyEnd::open) {
            for ep in [end.reader, end.writer].into_iter().flatten() {
                let _ = end.session.destroy(ep);
            }
        }
    }
}

/// Properties that every opened end has: ping, pong, publisher or subscriber.
#[derive(Clone, Copy)]
struct Opened {
    role: Role,
    session: &'static Session,
    writer: Option<Endpoint>,
    reader: Option<Endpoint>,
    card_receipts: Option<&'static CardReceipts>,
    opened_ns: i64,
}

trait AnyEnd {
    fn open(&self) -> Opened;
}

impl<S: Sink> AnyEnd for End<S> {
    fn open(&self) -> Opened {
        let End { role, session, writer, reader, receiver, opened_ns, .. } = self;
        let (role, card_receipts, opened_ns) = (*role, receiver.card_receipts, *opened_ns);
        Opened { role, session, writer: *writer, reader: *reader, card_receipts, opened_ns }
    }
}

/// Clock of an end that receives, if the driver scripts a clock for that end; `None` = the driver provides no such
/// clock, or the end does not receive.
fn far_clock(role: Role, session: &Session) -> Option<tb_clock> {
    let far = session.far_clock().ok().flatten().filter(|_| role.receives());
    far.map(|clock| *clock.raw())
}

/// Says whether an end has a writer and whether it has a reader.
#[derive(Clone, Copy)]
pub(super) struct Points {
    pub writer: bool,
    pub reader: bool,
}

/// End points of an end that both sends and receives: a writer and a reader.
const BOTH: Points = Points { writer: true, reader: true };

/// Parameters for opening one end of a trial.
pub(super) struct Opening<'a, C> {
    pub clock: C,
    pub order: &'a Order,
    pub plan: &'a EndPlan,
    pub driver: &'a Driver,
    /// Session of another end of this process, if the ends of the process share one session.
    pub shared: Option<&'static Session>,
}

impl<C: Clock> Opening<'_, C> {
    /// Opens session, writer, end, reader and threads in this order, so that everything exists before the first
    /// callback.
    pub fn open<S: Sink>(
        self,
        memory: Memory,
        points: Points,
        sink: impl FnOnce(&Memory, C, Option<Port>) -> S,
    ) -> Result<End<S>, Stop> {
        let (role, opened_ns) = (self.plan.role, host::monotonic_ns());
        let door: Arc<Door<S>> = Arc::default();
        let session = self.session(&door)?;
        let _creating = thread_policy::during(c"create");
        let create = |kind, topic: &str, qos, tag| {
            session.create(kind, topic, self.plan.message_bytes, qos, tag).map_err(open_failed)
        };
        let plan = self.plan;
        let writer = points.writer.then(|| create(Kind::Writer, &plan.send_topic, &plan.writer_qos, 0)).transpose()?;
        let far = far_clock(role, session);
        let sink = sink(&memory, self.clock.of_far_end(far), writer.map(|ep| Port::new(session, ep)));
        let sink = Arc::new(sink);
        let (mailbox, card_receipts) = (self.mailbox(), stages::receipts(self.order, role));
        let receiver = Arc::new(Receiver { mailbox, card_receipts, ..Receiver::new(sink.clone()) });
        door.open(&receiver);
        let kind = Kind::Reader(plan.receive);
        let reader = points.reader.then(|| create(kind, &plan.receive_topic, &plan.reader_qos, 1)).transpose()?;
        let threads = self.threads(reader.map(|ep| Port::new(session, ep)), &receiver)?;
        Ok(End { role, sink, session, writer, reader, receiver, door, threads, memory, opened_ns })
    }

    /// Opens the driver session of an end, or returns the session that another end shares.
    fn session<S: Sink>(&self, door: &Arc<Door<S>>) -> Result<&'static Session, Failed> {
        if let Some(shared) = self.shared {
            return Ok(shared);
        }
        let _opening = thread_policy::during(c"open");
        let session = Session::open(self.driver, &self.plan.options, door.clone()).map_err(|e| {
            let has_failed_outside = e.code == tailbound_driver::Code::EIO;
            let mut failed = open_failed(e);
            if has_failed_outside && self.plan.is_secured() {
                failed.problem.remedy =
                    "check the certificates and keys that `security` names (`openssl verify`), and the addresses \
                     of this place (`ip address`)"
                        .into();
            }
            let log = door.log_text();
            if !log.is_empty() {
                failed.problem.what = format!("{}\n{}", failed.problem.what, log.trim_end());
            }
            failed
        })?;
        Ok(Box::leak(Box::new(session)))
    }

    /// Creates the mailbox between the receiving and the processing thread; `None` = the study asks for no hand-off.
    fn mailbox(&self) -> Option<Arc<Mailbox>> {
        // Only the pong end needs the payload in the mailbox, because it sends the payload back.
        let max = if self.plan.role == Role::Pong { self.plan.message_bytes as usize } else { 0 };
        match self.order.spec.measure.hand_off() {
            HandOff::None => None,
            HandOff::Thread { .. } => Some(Arc::new(Mailbox::new(max))),
        }
    }

    /// Starts the threads of an end that receive and process messages.
    fn threads<S: Sink>(
        &self,
        reader: Option<Port>,
        receiver: &Arc<Receiver<S>>,
    ) -> Result<Vec<JoinHandle<()>>, Failed> {
        let receive = self.order.spec.measure.receive();
        let mut threads = Vec::new();
        if let (Some(port), ReceiveMode::Block | ReceiveMode::Spin) = (reader, receive) {
            let receiver = receiver.clone();
            let spin = receive == ReceiveMode::Spin;
            let body = move || if spin { receiver.spin(&port) } else { receiver.block(&port) };
            threads.push(spawn("tb-receive", body)?);
        }
        let with_ping = self.plan.role == Role::Pong && self.order.spec.is_one_session();
        let own_executor = with_ping && self.order.spec.arrangement.is_some_and(|a| a.executors > 1);
        if let (Some(port), ReceiveMode::Executor, true) = (reader, receive, own_executor) {
            let (receiver, clock) = (receiver.clone(), self.clock);
            let body = move || Executor::new(clock, vec![(port, &*receiver)]).serve(&receiver.stop);
            threads.push(spawn("tb-executor", body)?);
        }
        if let (Some(mailbox), HandOff::Thread { cpus }) =
            (receiver.mailbox.clone(), self.order.spec.measure.hand_off())
        {
            threads.push(processing_thread(mailbox, receiver.sink.clone(), cpus.clone())?);
        }
        Ok(threads)
    }
}

/// Starts a thread of Tailbound with a timer slack of 1 ns, which is not inherited if the middleware keeps the default.
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Failed> {
    let failed = |e| Failed::new("thread", ExitCode::MachineNotFit, format!("thread {name} cannot be made: {e}"), "");
    let body = move || {
        // The main thread warns if the kernel refuses this.
        let _ = host::scheduling::set_timer_slack_1ns();
        // The first call is a system call, which must not be between two messages.
        thread_id();
        body();
    };
    std::thread::Builder::new().name(name.into()).spawn(body).map_err(failed)
}

/// Starts the thread that processes the messages in the mailbox, and waits until this thread runs on its CPUs.
fn processing_thread<S: Sink>(
    mailbox: Arc<Mailbox>,
    sink: Arc<S>,
    cpus: Option<CpuList>,
) -> Result<JoinHandle<()>, Failed> {
    let (ready, wait) = std::sync::mpsc::channel();
    let thread = spawn("tb-process", move || {
        let set = cpus.map_or(Ok(()), |cpus| host::scheduling::set_affinity(0, &cpus));
        let _ = ready.send(set);
        mailbox.serve(|arrival| sink.process(arrival));
    })?;
    wait.recv()
        .unwrap_or(Ok(()))
        .map_err(|e| Failed::new("scheduling", ExitCode::MachineNotFit, format!("hand_off: {e}"), ""))?;
    Ok(thread)
}

impl<S: Sink> End<S> {
    /// Reader and receiver of this end, in the form in which an executor uses them.
    fn served(&self) -> (Port, &dyn Serve) {
        let reader = self.reader.expect("this end uses an executor, but its driver created no reader");
        (Port::new(self.session, reader), &*self.receiver)
    }

    fn stop(&mut self) {
        self.receiver.stop.store(true, Release);
        let _ = self.session.wake();
        if let Some(mailbox) = &self.receiver.mailbox {
            mailbox.close();
        }
        for thread in self.threads.drain(..) {
            // Both ends may wait in one session, and a `wake` ends only one wait.
            while !thread.is_finished() {
                let _ = self.session.wake();
                std::thread::sleep(WAKE_AGAIN);
            }
            let _ = thread.join();
        }
    }

    pub(super) fn result(&self, order: &Order, warnings: &mut Vec<Warning>, log: &mut String) -> EndDone {
        let header = self.memory.header();
        // A trial that was asked to end early has ended by a full ring.
        let dropped = if header.ended_early.load(Acquire) == 0 { header.dropped.load(Relaxed) } else { 0 };
        let refused = header.refused.load(Relaxed);
        warnings.extend(end_warnings::of(self.role, order, header, dropped, self.receiver.failures()));
        log.push_str(&self.door.log_text());
        let rows = header.rows.load(Relaxed);
        EndDone {
            name: self.role.word().into(),
            t0_ns: header.t0_ns.load(Relaxed),
            scheduled: rows,
            rows,
            dropped,
            // A second thread that is too slow belongs to the system under test: all rows of samples are there, and the
            // messages count as lost.
            hand_off_dropped: self.receiver.mailbox.as_ref().map_or(0, |m| m.dropped.load(Relaxed)),
            answers_refused: refused,
            sent: 0,
            told: self
                .writer
                .filter(|_| order.spec.measure.flow().is_some())
                .and_then(|ep| json(self.session, ep, "flow")),
            stats: self.writer.or(self.reader).and_then(|ep| json(self.session, ep, "stats")),
            ..EndDone::default()
        }
    }
}
