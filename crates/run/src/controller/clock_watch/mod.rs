//! Watches the clock of the host on which the run was started: before the first trial until it is in step, then its history.
//!
//! Input: what the study demands of the clock. Output: an error if the clock is not in step, and the history of each trial.
//! The clock is watched by a thread of the controller, on the CPUs that are not measured.

mod hardware;
mod in_step;
mod log;
mod service;

use super::RunError;
use super::context::RunContext;
use super::scratch::make_directory;
use hardware::Hardware;
use log::ClockLog;
use service::Service;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tailbound_host::EntryId;
use tailbound_model::{ClockHistory, ClockSpec, ExitCode, PTP4L_SOCKET, TimeService};

/// Longest time for which the thread waits for an answer before it looks whether it should end.
const TURN: Duration = Duration::from_millis(100);

/// The clock of this host is watched as long as this value exists.
pub(super) struct ClockWatch {
    spec: ClockSpec,
    log: Arc<Mutex<ClockLog>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Journal entry of the directory of the socket for answers.
    scratch: EntryId,
}

impl ClockWatch {
    /// Connects to the time service, and begins to watch.
    ///
    /// # Errors
    /// The service cannot be asked, with exit code 3.
    pub fn begin(spec: &ClockSpec, context: &RunContext) -> Result<ClockWatch, RunError> {
        let by = chosen(&spec.by);
        let path = std::env::temp_dir().join(format!("tailbound-{}-clock", context.run_id));
        let (directory, scratch) = make_directory(&context.journal, &path)?;
        let connected = Service::connect(&by, &directory).and_then(|service| {
            let log = Arc::new(Mutex::new(ClockLog::new(&by, spec.within)));
            let ended = Arc::new(AtomicBool::new(false));
            let watch = watch(service, Arc::clone(&log), Arc::clone(&ended));
            let thread = std::thread::Builder::new().name("tb-clock".into()).spawn(watch);
            let thread =
                thread.map_err(|e| RunError::new(ExitCode::RunFailed, format!("cannot start a thread: {e}"), ""))?;
            Ok(ClockWatch { spec: spec.clone(), log, ended, thread: Some(thread), scratch })
        });
        connected.map_err(|mut error| {
            if let Err(left) = context.journal.undo(scratch) {
                error.problem.what.push_str(&format!("; and {left}"));
            }
            error
        })
    }

    /// What the run waits for, in words.
    pub fn what(&self) -> String {
        let ClockSpec { within, held, .. } = &self.spec;
        format!("until the clock has been within {within} of its master for {held} ({})", self.log(|log| log.service()))
    }

    /// Waits until the offset has been within its bound for the time that the study asks for.
    ///
    /// # Errors
    /// The clock is not in step before the timeout ends, with exit code 3 and what was seen of the clock.
    pub async fn in_step(&self) -> Result<(), RunError> {
        let begin_ns = tailbound_host::monotonic_ns();
        loop {
            let now_ns = tailbound_host::monotonic_ns();
            if self.log(|log| in_step::is_held(log, &self.spec, now_ns)) {
                return Ok(());
            }
            if now_ns - begin_ns > self.spec.timeout.0 {
                let problem = self.log(|log| in_step::not_held(log, &self.spec, begin_ns));
                return Err(RunError::of(ExitCode::MachineNotFit, problem));
            }
            tokio::time::sleep(TURN).await;
        }
    }

    /// The history from a time until now, CLOCK_MONOTONIC, ns. What came before it is no longer kept.
    pub fn history(&self, from_ns: i64, host: &str) -> ClockHistory {
        let to_ns = tailbound_host::monotonic_ns();
        let mut history = self.log(|log| log.history(from_ns, to_ns));
        history.host = host.to_owned();
        history.clock = tailbound_host::clock_id().unwrap_or_default();
        history
    }

    /// Ends the watch. Returns the reason if the directory of the socket cannot be removed.
    pub fn end(mut self, context: &RunContext) -> Option<String> {
        self.stop();
        context.journal.undo(self.scratch).err().map(|e| e.to_string())
    }

    fn stop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }

    fn log<T>(&self, of: impl FnOnce(&mut ClockLog) -> T) -> T {
        // Each change of the log is complete, so that it is usable after a panic.
        of(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for ClockWatch {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The service that is asked, if the study leaves the choice.
fn chosen(by: &TimeService) -> TimeService {
    match by {
        TimeService::Auto if Path::new(PTP4L_SOCKET).exists() => {
            TimeService::Ptp4l { socket: PTP4L_SOCKET.to_owned(), domain: 0 }
        }
        TimeService::Auto => TimeService::Chrony,
        named => named.clone(),
    }
}

/// The work of the thread: asks the service and reads the hardware clocks until the watch ends.
fn watch(mut service: Service, log: Arc<Mutex<ClockLog>>, ended: Arc<AtomicBool>) -> impl FnOnce() {
    move || {
        let mut hardware = Hardware::open();
        while !ended.load(Ordering::Relaxed) {
            // The log is not locked while the thread waits for an answer.
            let seen = service.next(TURN);
            let readings = hardware.read_if_due();
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            seen.into_iter().for_each(|seen| log.add(seen));
            log.add_readings(readings);
        }
    }
}
