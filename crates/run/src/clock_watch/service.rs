//! Asks the time service: ptp4l for each synchronisation, chrony once a second.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tailbound_host::monotonic_ns;
use tailbound_host::time_service::{DataSet, Ptp4l, PtpAnswer, TimeServiceError, TimeStatus, chrony_tracking};
use tailbound_model::{ClockMaster, ClockOffsetFromMaster, PortClock, PortState, Problem, RootError, TimeService};

const SECOND_NS: i64 = 1_000_000_000;
/// Time without an answer after which the service counts as silent.
const SILENT_NS: i64 = 2 * SECOND_NS;
/// Time for which ptp4l reports events after a request, and the time after which the request is repeated.
const SUBSCRIBED: Duration = Duration::from_secs(180);
const SUBSCRIBE_EACH_NS: i64 = 60 * SECOND_NS;
/// Shortest time between two questions for the offset: 64 per second.
const SHORTEST_POLL_NS: i64 = SECOND_NS / 64;

/// The data sets for which ptp4l is asked once a second, in this order: the clock of a port is known before its properties.
const ASKED: [DataSet; 6] = [
    DataSet::Port,
    DataSet::Current,
    DataSet::TimeProperties,
    DataSet::Parent,
    DataSet::PortHardwareClock,
    DataSet::PortProperties,
];

/// What the service said, or did not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// A synchronisation.
    Offset(ClockOffsetFromMaster),
    /// What chrony states of the error of its reference, for the last offset.
    RootError(RootError),
    /// The path delay, if the last offset has none.
    PathDelay(i64),
    /// State of a port at a time.
    Port(i64, u16, PortState),
    /// The clock of a port.
    PortClock(PortClock),
    /// The master at a time.
    Master(i64, ClockMaster),
    /// The service answered at this time.
    Answered(i64),
    /// At this time the service does not answer, for this reason.
    Silent(i64, String),
}

/// A connection to the time service.
pub(super) enum Service {
    Ptp4l(Box<Ptp4lService>),
    Chrony {
        /// When chrony is asked next, CLOCK_MONOTONIC, ns.
        due_ns: i64,
    },
}

/// The connection to ptp4l, and what is known of it.
pub(super) struct Ptp4lService {
    socket: PathBuf,
    domain: u8,
    /// Where the socket for answers is.
    directory: PathBuf,
    connection: Option<Ptp4l>,
    /// When the last answer came, CLOCK_MONOTONIC, ns.
    answered_ns: i64,
    ask_next_ns: i64,
    poll_next_ns: i64,
    poll_each_ns: i64,
    subscribe_next_ns: i64,
    /// Number of questions for the offset without an answer yet: an answer without a question is a report.
    unanswered: u32,
    /// When ptp4l reported a synchronisation without a question, CLOCK_MONOTONIC, ns: then it need not be asked.
    reported_ns: Option<i64>,
    last_ingress_ns: i64,
    /// The path delay; 0 until it was measured, and until then the offset says nothing (0 in linuxptp).
    path_delay_ns: i64,
    master: ClockMaster,
    has_master: bool,
    /// Numbers of the hardware clocks of ports, by number of the port.
    indices: BTreeMap<u16, u32>,
}

impl Service {
    /// Connects to the service.
    ///
    /// # Errors
    /// The service cannot be asked.
    pub fn connect(by: &TimeService, directory: &Path) -> Result<Service, Problem> {
        let problem = |e: TimeServiceError| e.problem();
        match by {
            TimeService::Ptp4l { socket, domain } => {
                let socket = PathBuf::from(socket);
                let connection = Ptp4l::connect(&socket, *domain, directory).map_err(problem)?;
                let service = Ptp4lService::new(socket, *domain, directory.to_owned(), connection);
                Ok(Service::Ptp4l(Box::new(service)))
            }
            TimeService::Auto | TimeService::Chrony => {
                chrony_tracking().map_err(problem)?;
                Ok(Service::Chrony { due_ns: 0 })
            }
        }
    }

