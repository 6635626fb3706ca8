//! Watches the clock of this host: whether it is in step with its master, and its history.
//!
//! Input: what the study demands of the clock. Output: a problem as long as the clock is not in step, and the history of each trial.
//! The clock is watched by a thread of the controller, or of the agent that answers questions about another host.

mod hardware;
mod in_step;
mod log;
mod service;

use crate::scratch::make_directory;
use hardware::Hardware;
use log::ClockLog;
use service::Service;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tailbound_host::journal::{EntryId, Journal};
use tailbound_model::{ClockHistory, ClockOffset, ClockSpec, PTP4L_SOCKET, Problem, TimeService};

/// Longest time for which the thread waits for an answer before it looks whether it should end.
pub(crate) const TURN: Duration = Duration::from_millis(100);

/// The clock of this host is watched as long as this value exists.
pub(crate) struct ClockWatch {
    spec: ClockSpec,
    log: Arc<Mutex<ClockLog>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// When the watch began, CLOCK_MONOTONIC, ns.
    begin_ns: i64,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC at the begin of the watch, or at the end of the last history.
    realtime: Mutex<ClockOffset>,
    /// Journal entry of the directory of the socket for answers.
    scratch: EntryId,
}

impl ClockWatch {
    /// Connects to the time service, and begins to watch. The directory for the socket to which answers are sent is in the journal
    /// of the run with this id.
    ///
    /// # Errors
    /// The service cannot be asked, or the directory cannot be made.
    pub fn begin(spec: &ClockSpec, run: &str, journal: &Journal) -> Result<ClockWatch, Problem> {
        let by = chosen(&spec.by);
        let path = std::env::temp_dir().join(format!("tailbound-{run}-clock"));
        let (directory, scratch) = make_directory(journal, &path)?;
        ClockWatch::connect(spec, &by, (&directory, scratch)).map_err(|mut problem| {
            if let Err(left) = journal.undo(scratch) {
                problem.what.push_str(&format!("; and {left}"));
            }
            problem
        })
    }

    fn connect(
        spec: &ClockSpec,
        by: &TimeService,
        (directory, scratch): (&PathBuf, EntryId),
    ) -> Result<ClockWatch, Problem> {
        let service = Service::connect(by, directory)?;
        let log = Arc::new(Mutex::new(ClockLog::new(by, spec.within)));
        let ended = Arc::new(AtomicBool::new(false));
        let watch = watch(service, Arc::clone(&log), Arc::clone(&ended));
        let thread = std::thread::Builder::new().name("tb-clock".into()).spawn(watch);
        let thread = thread.map_err(|e| Problem::new("clock_watch", format!("cannot start a thread: {e}"), ""))?;
        let begin_ns = tailbound_host::monotonic_ns();
        let realtime = Mutex::new(tailbound_host::clock::read_offset());
        Ok(ClockWatch { spec: spec.clone(), log, ended, thread: Some(thread), begin_ns, realtime, scratch })
    }

    /// The service that is asked, in words.
    pub fn service(&self) -> String {
        self.log(|log| log.service())
    }

    /// `None` = until now, the offset has been within its bound for the time that the study asks for; otherwise the problem that it
    /// has not, with what was seen of the clock since the watch began.
    pub fn not_in_step(&self) -> Option<Problem> {
        let now_ns = tailbound_host::monotonic_ns();
        self.log(|log| {
            let is_held = in_step::is_held(log, &self.spec, now_ns);
            (!is_held).then(|| in_step::not_held(log, &self.spec, self.begin_ns))
        })
    }

    /// The history from a time until now, CLOCK_MONOTONIC, ns. What came before it is no longer kept.
    /// The name of the host is left empty.
    pub fn history(&self, from_ns: i64) -> ClockHistory {
        let to_ns = tailbound_host::monotonic_ns();
        let mut history = self.log(|log| log.history(from_ns, to_ns));
        history.clock = tailbound_host::clock_id().unwrap_or_default();
        let now = tailbound_host::clock::read_offset();
        let mut last = self.realtime.lock().unwrap_or_else(PoisonError::into_inner);
        history.realtime = Some([std::mem::replace(&mut *last, now), now]);
        history
    }

    /// Ends the watch. Returns the reason if the directory of the socket cannot be removed.
    pub fn end(mut self, journal: &Journal) -> Option<String> {
        self.stop();
        journal.undo(self.scratch).err().map(|e| e.to_string())
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
