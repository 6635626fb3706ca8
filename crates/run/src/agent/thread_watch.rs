//! Watches the threads of the measuring process while it measures: context switches, and stops of the whole process.

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::os::fd::BorrowedFd;
use tailbound_host::monotonic_ns;
use tailbound_host::switches::SwitchWatch;
use tailbound_model::{CpuList, SwitchScope, Switches, ThreadTable};

/// A measuring process whose thread switches are watched.
pub(super) struct Watched {
    pid: i32,
    watch: Option<SwitchWatch>,
    scripted_clock: bool,
    stops: Vec<(i64, i64)>,
    stopped_ns: Option<i64>,
}

impl Watched {
    pub fn new(pid: i32) -> Watched {
        Watched { pid, watch: None, scripted_clock: false, stops: Vec::new(), stopped_ns: None }
    }

    /// Begins to watch the context switches of the measuring process. This function is called once all threads of the
    /// process exist.
    pub fn open(&mut self, table: &ThreadTable, scripted_clock: bool) {
        self.scripted_clock = scripted_clock;
        if scripted_clock {
            return;
        }
        let threads: Vec<i32> = table.before.iter().map(|row| row.tid).collect();
        let cpus = CpuList(table.before.iter().flat_map(|row| row.cpus.0.iter().copied()).collect());
        self.watch = Some(SwitchWatch::open(&threads, &cpus));
    }

    pub fn begin(&mut self) {
        self.watch.iter_mut().for_each(SwitchWatch::begin);
    }

    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.watch.iter().flat_map(SwitchWatch::fds)
    }

    pub fn read(&mut self) {
        self.watch.iter_mut().for_each(SwitchWatch::read);
    }

    pub fn end(&mut self) {
        self.watch.iter_mut().for_each(SwitchWatch::end);
    }

    /// Records when the process was stopped or continued. This function does not handle the end of the process.
    pub fn child_changed(&mut self) {
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WCONTINUED | WaitPidFlag::WNOHANG;
        loop {
            match waitid(Id::Pid(Pid::from_raw(self.pid)), flags) {
                Ok(WaitStatus::Stopped(..)) => self.stopped_ns = Some(monotonic_ns()),
                // If this process was delayed, it sees both changes at once, and the begin of the stop is unknown.
                Ok(WaitStatus::Continued(_)) => self.stops.push((self.stopped_ns.take().unwrap_or(0), monotonic_ns())),
                _ => return,
            }
        }
    }

    pub fn within(&mut self, windows: &[(i64, i64)]) -> Switches {
        let mut seen = self.watch.as_mut().map(|watch| watch.events_in(windows)).unwrap_or_default();
        if self.scripted_clock {
            seen.scope = SwitchScope::Nothing(
                "the driver uses its own clock, whose times do not match those of thread switches".into(),
            );
        }
        Switches { stops: self.stops.clone(), ..seen }
    }
}
