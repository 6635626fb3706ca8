//! The recording of one trial: begin, reading, end, and the events of the requested time spans.

use super::events::{Events, threads_of};
use super::kept::Spared;
use super::kernel_clock;
use super::opening::{Opened, Wanted, open};
use super::records::Record;
use super::task::{named, task};
use super::windows::affordable;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use tailbound_model::{CpuList, RecordCounts, Recorder, SwitchEvent, SwitchKind, SwitchScope, Switches, Task};

/// Maximum number of events in a result, so that the result fits into a frame of the agent's protocol.
const MOST_REPORTED: usize = 160_000;

/// Open ring buffers of context switches and interrupts, and the events read from them.
pub struct SwitchWatch {
    opened: Opened,
    threads: Vec<i32>,
    cpus: CpuList,
    events: Events,
    /// Time at which the ring buffers were last emptied, in ns of the kernel's monotonic clock.
    read_ns: i64,
    tasks: BTreeMap<i32, Task>,
    records: RecordCounts,
}

impl SwitchWatch {
    /// Prepares to watch `threads`, which may run on `cpus`. If the kernel does not permit this process to watch whole
    /// CPUs, only the threads are watched.
    pub fn open(threads: &[i32], cpus: &CpuList, wanted: &Wanted) -> SwitchWatch {
        SwitchWatch {
            opened: open(threads, cpus, wanted),
            threads: threads.to_vec(),
            cpus: cpus.clone(),
            events: Events::default(),
            read_ns: 0,
            tasks: BTreeMap::new(),
            records: RecordCounts::default(),
        }
    }

    /// Starts to record events of the watched threads or CPUs.
    pub fn begin(&mut self) {
        self.read_ns = kernel_clock::now_ns();
        if let Err(e) = self.opened.begin(&self.threads, &self.cpus) {
            self.opened = Opened::nothing(e.to_string());
        }
    }

