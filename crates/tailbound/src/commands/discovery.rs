//! `tailbound agent discovery`: a discovery server, by a driver that can be one.
//!
//! It is the first process of the pod that `tailbound pod serve` makes, and a program like others elsewhere.

use crate::cli::Discovery;
use crate::drivers;
use crate::exit::{Failure, Outcome};
use crate::say::errln;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tailbound_driver::{Kv, Session, Silent};
use tailbound_model::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// The option of a driver that can be one.
const OPTION: &str = "discovery_listen";
/// Without an end given, longer than any machine is up.
const EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

pub fn discovery(args: &Discovery) -> Outcome {
    let (driver_name, listen) = (&args.driver, args.listen);
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let left = args.until.map_or(EVER, |until| Duration::from_secs(until).saturating_sub(now));
    if left.is_zero() {
        // What keeps the process alive starts it again, which costs as little as can be.
        errln!("tailbound agent discovery: its time is over");
        return Ok(ExitCode::Done);
    }
    let failed = |text: String| Failure::new(ExitCode::RunFailed, format!("no discovery server at {listen}: {text}"));
    let driver = drivers::find(driver_name).map_err(|e| failed(e.to_string()))?;
    if driver.description().option(OPTION).is_none() {
        return Err(failed(format!("driver {driver_name} has no option `{OPTION}`")));
    }
    let options = Kv::new().with(OPTION, listen.to_string());
    let session = Session::open(&driver, &options, Arc::new(Silent)).map_err(|e| failed(e.to_string()))?;
    // Nobody is let in: that it listens says to whoever watches that the server does.
    let _ready = TcpListener::bind(listen).map_err(|e| failed(format!("TCP: {e}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| failed(e.to_string()))?;
    let why = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        errln!("tailbound agent discovery: {driver_name} serves at {listen}");
        std::io::Result::Ok(tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            () = tokio::time::sleep(left) => "its time is over",
        })
    });
    let why = why.map_err(|e| failed(e.to_string()))?;
    drop(session);
    errln!("tailbound agent discovery: {why}");
    Ok(ExitCode::Done)
}
