//! Runs `tailbound agent discovery`: the discovery server of a driver.
//!
//! The command is the first process of the pod that `tailbound pod serve` creates. It can also be started by hand.

use crate::cli::Discovery;
use crate::drivers;
use crate::failure::{CommandResult, Failure};
use crate::output::errln;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tailbound_driver::{Kv, Session, Silent};
use tailbound_model::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Name of the driver option by which a driver runs a discovery server.
const OPTION: &str = "discovery_listen";
/// Run time of a discovery server if the user gives no end time (`--until`): longer than any machine is up.
const EVER: Duration = Duration::from_secs(100 * 365 * 86_400);

pub fn discovery(args: &Discovery) -> CommandResult {
    let (driver_name, listen) = (&args.driver, args.listen);
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let left = args.until.map_or(EVER, |until| Duration::from_secs(until).saturating_sub(now));
    if left.is_zero() {
        // Kubernetes restarts the process after its end; returning at once costs little.
        errln!("tailbound agent discovery: the end time given by --until has passed");
        return Ok(ExitCode::Done);
    }
    let failed = |text: String| Failure::run_failed(format!("no discovery server at {listen}: {text}"));
    let driver = drivers::find(driver_name).map_err(|e| failed(e.to_string()))?;
    if driver.description().option(OPTION).is_none() {
        return Err(failed(format!("driver {driver_name} has no option `{OPTION}`")));
    }
    let options = Kv::new().with(OPTION, listen.to_string());
    let session = Session::open(&driver, &options, Arc::new(Silent)).map_err(|e| failed(e.to_string()))?;
    // No connection is accepted. The listening TCP port shows to a readiness probe that the server runs.
    let _ready = TcpListener::bind(listen).map_err(|e| failed(format!("TCP: {e}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| failed(e.to_string()))?;
    let why = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        errln!("tailbound agent discovery: the server of {driver_name} listens at {listen}");
        std::io::Result::Ok(tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
            () = tokio::time::sleep(left) => "the end time given by --until has passed",
        })
    });
    let why = why.map_err(|e| failed(e.to_string()))?;
    drop(session);
    errln!("tailbound agent discovery: {why}");
    Ok(ExitCode::Done)
}