    /// File descriptors that become readable when [`SwitchWatch::read`] should be called.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.opened.fds()
    }

    /// Reads all recorded events from the kernel's ring buffers into memory.
    pub fn read(&mut self) {
        let now = kernel_clock::now_ns();
        let mut opened = std::mem::replace(&mut self.opened, Opened::nothing(String::new()));
        opened.read(|record| self.take(record));
        let of_packets = opened.read_packets((self.read_ns, now));
        self.records.read += of_packets.read;
        self.records.dropped += of_packets.dropped;
        (self.opened, self.read_ns) = (opened, now);
    }

    /// Keeps what was recorded in this time span (begin and end, monotonic ns) however old it becomes, unless some of it
    /// was discarded already. If there is too much, the time spans with the lowest rank are given up.
    pub fn spare(&mut self, (begin, end): (i64, i64), rank: i64) {
        let ahead_ns = kernel_clock::ahead_ns();
        let spared = Spared { span: (begin - ahead_ns, end - ahead_ns), rank };
        self.events.spare(spared);
        self.opened.follower.iter_mut().for_each(|follower| follower.spare(spared));
    }

    /// Whether so many events or hops are kept that the oldest ones may be discarded before the trial ends.
    pub fn may_discard(&self) -> bool {
        self.events.is_quarter_full()
            || self.opened.follower.as_ref().is_some_and(|follower| follower.is_quarter_full())
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Event(mut event) => {
                self.records.read += 1;
                threads_of(&event).into_iter().for_each(|tid| self.identify(tid));
                if let SwitchKind::Wake { thread, interrupt, .. } = &mut event.what {
                    *interrupt |= self.is_ksoftirqd(*thread);
                }
                self.events.keep(event);
            }
            Record::Named { thread, name } => drop(self.tasks.insert(thread, named(thread, name))),
            Record::Created { thread, by } => {
                if let Some(creator) = self.tasks.get(&by).cloned() {
                    self.tasks.entry(thread).or_insert(Task { policy: None, ..creator });
                }
            }
            Record::Missing { at_ns, records } => {
                self.records.dropped += records;
                self.events.miss((self.read_ns, at_ns));
            }
            // The ring buffer makes one event of begin and end of an interrupt.
            Record::Edge { .. } => {}
        }
    }

    /// Reads name and policy of a thread when its id is first seen, because the thread may end soon.
    fn identify(&mut self, tid: i32) {
        if tid > 0
            && !self.tasks.contains_key(&tid)
            && !self.threads.contains(&tid)
            && let Some(task) = task(tid)
        {
            self.tasks.insert(tid, task);
        }
    }

    /// Whether this is the thread of a CPU that runs soft interrupts. The kernel wakes it after an interrupt or a soft
    /// interrupt, when the thread that was interrupted seems to run again already.
    fn is_ksoftirqd(&self, thread: i32) -> bool {
        self.tasks.get(&thread).is_some_and(|task| task.name.starts_with("ksoftirqd/"))
    }

    /// Reads the remaining events from the ring buffers. Returns the events of the time spans `windows` (begin and end,
    /// monotonic ns), which must not overlap, and the interrupts that began before a time span and ended within it. The
    /// most important time span comes first: if there are too many events, less important ones are left out.
    pub fn events_in(&mut self, windows: &[(i64, i64)]) -> Switches {
        let ahead_ns = kernel_clock::ahead_ns();
        let of_kernel: Vec<(i64, i64)> = windows.iter().map(|(from, to)| (from - ahead_ns, to - ahead_ns)).collect();
        let mut seen = self.events_at(&of_kernel);
        seen.convert_times(|at_ns| at_ns + ahead_ns);
        seen
    }

    /// The events of time spans of the kernel's monotonic clock.
    fn events_at(&mut self, windows: &[(i64, i64)]) -> Switches {
        self.read();
        let mut sorted = windows.to_vec();
        sorted.sort_unstable();
        let mut events = self.events.within(&sorted);
        let times: Vec<i64> = events.iter().map(|e| e.at_ns).collect();
        let kept = affordable(windows, &times, MOST_REPORTED);
        if kept != sorted {
            events = self.events.within(&kept);
        }
        let away = self.events.away(&kept);
        let tasks = self.tasks_of(events.iter().chain(away.iter().map(|away| &away.event)));
        let Opened { scope, wakes, interrupts, recorder, follower, .. } = &self.opened;
        Switches {
            scope: scope.clone(),
            wakes: *wakes,
            interrupts: *interrupts,
            recorder: recorder.clone(),
            records: recorder.as_ref().map(|_| self.records),
            packets: follower.as_ref().map(|follower| follower.within(windows)),
            windows: kept,
            gaps: self.events.gaps(),
            events,
            away,
            tasks,
            ..Switches::default()
        }
    }

    /// Names and policies of the threads of `events` that are not watched.
    fn tasks_of<'a>(&self, events: impl Iterator<Item = &'a SwitchEvent>) -> BTreeMap<i32, Task> {
        let mut named: BTreeMap<i32, Task> = BTreeMap::new();
        for tid in events.flat_map(threads_of) {
            // Name and policy may have changed since the thread was first seen.
            if let Some(known) = self.tasks.get(&tid) {
                named.entry(tid).or_insert_with(|| task(tid).unwrap_or_else(|| known.clone()));
            }
        }
        named
    }

    /// How the events are recorded; `None` if no events can be recorded.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.opened.recorder.as_ref()
    }

    /// The watched threads if the recorded events cannot tell whether they slept or waited for a CPU.
    pub fn threads_without_waits(&self) -> &[i32] {
        if self.opened.scope == SwitchScope::OwnThreads { &self.threads } else { &[] }
    }

    /// Stops the recording. Events that were recorded until then can still be taken.
    pub fn end(&mut self) {
        self.opened.end();
        let before_ns = self.read_ns;
        self.read();
        let lost = self.opened.lost_more();
        if lost > 0 {
            self.records.dropped += lost;
            self.events.miss((before_ns, self.read_ns));
        }
        self.opened.close();
    }
}
