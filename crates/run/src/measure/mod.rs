//! The measuring process: it sets its scheduling, opens the driver, runs the hot loops and reports the results.
//!
//! Each trial has its own process, so that neither state of the middleware nor a delayed message reaches the next
//! trial. The process exchanges messages with its supervisor over one socket, and is silent between the messages `go`
//! and `done`.

mod driver_report;
mod end_warnings;
mod ends;
mod flow_ends;
mod prepare;
mod stages;
mod stream;
mod threads;
mod topic_loads;

use crate::connection::Connection;
use crate::end_plan::{DriverSource, EndPlan, with_driver_list};
use crate::hot::{Clock, Machine, Scripted, thread_id};
use crate::thread_policy;
use driver_report::json;
use ends::Ends;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use stream::Stream;
use tailbound_driver::{Driver, Endpoint, LoadError, Session, Silent};
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::{Done, Failed, Message, Order, Prepared, Role};
use topic_loads::TopicLoads;

/// Runs the ends of one trial. `socket` is connected to the supervisor. Returns the exit code of the process.
pub fn main(socket: File, memories: Vec<OwnedFd>, drivers: DriverSource) -> i32 {
    let Ok(output) = socket.try_clone() else { return 1 };
    let mut connection = Connection::new(socket, output);
    let order = match connection.receive() {
        Ok(Some(Message::Prepare(order))) => *order,
        _ => return 1,
    };
    match serve(&mut connection, &order, memories, drivers) {
        Ok(()) => 0,
        Err(Stop::Failed(failed)) => {
            // The supervisor reports the failure to the controller. If the supervisor is gone, nobody can be informed.
            let _ = connection.send(Message::Failed(failed));
            let _ = connection.receive();
            1
        }
        Err(Stop::Io(_)) => 1,
    }
}

/// Reason why a trial of the measuring process ends early.
enum Stop {
    /// The trial failed; the error is shown to the user.
    Failed(Failed),
    /// The connection between measuring process and supervisor is broken.
    Io(#[allow(dead_code)] io::Error),
}

impl From<io::Error> for Stop {
    fn from(e: io::Error) -> Stop {
        Stop::Io(e)
    }
}

impl From<Failed> for Stop {
    fn from(f: Failed) -> Stop {
        Stop::Failed(f)
    }
}

fn serve(
    connection: &mut Connection,
    order: &Order,
    memories: Vec<OwnedFd>,
    drivers: DriverSource,
) -> Result<(), Stop> {
    let ready = prepare::process(order)?;
    let no_driver = |e: LoadError| {
        let Problem { what, remedy, .. } = with_driver_list(&e);
        Failed::new("driver_load", ExitCode::RunFailed, what, remedy)
    };
    let driver: Driver = drivers(&order.spec.driver.name).map_err(no_driver)?;
    prepare::thread_policies(order, &driver)?;
    prepare::check_limits(order, &driver)?;
    let plan = |end| EndPlan::new(order, end, driver.description());
    let plans: Result<Vec<EndPlan>, Problem> = order.ends.iter().map(plan).collect();
    let plans = plans.map_err(|problem| Failed::of(ExitCode::RunFailed, problem))?;
    let trial = Trial { connection, order, plans, memories, driver: &driver };
    let scripted = driver.description().has("scripted_clock")
        && order.spec.driver.options.get("clock").is_some_and(|c| c == "scripted");
    if !scripted {
        return trial.run(Machine, ready);
    }
    // The type of the clock decides the type of the loops, so the driver is asked for its clock before the ends are
    // opened.
    let session = Session::open(&driver, &trial.plans[0].options, Arc::new(Silent)).map_err(prepare::open_failed)?;
    let session: &'static Session = Box::leak(Box::new(session));
    let clock = session.clock().ok().flatten().and_then(|c| Scripted::new(*c.raw())).ok_or_else(|| {
        Failed::new("driver_clock", ExitCode::RunFailed, "the driver's scripted clock is incomplete", "")
    })?;
    trial.run(clock, ready)
}

/// Scheduling and memory settings of the process before the driver is opened, with warnings.
struct ProcessReady {
    memory_locked: bool,
    timer_slack_ns: Option<u64>,
    warnings: Vec<Warning>,
}

/// The ends of one trial that run in this process.
struct Trial<'a> {
    connection: &'a mut Connection,
    order: &'a Order,
    plans: Vec<EndPlan>,
    memories: Vec<OwnedFd>,
    driver: &'a Driver,
}

