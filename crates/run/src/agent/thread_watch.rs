//! Watches the threads of the measuring process while it measures: context switches, and stops of the whole process.

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::os::fd::BorrowedFd;
use tailbound_host::counters::CounterWatch;
use tailbound_host::monotonic_ns;
use tailbound_host::switches::{SwitchWatch, TRACER_FILE, Wanted, cpus_to_watch};
use tailbound_model::{
    Attribution, CounterSet, CpuList, Recorder, Severity, SwitchScope, Switches, ThreadTable, Warning,
};

/// A measuring process whose thread switches are watched.
pub(super) struct Watched {
    pid: i32,
    watch: Option<SwitchWatch>,
    /// The CPUs whose events are recorded.
    cpus: CpuList,
    /// Kernel counters, which are read while the trial runs.
    counters: Option<CounterWatch>,
    counting: bool,
    /// Kernel counters that moved during incidents.
    pub moved: CounterSet,
    scripted_clock: bool,
    stops: Vec<(i64, i64)>,
    stopped_ns: Option<i64>,
}

impl Watched {
    pub fn new(pid: i32) -> Watched {
        Watched {
            pid,
            watch: None,
            cpus: CpuList::default(),
            counters: None,
            counting: false,
            moved: CounterSet::default(),
            scripted_clock: false,
            stops: Vec::new(),
            stopped_ns: None,
        }
    }

    /// Prepares to record events of the threads of the measuring process, of their CPUs, and of `others`. This function is
    /// called once all threads of the process exist.
    pub fn open(&mut self, table: &ThreadTable, scripted_clock: bool, (level, others): (Attribution, &CpuList)) {
        self.scripted_clock = scripted_clock;
        if scripted_clock || level == Attribution::Off {
            return;
        }
        let threads: Vec<i32> = table.before.iter().map(|row| row.tid).collect();
        let own = table.before.iter().flat_map(|row| &row.cpus.0);
        let cpus = cpus_to_watch(CpuList(own.chain(&others.0).copied().collect()));
        let tracer = tailbound_driver::search_directories().into_iter().map(|dir| dir.join(TRACER_FILE));
        let tracer = tracer.into_iter().find(|file| file.exists());
        self.watch = Some(SwitchWatch::open(
            &threads,
            &cpus,
            &Wanted { level, tracer: tracer.as_deref(), process: Some(self.pid) },
        ));
        self.cpus = cpus;
    }

    /// Warning if the study asks for interrupts or packets, and they are not recorded, or interrupts not by BPF.
    pub fn falls_short(&self, level: Attribution) -> Option<Warning> {
        let watch = self.watch.as_ref().filter(|_| matches!(level, Attribution::Machine | Attribution::Packets))?;
        falls_short(level, watch.recorder())
    }

    pub fn begin(&mut self) {
        self.watch.iter_mut().for_each(SwitchWatch::begin);
        self.counting = self.watch.is_some();
        let hidden = self.watch.as_ref().map(SwitchWatch::threads_without_waits).unwrap_or_default();
        self.counters = self.counting.then(|| CounterWatch::begin(self.pid, hidden, &self.cpus));
    }

    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.watch.iter().flat_map(SwitchWatch::fds)
    }

    pub fn read(&mut self) {
        self.watch.iter_mut().for_each(SwitchWatch::read);
    }

    /// Keeps the events of this time span (begin and end, monotonic ns), also if the trial takes long.
    pub fn spare(&mut self, span: (i64, i64), rank: i64) {
        self.watch.iter_mut().for_each(|watch| watch.spare(span, rank));
    }

    /// Finds the kernel counters that moved during an incident (begin and end, monotonic ns).
    pub fn add_moved(&mut self, span: (i64, i64)) {
        self.counters.iter().for_each(|counters| counters.add_moved(span, &mut self.moved));
    }

    /// Whether the oldest events may be discarded before the trial ends.
    pub fn may_discard(&self) -> bool {
        self.watch.as_ref().is_some_and(SwitchWatch::may_discard)
    }

    /// Whether events are recorded.
    pub fn is_watching(&self) -> bool {
        self.watch.is_some()
    }

    /// Time at which the counters should be read next; `None` if they are not read now.
    pub fn next_ns(&self) -> Option<i64> {
        self.counters.as_ref().filter(|_| self.counting).map(CounterWatch::next_ns)
    }

    /// Reads the kernel counters.
    pub fn count(&mut self) {
        self.counters.iter_mut().for_each(CounterWatch::read);
    }

    pub fn end(&mut self) {
        self.watch.iter_mut().for_each(SwitchWatch::end);
        self.count();
        self.counting = false;
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
            self.stops.clear();
            seen.scope = SwitchScope::Nothing(
                "the driver uses its own clock, whose times do not match those of thread switches".into(),
            );
        }
        let counters = self.counters.as_ref().map(|c| c.series(windows)).unwrap_or_default();
        Switches { stops: self.stops.clone(), counters, ..seen }
    }
}