    /// What the service says within a time.
    pub fn next(&mut self, patience: Duration) -> Vec<Seen> {
        match self {
            Service::Ptp4l(service) => service.next(patience),
            Service::Chrony { due_ns } => {
                let now_ns = monotonic_ns();
                if now_ns < *due_ns {
                    std::thread::sleep(patience.min(Duration::from_nanos((*due_ns - now_ns).unsigned_abs())));
                    return Vec::new();
                }
                *due_ns = now_ns + SECOND_NS;
                of_chrony()
            }
        }
    }
}

fn of_chrony() -> Vec<Seen> {
    let tracking = chrony_tracking();
    let at_ns = monotonic_ns();
    let tracking = match tracking {
        Ok(tracking) => tracking,
        Err(e) => return vec![Seen::Silent(at_ns, e.problem().what)],
    };
    let is_synchronised = tracking.is_synchronised();
    let grandmaster = match tracking.reference {
        _ if !is_synchronised => String::new(),
        // With the directive `local`, chrony is its own reference, without a name.
        own if own.is_empty() => "local".to_owned(),
        reference => reference,
    };
    let master = ClockMaster { grandmaster, steps_removed: Some(tracking.stratum), utc_offset_s: None, is_tai: None };
    let mut seen = vec![Seen::Answered(at_ns), Seen::Master(at_ns, master)];
    if is_synchronised {
        let (offset_ns, delay_ns) = (tracking.offset_ns, tracking.root_delay_ns);
        seen.push(Seen::Offset(ClockOffsetFromMaster { at_ns, offset_ns, path_delay_ns: Some(delay_ns) }));
        let (dispersion_ns, rate_error_ppb) = (tracking.root_dispersion_ns, tracking.rate_error_ppb);
        seen.push(Seen::RootError(RootError { at_ns, delay_ns, dispersion_ns, rate_error_ppb }));
    }
    seen
}

impl Ptp4lService {
    fn new(socket: PathBuf, domain: u8, directory: PathBuf, connection: Ptp4l) -> Ptp4lService {
        Ptp4lService {
            socket,
            domain,
            directory,
            connection: Some(connection),
            answered_ns: monotonic_ns(),
            ask_next_ns: 0,
            poll_next_ns: 0,
            poll_each_ns: SHORTEST_POLL_NS,
            subscribe_next_ns: 0,
            unanswered: 0,
            reported_ns: None,
            last_ingress_ns: 0,
            path_delay_ns: 0,
            master: ClockMaster::default(),
            has_master: false,
            indices: BTreeMap::new(),
        }
    }

    /// Asks what is due, and waits for an answer.
    fn next(&mut self, patience: Duration) -> Vec<Seen> {
        let now_ns = monotonic_ns();
        let answer = match self.connected(now_ns).and_then(|()| self.ask_what_is_due(now_ns)) {
            Ok(()) => {
                let until_ns = self.poll_next_ns.min(self.ask_next_ns) - now_ns;
                let patience = patience.min(Duration::from_nanos(until_ns.max(1_000_000).unsigned_abs()));
                self.connection.as_ref().map_or(Ok(None), |connection| connection.next(patience))
            }
            Err(e) => Err(e),
        };
        match answer {
            Ok(Some(answer)) => {
                self.answered_ns = monotonic_ns();
                let mut seen = vec![Seen::Answered(self.answered_ns)];
                seen.extend(self.read(answer));
                seen
            }
            Ok(None) if monotonic_ns() - self.answered_ns > SILENT_NS => {
                vec![Seen::Silent(monotonic_ns(), "ptp4l does not answer".to_owned())]
            }
            Ok(None) => Vec::new(),
            Err(e) => {
                // ptp4l has ended. One that is started again has another socket, and no subscriptions.
                self.connection = None;
                self.ask_next_ns = now_ns + SECOND_NS;
                std::thread::sleep(patience);
                vec![Seen::Silent(now_ns, e.problem().what)]
            }
        }
    }