/// Readings of the difference CLOCK_REALTIME - CLOCK_MONOTONIC of the scripted clocks of both ends.
#[derive(Default)]
struct ScriptedReadings {
    own: Vec<ClockOffset>,
    far: Vec<ClockOffset>,
}

impl Trial<'_> {
    fn run<C: Clock>(mut self, clock: C, mut ready: ProcessReady) -> Result<(), Stop> {
        let mut ends = Ends::open(self.order, &self.plans, &self.memories, self.driver, clock)?;
        if self.order.spec.middleware.default_timer_slack {
            // The threads of the middleware exist now, and have the default.
            prepare::timer_slack(self.order, &mut ready);
        }
        let mut loads = TopicLoads::start(self.order, &self.plans, |role| ends.session(role))?;
        let (table, unmatched) = self.report_prepared::<C>(&ends, ready)?;
        let mut stream = None;
        let readings = self.measure(clock, &ends, (&mut loads, &mut stream), unmatched)?;
        let loads = loads.end();
        ends.stop();
        self.report_done(&ends, table, loads, (&readings, stream))?;
        wait_for(self.connection, &Message::Finish)?;
        ends.close();
        self.connection.send(Message::Finished)?;
        Ok(())
    }

    /// Waits until the ends are matched, sets and checks the scheduling of all threads, and reports the state to the
    /// supervisor. Returns the thread table, and whether an end is not matched.
    fn report_prepared<C: Clock>(
        &mut self,
        ends: &Ends<C>,
        mut ready: ProcessReady,
    ) -> Result<(ThreadTable, bool), Stop> {
        let (order, driver) = (self.order, self.driver);
        let mut reports = ends.wait_matched(order);
        for report in &mut reports {
            report.memory_locked = ready.memory_locked;
            report.timer_slack_ns = ready.timer_slack_ns;
            ready.warnings.extend(prepare::qos_differences(order, report));
        }
        ready.warnings.extend(prepare::options_without_effect(order));
        let unmatched = reports.iter().any(|r| r.unmatched.is_some());
        let table = threads::table(order, driver.description())?;
        let tids: Vec<_> = table.before.iter().map(|r| (r.tid, r.role.clone(), threads::is_middleware(r))).collect();
        if let Some(refused) = thread_policy::apply_deadlines(&tids).first() {
            let end = order.ends[0].role.word();
            let text = format!("{end}: {refused}");
            return Err(Failed::new("scheduling", ExitCode::MachineNotFit, text, "").into());
        }
        // The table is read again, because deadlines were set after the first reading.
        let table = threads::table(order, driver.description())?;
        ready.warnings.extend(threads::differences(order, driver.name(), &table.before));
        self.connection.send(Message::Prepared(Box::new(Prepared {
            ends: reports,
            threads: table.clone(),
            warnings: ready.warnings,
            driver: serde_json::to_value(driver.description()).ok(),
            memory_fds: Vec::new(),
            scripted_clock: C::SCRIPTED,
        })))?;
        Ok((table, unmatched))
    }

    /// Waits for the start message, and runs the ends until they are done.
    fn measure<C: Clock>(
        &mut self,
        clock: C,
        ends: &Ends<C>,
        (loads, stream): (&mut TopicLoads, &mut Option<Stream>),
        unmatched: bool,
    ) -> Result<ScriptedReadings, Stop> {
        let mut readings = ScriptedReadings::default();
        let far = ends.far_clock().map(|far| clock.of_far_end(Some(far)));
        // If the difference of the clocks overflows, the driver gives no timestamps that must be converted.
        let far = far.filter(|far| clock.realtime().checked_sub(far.now()).is_some());
        // If another end never found its peer, the message `stop` arrives instead of `go`.
        let (go, at) = match self.connection.receive()? {
            Some(Message::Go) => (true, None),
            Some(Message::GoAt(at)) => (true, Some(at)),
            _ => (false, None),
        };
        // The name that `top` and the thread table show from here on.
        let name = CString::new(format!("tb-{}", self.order.ends[0].role.word())).unwrap_or_default();
        let _ = nix::sys::prctl::set_name(&name);
        // The first call is a system call, which must not be between two messages.
        thread_id();
        if !go || unmatched {
            return Ok(readings);
        }
        let mut reading = || {
            if C::SCRIPTED {
                let reading = |of: C| host::clock::read_offset_with(|| of.now(), || of.realtime());
                readings.own.push(reading(clock));
                readings.far.extend(far.map(reading));
            }
        };
        reading();
        loads.go();
        if ends.has_sender() {
            // Time for the start message to reach the other end, and for this thread to fall asleep once.
            let t0 = at.unwrap_or_else(|| clock.now() + if C::SCRIPTED { 1_000_000 } else { 50_000_000 });
            *stream = stream::begin(self.order, t0)?;
            ends.run_sender(&self.order.spec, (t0, stream.as_ref()), &mut reading);
        } else if self.order.spec.measure.flow().is_some() {
            ends.await_messages(wait_for_end(self.connection)?);
        } else if self.order.spec.measure.receive() == ReceiveMode::Executor {
            let mut ended = Ok(());
            let connection = &mut *self.connection;
            ends.serve_pong(|| ended = wait_for(connection, &Message::Stop))?;
            ended?;
        } else {
            wait_for(self.connection, &Message::Stop)?;
        }
        reading();
        Ok(readings)
    }

    /// Reports the results of the ends to the supervisor. The supervisor adds the results of loads that run as
    /// processes, and the resources of this process.
    fn report_done<C: Clock>(
        &mut self,
        ends: &Ends<C>,
        mut table: ThreadTable,
        loads: Vec<LoadDone>,
        (readings, stream): (&ScriptedReadings, Option<Stream>),
    ) -> Result<(), Stop> {
        let (order, driver) = (self.order, self.driver);
        let after = threads::table(order, driver.description())?;
        (table.after, table.after_ns) = (after.before, after.before_ns);
        let mut warnings = threads::differences(order, driver.name(), &table.after);
        let (mut done, log) = ends.results(order, &mut warnings);
        if let (Some(stream), Some(end)) = (stream, done.iter_mut().find(|end| end.name == Role::Ping.word())) {
            let launches = ends.writer(Role::Ping).and_then(|((session, writer), _)| json(session, writer, "launch"));
            end.stream = Some(stream.end(order, launches.as_ref(), &mut warnings));
        }
        let has_far = ends.far_clock().is_some() && !readings.far.is_empty();
        for end in &mut done {
            let far = has_far && order.ends.iter().any(|e| e.role.receives() && e.role.word() == end.name);
            end.clock.clone_from(if far { &readings.far } else { &readings.own });
        }
        for end in order.ends.iter().map(|end| end.role) {
            if let Some(of_writer) = ends.writer(end) {
                stages::send(self.connection, end.word(), of_writer, &mut warnings)?;
            }
        }
        let done = Done { ends: done, threads: table, warnings, loads, log, ..Done::default() };
        self.connection.send(Message::Done(Box::new(done)))?;
        Ok(())
    }
}

fn wait_for(connection: &mut Connection, wanted: &Message) -> io::Result<()> {
    loop {
        match connection.receive()? {
            Some(message) if message == *wanted => return Ok(()),
            Some(_) => {}
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Waits until the publishers of a flow are done. Returns the number of messages that they sent; `None` = the trial was
/// aborted.
fn wait_for_end(connection: &mut Connection) -> io::Result<Option<u64>> {
    loop {
        match connection.receive()? {
            Some(Message::Sent(messages)) => return Ok(Some(messages)),
            Some(Message::Stop) => return Ok(None),
            Some(_) => {}
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Value that queries to the driver use in place of an end point to ask about the whole session.
const SESSION: Endpoint = Endpoint::SESSION;
