//! Records the events of this host while a trial runs whose ends are all in other machines, some of them guests of this host:
//! only so is it known what kept the threads that run the guests from a CPU. (If an end runs on this host, its agent records
//! them.)

use super::active_lab::ActiveLab;
use super::agent::Agent;
use super::clock_readings::readings;
use super::trial_state::Part;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fmt::Display;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;
use tailbound_host::switches::{SwitchWatch, TRACER_FILE, Wanted, cpus_to_watch};
use tailbound_model::{
    Attribution, ClockReading, CpuList, HostOfGuests, Nanos, Problem, SwitchScope, Switches, TrialSpec,
};
use tailbound_wire::Role;

/// Number of readings of the ping's clock before and after a trial. The shortest ones give the bounds.
const READINGS: usize = 20;
/// If the clock of this host is further from an even rate than this, readings before and after the trial do not bound it, ns.
const MOST_UNEVEN_NS: i64 = 100_000;

/// The recording of this host during one trial.
pub(super) struct HostWatch {
    watch: Watch,
    ping_clock: Vec<ClockReading>,
}

/// The CPUs of this host on which the threads of guests of a lab may run; none if no guest of this host has an end.
pub(super) fn guest_cpus(lab: &ActiveLab) -> CpuList {
    let threads = lab.others().flat_map(|host| host.threads_outside());
    CpuList(threads.filter_map(|thread| thread.cpus.parse::<CpuList>().ok()).flat_map(|cpus| cpus.0).collect())
}

/// The recording, if it is not lost.
enum Watch {
    Open(Box<SwitchWatch>),
    /// The thread that reads the recorded events, and the end of a pipe: when it is closed, the thread ends.
    Recording(OwnedFd, JoinHandle<io::Result<Recorded>>),
    Ended(Recorded),
    Lost(String),
}

/// The events that were recorded during a trial.
struct Recorded {
    watch: Box<SwitchWatch>,
    /// Readings of this host's monotonic clock, and of the same clock without adjustments, ns.
    clocks: Vec<(i64, i64)>,
}

impl HostWatch {
    /// Prepares to record this host; `None` if an agent of the trial does it, if no guest of this host has an end, or if the
    /// study does not ask for it.
    pub async fn open(lab: &ActiveLab, spec: &TrialSpec) -> Option<HostWatch> {
        let own = tailbound_host::clock_id().unwrap_or_default();
        if spec.attribution == Attribution::Off || lab.agents.iter().any(|(_, agent)| agent.clock == own) {
            return None;
        }
        let (cpus, level) = (guest_cpus(lab), spec.attribution);
        if cpus.0.is_empty() {
            return None;
        }
        // The cost of the recording is measured, which takes a moment.
        let open = move || {
            let tracer = tailbound_driver::search_directories().into_iter().map(|dir| dir.join(TRACER_FILE));
            let tracer = tracer.into_iter().find(|file| file.exists());
            let wanted = Wanted { level, tracer: tracer.as_deref(), process: None };
            Box::new(SwitchWatch::open(&[], &cpus_to_watch(cpus), &wanted))
        };
        let watch = match tokio::task::spawn_blocking(open).await {
            Ok(watch) => Watch::Open(watch),
            Err(e) => Watch::Lost(e.to_string()),
        };
        Some(HostWatch { watch, ping_clock: Vec::new() })
    }

    /// Reads the clock of the ping, then starts to record.
    pub async fn begin(&mut self, parts: &[Part], agents: &mut [(Vec<Role>, Agent)]) {
        self.read_clock(parts, agents).await;
        self.watch = match std::mem::replace(&mut self.watch, Watch::Lost(String::new())) {
            Watch::Open(watch) => recording(watch).unwrap_or_else(|e| Watch::Lost(e.to_string())),
            other => other,
        };
    }

    /// Stops recording, then reads the clock of the ping again.
    pub async fn end(&mut self, parts: &[Part], agents: &mut [(Vec<Role>, Agent)]) {
        self.watch = match std::mem::replace(&mut self.watch, Watch::Lost(String::new())) {
            Watch::Recording(end, thread) => {
                drop(end);
                match tokio::task::spawn_blocking(|| thread.join()).await {
                    Ok(Ok(Ok(recorded))) => Watch::Ended(recorded),
                    Ok(Ok(Err(e))) => Watch::Lost(e.to_string()),
                    _ => Watch::Lost("the thread that reads the events panicked".to_owned()),
                }
            }
            other => other,
        };
        self.read_clock(parts, agents).await;
    }

    /// Adds readings of the clock of the ping's agent, unless the agent is lost. An agent that does not answer is reported when
    /// the trial needs it.
    async fn read_clock(&mut self, parts: &[Part], agents: &mut [(Vec<Role>, Agent)]) {
        let answers = parts.iter().any(|part| part.roles.contains(&Role::Ping) && part.lost.is_none());
        let ping = agents.iter_mut().find(|(roles, _)| answers && roles.contains(&Role::Ping));
        if let Some((_, agent)) = ping
            && let Ok(found) = readings(agent, READINGS).await
        {
            self.ping_clock.extend(found);
        }
    }