    /// Connects again if the connection is lost, at most once a second.
    fn connected(&mut self, now_ns: i64) -> Result<(), TimeServiceError> {
        if self.connection.is_some() {
            return Ok(());
        }
        if now_ns < self.ask_next_ns {
            return Err(TimeServiceError::SilentPtp4l(self.socket.clone(), self.domain));
        }
        let connection = Ptp4l::connect(&self.socket, self.domain, &self.directory)?;
        *self = Ptp4lService::new(self.socket.clone(), self.domain, self.directory.clone(), connection);
        Ok(())
    }

    fn ask_what_is_due(&mut self, now_ns: i64) -> Result<(), TimeServiceError> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if now_ns >= self.subscribe_next_ns {
            self.subscribe_next_ns = now_ns + SUBSCRIBE_EACH_NS;
            connection.subscribe(SUBSCRIBED)?;
        }
        let all_due = now_ns >= self.ask_next_ns;
        let reports = self.reported_ns.is_some_and(|at_ns| now_ns - at_ns < SILENT_NS);
        if all_due {
            self.ask_next_ns = now_ns + SECOND_NS;
            // An answer that has not come within a second is lost.
            self.unanswered = 0;
            for of in ASKED {
                connection.ask(of)?;
            }
        }
        if all_due || (!reports && now_ns >= self.poll_next_ns) {
            self.poll_next_ns = now_ns + self.poll_each_ns;
            self.unanswered += 1;
            connection.ask(DataSet::TimeStatus)?;
        }
        if reports {
            self.poll_next_ns = self.ask_next_ns;
        }
        Ok(())
    }

    fn read(&mut self, answer: PtpAnswer) -> Vec<Seen> {
        let at_ns = self.answered_ns;
        match answer {
            PtpAnswer::TimeStatus(status) => return self.offset(&status),
            PtpAnswer::Port { port, state, log_sync_interval } => {
                // Twice as often as Sync messages come, so that each is seen.
                let interval_s = 2_f64.powi(i32::from(log_sync_interval).clamp(-10, 4));
                self.poll_each_ns = ((interval_s / 2.0 * SECOND_NS as f64) as i64).clamp(SHORTEST_POLL_NS, SECOND_NS);
                return vec![Seen::Port(at_ns, port, state)];
            }
            PtpAnswer::PortHardwareClock { port, index } => {
                index.map(|index| self.indices.insert(port, index));
            }
            PtpAnswer::PortProperties { port, is_hardware, interface } => {
                let index = self.indices.get(&port).copied().filter(|_| is_hardware);
                return vec![Seen::PortClock(PortClock { port, interface, is_hardware, index })];
            }
            PtpAnswer::Current { steps_removed, path_delay_ns } => {
                self.master.steps_removed = Some(steps_removed);
                self.path_delay_ns = path_delay_ns;
                return vec![Seen::PathDelay(path_delay_ns)];
            }
            PtpAnswer::TimeProperties { utc_offset_s, is_tai } => {
                self.master.utc_offset_s = utc_offset_s;
                self.master.is_tai = Some(is_tai);
            }
            PtpAnswer::Parent(grandmaster) => {
                self.master.grandmaster = if self.has_master { grandmaster } else { String::new() };
                return vec![Seen::Master(at_ns, self.master.clone())];
            }
            PtpAnswer::Subscribed | PtpAnswer::Refused { .. } => {}
        }
        Vec::new()
    }

    /// A synchronisation, if it is another one than the last.
    fn offset(&mut self, status: &TimeStatus) -> Vec<Seen> {
        match self.unanswered {
            0 => self.reported_ns = Some(self.answered_ns),
            _ => self.unanswered -= 1,
        }
        self.has_master = status.has_master;
        let is_new = status.has_master && status.ingress_ns != 0 && status.ingress_ns != self.last_ingress_ns;
        if !is_new {
            return Vec::new();
        }
        self.last_ingress_ns = status.ingress_ns;
        if let Some(connection) = &mut self.connection {
            // A service that has ended is noticed at the next question.
            let _ = connection.ask(DataSet::Current);
        }
        if self.path_delay_ns == 0 {
            return Vec::new();
        }
        let at_ns = self.answered_ns;
        vec![Seen::Offset(ClockOffsetFromMaster { at_ns, offset_ns: status.offset_ns, path_delay_ns: None })]
    }
}
