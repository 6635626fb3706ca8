//! The measuring process: opens the driver, takes its place, runs the hot loops, says how it went.
//!
//! One process per trial, so that no middleware state and no late message of one trial reaches the next. It speaks with its
//! supervisor over one socket and is silent between `go` and `done`.

mod beside;
mod end;
mod flow;
mod prepare;
mod threads;
mod told;

use crate::govern;
use crate::hot::{Clock, Machine, Scripted};
use crate::pipe::Connection;
use beside::Beside;
use end::Ends;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tailbound_driver::{Driver, Endpoint, Kv, LoadError, Session, Silent};
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::{Done, Failed, Message, Order, Prepared};

/// Finds a driver by name: those that are linked in, then files.
pub type DriverSource = fn(&str) -> Result<Driver, LoadError>;

/// Runs one trial's ends over `socket`; returns the process's exit code.
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
            // The supervisor tells the controller; if it is gone there is nobody to tell.
            let _ = connection.send(Message::Failed(failed));
            let _ = connection.receive();
            1
        }
        Err(Stop::Io(_)) => 1,
    }
}

/// Why a trial ends early.
enum Stop {
    /// Something that a person can be told.
    Failed(Failed),
    /// The supervisor is gone.
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

fn failed(code: &str, exit: ExitCode, text: impl ToString, mend: impl ToString) -> Failed {
    Failed { code: code.into(), text: text.to_string(), mend: mend.to_string(), exit: exit as u8 }
}

fn serve(
    connection: &mut Connection,
    order: &Order,
    memories: Vec<OwnedFd>,
    drivers: DriverSource,
) -> Result<(), Stop> {
    let ready = prepare::process(order)?;
    let driver = drivers(&order.spec.driver.name)
        .map_err(|e| failed("driver_load", ExitCode::RunFailed, e, "`tailbound driver list` shows what can be used"))?;
    prepare::roles(order, &driver)?;
    prepare::check_limits(order, &driver)?;
    let scripted = driver.description().has("scripted_clock")
        && order.spec.driver.options.get("clock").is_some_and(|c| c == "scripted");
    if !scripted {
        return trial(connection, order, &memories, &driver, Machine, ready);
    }
    // The clock's type decides the loops' type, so it is asked for before the sessions that use it are opened.
    let kv: Kv = prepare::open_options(order, &order.ends[0], &driver);
    let session = Session::open(&driver, &kv, Arc::new(Silent)).map_err(prepare::open_failed)?;
    let session: &'static Session = Box::leak(Box::new(session));
    let clock =
        session.clock().ok().flatten().and_then(|c| Scripted::new(*c.raw())).ok_or_else(|| {
            failed("driver_clock", ExitCode::RunFailed, "the driver's scripted clock is incomplete", "")
        })?;
    trial(connection, order, &memories, &driver, clock, ready)
}

/// What `prepare::process` found.
struct ProcessReady {
    memory_locked: bool,
    timer_slack_ns: Option<u64>,
    warnings: Vec<Warning>,
}

fn trial<C: Clock>(
    connection: &mut Connection,
    order: &Order,
    memories: &[OwnedFd],
    driver: &Driver,
    clock: C,
    mut ready: ProcessReady,
) -> Result<(), Stop> {
    let mut ends = Ends::open(order, memories, driver, clock)?;
    let mut beside = Beside::start(order, |role| ends.session(role))?;
    let mut reports = ends.wait_matched(order);
    for report in &mut reports {
        report.memory_locked = ready.memory_locked;
        report.timer_slack_ns = ready.timer_slack_ns;
        ready.warnings.extend(prepare::qos_differences(order, report));
    }
    ready.warnings.extend(prepare::options_without_effect(order));
    let unmatched = reports.iter().any(|r| r.unmatched.is_some());
    let mut table = threads::table(order, driver.description())?;
    let tids: Vec<_> = table.before.iter().map(|r| (r.tid, r.role.clone(), threads::is_middleware(r))).collect();
    if let Some(refused) = govern::settle(&tids).first() {
        let end = order.ends[0].role.word();
        return Err(failed("scheduling", ExitCode::MachineNotFit, format!("{end}: {refused}"), "").into());
    }
    // Read back: deadlines were set last.
    table = threads::table(order, driver.description())?;
    ready.warnings.extend(threads::differences(order, driver.name(), &table.before));
    connection.send(Message::Prepared(Box::new(Prepared {
        ends: reports,
        threads: table.clone(),
        warnings: ready.warnings,
        driver: serde_json::to_value(driver.description()).ok(),
        memory_fds: Vec::new(),
        scripted_clock: C::SCRIPTED,
    })))?;

    let (mut track, mut far_track) = (Vec::new(), Vec::new());
    let far = ends.far_clock().map(|far| clock.of_far_end(Some(far)));
    // One so far away that there is no difference has no stamps to convert: its driver refuses them.
    let far = far.filter(|far| clock.realtime().checked_sub(far.now()).is_some());
    // `stop` in place of `go`: another end never met its peer.
    let (go, at) = match connection.receive()? {
        Some(Message::Go) => (true, None),
        Some(Message::GoAt(at)) => (true, Some(at)),
        _ => (false, None),
    };
    // What `top` and the thread table show from here on.
    let name = CString::new(format!("tb-{}", order.ends[0].role.word())).unwrap_or_default();
    let _ = nix::sys::prctl::set_name(&name);
    if go && !unmatched {
        let mut reading = || {
            if C::SCRIPTED {
                let reading = |of: C| host::clock::read_offset_with(|| of.now(), || of.realtime());
                track.push(reading(clock));
                far_track.extend(far.map(reading));
            }
        };
        reading();
        beside.go();
        if ends.has_ping() {
            // Time for the controller's word to reach the other end, and for this thread to fall asleep once.
            let t0 = at.unwrap_or_else(|| clock.now() + if C::SCRIPTED { 1_000_000 } else { 50_000_000 });
            ends.run_ping(&order.spec, t0, &mut reading);
        } else if order.spec.measure.flow().is_some() {
            ends.subscribe(wait_for_end(connection)?);
        } else if order.spec.measure.receive() == ReceiveMode::Executor {
            let mut ended = Ok(());
            ends.serve_pong(|| ended = wait_for(connection, &Message::Stop))?;
            ended?;
        } else {
            wait_for(connection, &Message::Stop)?;
        }
        reading();
    }
    let loads = beside.end();
    ends.stop();
    let after = threads::table(order, driver.description())?;
    (table.after, table.after_ns) = (after.before, after.before_ns);
    let mut warnings = threads::differences(order, driver.name(), &table.after);
    let (mut done, log) = ends.results(order, &mut warnings);
    for end in &mut done {
        let receives = far.is_some() && order.ends.iter().any(|e| e.role.receives() && e.role.word() == end.name);
        end.clock.clone_from(if receives { &far_track } else { &track });
    }
    // The supervisor adds what its loads did, and what this process has open.
    let done = Done { ends: done, threads: table, warnings, loads, log, ..Done::default() };
    connection.send(Message::Done(Box::new(done)))?;
    wait_for(connection, &Message::Finish)?;
    ends.close();
    connection.send(Message::Finished)?;
    Ok(())
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

/// Until the publisher is through: how many messages it sent, or nothing when the trial is broken off.
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

pub(crate) use prepare::{mode as driver_mode, open_options, policies};

/// The session-wide end point of `query`.
const SESSION: Endpoint = Endpoint::SESSION;