    /// The readings of the ping's clock, as wide as this host's clock makes them, which was not quite even in between.
    ///
    /// # Errors
    /// The clock of this host was adjusted too much, or the events are lost, for this reason.
    pub fn ping_clock(&self) -> Result<Vec<ClockReading>, Problem> {
        let clocks = match &self.watch {
            Watch::Ended(recorded) => &recorded.clocks,
            Watch::Lost(why) => return Err(not_recorded(why)),
            _ => return Err(not_recorded("the trial did not begin")),
        };
        let uneven_ns = uneven_ns(clocks);
        if uneven_ns > MOST_UNEVEN_NS {
            let uneven = Nanos(uneven_ns);
            let why = format!("the clock of this host was adjusted during the trial, by {uneven} against an even rate");
            return Err(not_recorded(why));
        }
        let widened = |reading: &ClockReading| ClockReading {
            before_ns: reading.before_ns - uneven_ns,
            after_ns: reading.after_ns + uneven_ns,
            ..*reading
        };
        Ok(self.ping_clock.iter().map(widened).collect())
    }

    /// The events of time spans of this host's clock, the most important first, which must not overlap. `name`: name of this host
    /// in the record.
    ///
    /// # Errors
    /// The events cannot be used, for this reason.
    pub fn within(&mut self, windows: &[(i64, i64)], name: &str) -> Result<Switches, Problem> {
        let host = HostOfGuests { name: name.to_owned(), ping_clock: self.ping_clock()? };
        let Watch::Ended(Recorded { watch, .. }) = &mut self.watch else {
            return Err(not_recorded("the trial did not end"));
        };
        match watch.events_in(windows) {
            seen @ Switches { scope: SwitchScope::Cpus(_), .. } => Ok(Switches { host: Some(host), ..seen }),
            Switches { scope: SwitchScope::Nothing(why), .. } => Err(not_recorded(why)),
            _ => Err(not_recorded("the kernel permits no recording of whole CPUs")),
        }
    }
}

/// The problem that this host is not recorded for this reason.
pub(super) fn not_recorded(why: impl Display) -> Problem {
    let what = format!("what kept the threads of the guests from a CPU of this host is not known: {why}");
    let remedy = "run as root, or give CAP_PERFMON and CAP_BPF, if the reason is a missing privilege";
    Problem::new("host_not_recorded", what, remedy)
}

/// Starts the recording, with the thread that reads the events.
fn recording(mut watch: Box<SwitchWatch>) -> io::Result<Watch> {
    let (ended, end) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
    watch.begin();
    let read = move || {
        let mut clocks = vec![both_clocks()];
        while !read_until(&mut watch, &ended)? {
            clocks.push(both_clocks());
        }
        watch.end();
        clocks.push(both_clocks());
        Ok(Recorded { watch, clocks })
    };
    let thread = std::thread::Builder::new().name("tb-host-events".into()).spawn(read)?;
    Ok(Watch::Recording(end, thread))
}

/// This host's monotonic clock, and the same clock without adjustments, ns.
fn both_clocks() -> (i64, i64) {
    (tailbound_host::monotonic_ns(), tailbound_host::unadjusted_ns())
}

/// Largest distance of a clock from an even rate between its first and its last reading, ns. Readings: of this clock, and of one
/// that is even.
fn uneven_ns(clocks: &[(i64, i64)]) -> i64 {
    let (Some(&(begin, even_begin)), Some(&(end, even_end))) = (clocks.first(), clocks.last()) else { return 0 };
    let rate = (end - begin) as f64 / (even_end - even_begin).max(1) as f64;
    let distance = |&(at, even): &(i64, i64)| ((at - begin) as f64 - (even - even_begin) as f64 * rate).abs();
    clocks.iter().map(distance).fold(0.0, f64::max) as i64
}

/// Waits until a ring buffer is half full, or for a second, and reads all. Returns true when the recording ends.
fn read_until(watch: &mut SwitchWatch, ended: &OwnedFd) -> io::Result<bool> {
    let mut fds = vec![PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
    fds.extend(watch.fds().map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
    match poll(&mut fds, PollTimeout::from(1_000_u16)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(e) => return Err(e.into()),
    }
    let is_ended = fds[0].any().unwrap_or(false);
    watch.read();
    Ok(is_ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_guests_that_is_not_recorded_is_said_with_the_reason() {
        let problem = not_recorded("the kernel permits no recording of whole CPUs");
        insta::assert_snapshot!(problem.paragraph(), @r"
        what kept the threads of the guests from a CPU of this host is not known: the kernel permits no recording of whole CPUs
          help: run as root, or give CAP_PERFMON and CAP_BPF, if the reason is a missing privilege
        ");
    }

    #[test]
    fn a_clock_that_is_adjusted_for_a_while_is_not_even() {
        // 20 ppm fast throughout.
        let fast: Vec<(i64, i64)> =
            (0..60).map(|s| s * 1_000_000_000).map(|even| (even + even / 50_000, 7 + even)).collect();
        assert!(uneven_ns(&fast) <= 1);
        // 2 ms more in the middle of the trial, and back again.
        let adjusted =
            |(n, (at, even)): (usize, &(i64, i64))| (at + if n > 20 && n < 40 { 2_000_000 } else { 0 }, *even);
        let adjusted: Vec<(i64, i64)> = fast.iter().enumerate().map(adjusted).collect();
        assert!((1_900_000..2_100_000).contains(&uneven_ns(&adjusted)));
        assert_eq!(uneven_ns(&[]), 0);
    }
}
