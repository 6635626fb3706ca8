//! What happens to the threads of the measuring process while it measures: context switches, and stops of the whole.

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::os::fd::BorrowedFd;
use tailbound_host::monotonic_ns;
use tailbound_host::switches::SwitchWatch;
use tailbound_model::{CpuList, SwitchScope, Switches, ThreadTable};

/// A watched process.
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

    /// Gets ready: all of its threads are there.
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

    /// The process may have been stopped, or have gone on. Its end is noticed elsewhere: it is not waited for here.
    pub fn child_changed(&mut self) {
        let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WCONTINUED | WaitPidFlag::WNOHANG;
        loop {
            match waitid(Id::Pid(Pid::from_raw(self.pid)), flags) {
                Ok(WaitStatus::Stopped(..)) => self.stopped_ns = Some(monotonic_ns()),
                // Both at once when this process was late itself: the begin is not known then.
                Ok(WaitStatus::Continued(_)) => self.stops.push((self.stopped_ns.take().unwrap_or(0), monotonic_ns())),
                _ => return,
            }
        }
    }

    pub fn within(&mut self, windows: &[(i64, i64)]) -> Switches {
        let mut seen = self.watch.as_mut().map(|watch| watch.within(windows)).unwrap_or_default();
        if self.scripted_clock {
            seen.scope = SwitchScope::Nothing("the driver keeps a clock of its own, which no thread's is".into());
        }
        Switches { stops: self.stops.clone(), ..seen }
    }
}