/// Warning about a recorder that does not record what this level promises; `None` = no events can be recorded.
fn falls_short(level: Attribution, recorder: Option<&Recorder>) -> Option<Warning> {
    let why = recorder.and_then(|r| r.instead.as_deref()).unwrap_or("the kernel permits no recording of events");
    let remedy = "run as root, or give CAP_PERFMON and CAP_BPF; dev/tracer builds the tracer";
    match recorder {
        Some(Recorder { level: Attribution::Packets, .. }) => None,
        _ if level == Attribution::Packets => {
            let text = format!("the study asks for the ways of packets, and they are not recorded: {why}");
            Some(Warning::new("packets_not_recorded", Severity::Warning, text, remedy))
        }
        Some(Recorder { level: Attribution::Machine, instead: None, .. }) => None,
        Some(Recorder { level: Attribution::Machine, .. }) => {
            let text = format!("interrupts are recorded by perf events, which cost more than BPF: {why}");
            Some(Warning::new("recorded_by_perf", Severity::Note, text, remedy))
        }
        _ => {
            let text = format!("the study asks for interrupts, and they are not recorded: {why}");
            Some(Warning::new("interrupts_not_recorded", Severity::Warning, text, remedy))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::RecordedBy;

    #[test]
    fn a_recording_that_falls_short_says_why() {
        let recorder = |level, by, instead: &str| Recorder {
            level,
            by,
            instead: Some(instead.to_owned()).filter(|text| !text.is_empty()),
            cost: None,
            others: Vec::new(),
        };
        assert_eq!(falls_short(Attribution::Machine, Some(&recorder(Attribution::Machine, RecordedBy::Bpf, ""))), None);
        let no_tracer = "this installation has no tracer, which records by BPF";
        let by_perf = recorder(Attribution::Machine, RecordedBy::Perf, no_tracer);
        let refused = format!("{no_tracer}; perf may not record interrupts");
        let threads = recorder(Attribution::Threads, RecordedBy::Perf, &refused);
        let shown = |recorder: Option<&Recorder>| {
            let warning = falls_short(Attribution::Machine, recorder).expect("a warning");
            format!("{:?}: {}", warning.severity, warning.problem.paragraph())
        };
        insta::assert_snapshot!([Some(&by_perf), Some(&threads), None].map(shown).join("\n"), @r"
        Note: interrupts are recorded by perf events, which cost more than BPF: this installation has no tracer, which records by BPF
          help: run as root, or give CAP_PERFMON and CAP_BPF; dev/tracer builds the tracer
        Warning: the study asks for interrupts, and they are not recorded: this installation has no tracer, which records by BPF; perf may not record interrupts
          help: run as root, or give CAP_PERFMON and CAP_BPF; dev/tracer builds the tracer
        Warning: the study asks for interrupts, and they are not recorded: the kernel permits no recording of events
          help: run as root, or give CAP_PERFMON and CAP_BPF; dev/tracer builds the tracer
        ");
        // The sentence for a study that asks for packets, and a kernel that refuses BPF.
        let refused = "BPF cannot be used: the kernel permits it to root, or with CAP_BPF and CAP_PERFMON: Operation not \
                       permitted (os error 1); perf may not record interrupts";
        let threads = recorder(Attribution::Threads, RecordedBy::Perf, refused);
        let warning = falls_short(Attribution::Packets, Some(&threads)).expect("a warning");
        insta::assert_snapshot!(format!("{:?}: {}", warning.severity, warning.problem.paragraph()), @r"
        Warning: the study asks for the ways of packets, and they are not recorded: BPF cannot be used: the kernel permits it to root, or with CAP_BPF and CAP_PERFMON: Operation not permitted (os error 1); perf may not record interrupts
          help: run as root, or give CAP_PERFMON and CAP_BPF; dev/tracer builds the tracer
        ");
    }
}
