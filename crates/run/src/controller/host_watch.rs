//! Records the events of this host while a trial runs whose ends are all in other machines, some of them guests of this host:
//! only so is it known what kept the threads that run the guests from a CPU. (If an end runs on this host, its agent records
//! them.)

use super::active_lab::ActiveLab;
use super::agent::Agent;
use super::clock_readings::readings;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;
use tailbound_host::switches::{SwitchWatch, TRACER_FILE, Wanted, cpus_to_watch};
use tailbound_model::{Attribution, ClockReading, CpuList, HostOfGuests, Switches, TrialSpec};
use tailbound_wire::Role;

/// Number of readings of the ping's clock before and after a trial. The shortest ones give the bounds.
const READINGS: usize = 20;

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

enum Watch {
    Open(Box<SwitchWatch>),
    /// The thread that reads the recorded events, and the end of a pipe: when it is closed, the thread ends.
    Recording(OwnedFd, JoinHandle<SwitchWatch>),
    /// The thread that reads the recorded events could not be started, or panicked.
    Lost,
}

impl HostWatch {
    /// Prepares to record this host; `None` if an agent of the trial does it, if no guest of this host has an end, or if the
    /// study does not ask for it.
    pub fn open(lab: &ActiveLab, spec: &TrialSpec) -> Option<HostWatch> {
        let own = tailbound_host::clock_id().unwrap_or_default();
        if spec.attribution == Attribution::Off || lab.agents.iter().any(|(_, agent)| agent.clock == own) {
            return None;
        }
        let cpus = guest_cpus(lab);
        if cpus.0.is_empty() {
            return None;
        }
        let cpus = cpus_to_watch(cpus);
        let tracer = tailbound_driver::search_directories().into_iter().map(|dir| dir.join(TRACER_FILE));
        let tracer = tracer.into_iter().find(|file| file.exists());
        let wanted = Wanted { level: spec.attribution, tracer: tracer.as_deref(), process: None };
        let watch = Watch::Open(Box::new(SwitchWatch::open(&[], &cpus, &wanted)));
        Some(HostWatch { watch, ping_clock: Vec::new() })
    }

    /// Reads the clock of the ping, then starts to record.
    pub async fn begin(&mut self, agents: &mut [(Vec<Role>, Agent)]) {
        self.read_clock(agents).await;
        let Watch::Open(mut watch) = std::mem::replace(&mut self.watch, Watch::Lost) else { return };
        let Ok((ended, end)) = nix::unistd::pipe2(OFlag::O_CLOEXEC) else { return };
        watch.begin();
        let read = move || {
            // Without the events of this thread, the trial is as good as without a recording of the host.
            while !read_until(&mut watch, &ended).unwrap_or(true) {}
            watch.end();
            *watch
        };
        if let Ok(thread) = std::thread::Builder::new().name("tb-host-events".into()).spawn(read) {
            self.watch = Watch::Recording(end, thread);
        }
    }

    /// Stops recording, then reads the clock of the ping again.
    pub async fn end(&mut self, agents: &mut [(Vec<Role>, Agent)]) {
        if let Watch::Recording(end, thread) = std::mem::replace(&mut self.watch, Watch::Lost) {
            drop(end);
            if let Ok(watch) = thread.join() {
                self.watch = Watch::Open(Box::new(watch));
            }
        }
        self.read_clock(agents).await;
    }

    /// Adds readings of the clock of the ping's agent. An agent that does not answer is reported when the trial needs it.
    async fn read_clock(&mut self, agents: &mut [(Vec<Role>, Agent)]) {
        let ping = agents.iter_mut().find(|(roles, _)| roles.contains(&Role::Ping));
        if let Some((_, agent)) = ping
            && let Ok(found) = readings(agent, READINGS).await
        {
            self.ping_clock.extend(found);
        }
    }

    pub fn ping_clock(&self) -> &[ClockReading] {
        &self.ping_clock
    }

    /// The events of time spans of this host's clock, the most important first, which must not overlap.
    /// `name`: name of this host in the record. `None` if they are lost.
    pub fn within(&mut self, windows: &[(i64, i64)], name: &str) -> Option<Switches> {
        let Watch::Open(watch) = &mut self.watch else { return None };
        let host = HostOfGuests { name: name.to_owned(), ping_clock: self.ping_clock.clone() };
        Some(Switches { host: Some(host), ..watch.events_in(windows) })
    }
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
