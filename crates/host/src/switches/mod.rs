//! Context switches recorded by the kernel: for whole CPUs if permitted, else only for given threads.
//!
//! Input: the watched threads, and the CPUs on which these threads may run. Output: context switches and wake-ups in
//! the order of time, and names of the other threads in these events. The kernel writes the events into ring buffers;
//! the watched threads execute no code for this.

mod ring;
mod tracefs;

use crate::sched_call;
use ring::{Record, Ring, WakePoint};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use tailbound_model::{CpuList, Policy, SwitchEvent, SwitchKind, SwitchScope, Switches, Task};

/// Size in bytes of the ring buffer of a CPU on which watched threads may run; users without privilege may have one
/// buffer of this size for each CPU (kernel.perf_event_mlock_kb).
const WATCHED_CPU: usize = 512 << 10;
/// Size in bytes of the ring buffer of a CPU on which no watched thread may run.
const OTHER_CPU: usize = 64 << 10;
/// Size in bytes of the ring buffer of one thread.
const THREAD: usize = 32 << 10;
/// Maximum number of context-switch events kept in memory; an event has 32 bytes.
const MOST_EVENTS: usize = 4 << 20;
/// Maximum number of context-switch events in a result, so that the result fits into a frame of the agent's protocol.
const MOST_REPORTED: usize = 100_000;
/// Number of context-switch events in one allocation; stored events are never moved.
const PIECE: usize = 1 << 16;

/// Open ring buffers of context switches, and the events read from them.
pub struct SwitchWatch {
    rings: Vec<Ring>,
    scope: SwitchScope,
    wakes: bool,
    threads: Vec<i32>,
    pieces: Vec<Vec<SwitchEvent>>,
    /// True if the maximum number of context-switch events in memory is reached.
    full: bool,
    gaps: Vec<(i64, i64)>,
    /// Time at which the ring buffers were last emptied, in ns of the monotonic clock.
    read_ns: i64,
    tasks: BTreeMap<i32, Task>,
}

impl SwitchWatch {
    /// Prepares to watch `threads`, which may run on `cpus`. If the kernel does not permit this process to watch whole
    /// CPUs, only the threads are watched.
    pub fn open(threads: &[i32], cpus: &CpuList) -> SwitchWatch {
        let mut watch = SwitchWatch {
            rings: Vec::new(),
            scope: SwitchScope::Off,
            wakes: false,
            threads: threads.to_vec(),
            pieces: Vec::new(),
            full: false,
            gaps: Vec::new(),
            read_ns: 0,
            tasks: BTreeMap::new(),
        };
        let wake = tracefs::waking();
        let whole = of_cpus(threads, cpus, wake).map(|rings| (rings, wake.is_some()));
        // The tracepoint can exist without being permitted.
        match whole.or_else(|_| of_cpus(threads, cpus, None).map(|rings| (rings, false))) {
            Ok((rings, wakes)) => {
                (watch.rings, watch.wakes, watch.scope) = (rings, wakes, SwitchScope::Cpus(cpus.clone()))
            }
            Err(_) => match threads.iter().map(|tid| Ring::of_thread(*tid, THREAD)).collect() {
                Ok(rings) => (watch.rings, watch.scope) = (rings, SwitchScope::OwnThreads),
                Err(e) => watch.scope = SwitchScope::Nothing(e.to_string()),
            },
        }
        watch
    }

    /// Starts to record context switches of the watched threads or CPUs.
    pub fn begin(&mut self) {
        self.read_ns = crate::monotonic_ns();
        let refused = self.rings.iter_mut().find_map(|ring| ring.enable().err());
        if let Some(e) = refused {
            (self.rings, self.scope) = (Vec::new(), SwitchScope::Nothing(e.to_string()));
        }
    }

    /// File descriptors that become readable when [`SwitchWatch::read`] should be called.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(Ring::fd)
    }

    /// Reads all recorded context switches from the kernel's ring buffers into memory.
    pub fn read(&mut self) {
        let now = crate::monotonic_ns();
        let mut rings = std::mem::take(&mut self.rings);
        for ring in &mut rings {
            ring.read(|record| self.take(record));
        }
        (self.rings, self.read_ns) = (rings, now);
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Event(event) => {
                match event.what {
                    SwitchKind::Switch { out, into, .. } => [out, into].into_iter().for_each(|tid| self.identify(tid)),
                    SwitchKind::Wake { by, .. } => self.identify(by),
                    _ => {}
                }
                self.keep(event);
            }
            Record::Named { thread, name } => drop(self.tasks.insert(thread, named(thread, name))),
            Record::Created { thread, by } => {
                if let Some(creator) = self.tasks.get(&by).cloned() {
                    self.tasks.entry(thread).or_insert(Task { policy: None, ..creator });
                }
            }
            Record::Missing { at_ns } => self.gaps.push((self.read_ns, at_ns)),
        }
    }

    fn keep(&mut self, event: SwitchEvent) {
        if self.full {
            return;
        }
        if self.pieces.last().is_none_or(|piece| piece.len() == PIECE) {
            if self.pieces.len() * PIECE == MOST_EVENTS {
                self.full = true;
                self.gaps.push((event.at_ns, i64::MAX));
                return;
            }
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push(event);
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

    /// Reads the remaining context-switch events from the ring buffers. Returns the events of the time spans `windows`
    /// (begin and end, monotonic ns), which must not overlap; the most important comes first. If there are too many
    /// events, less important time spans are left out.
    pub fn events_in(&mut self, windows: &[(i64, i64)]) -> Switches {
        self.read();
        let mut sorted = windows.to_vec();
        sorted.sort_unstable();
        let mut events: Vec<SwitchEvent> = Vec::new();
        for event in self.pieces.iter().flatten().filter(|event| inside(&sorted, event.at_ns)) {
            events.push(*event);
        }
        events.sort_by_key(|e| e.at_ns);
        let kept = affordable(windows, &events, MOST_REPORTED);
        if kept.len() < windows.len() {
            events.retain(|event| inside(&kept, event.at_ns));
        }
        let mut named: BTreeMap<i32, Task> = BTreeMap::new();
        for event in &events {
            let (one, other) = match event.what {
                SwitchKind::Switch { out, into, .. } => (out, into),
                SwitchKind::Wake { by, .. } => (by, 0),
                _ => (0, 0),
            };
            for tid in [one, other] {
                // Name and policy may have changed since the thread was first seen.
                if let Some(known) = self.tasks.get(&tid) {
                    named.entry(tid).or_insert_with(|| task(tid).unwrap_or_else(|| known.clone()));
                }
            }
        }
        Switches {
            ends: Vec::new(),
            scope: self.scope.clone(),
            wakes: self.wakes,
            windows: kept,
            gaps: self.gaps.clone(),
            events,
            tasks: named,
            ..Switches::default()
        }
    }

    /// Stops the recording of context switches.
    pub fn end(&mut self) {
        self.rings.iter_mut().for_each(Ring::disable);
        self.read();
    }
}

/// True if a time lies in one of these time spans, which are in the order of time.
fn inside(windows: &[(i64, i64)], at_ns: i64) -> bool {
    let next = windows.partition_point(|(_, end)| *end < at_ns);
    windows.get(next).is_some_and(|(begin, _)| *begin <= at_ns)
}

/// The time spans whose events fit into `most` events, in the order of time. A time span gets at most half of what is
/// left, so that one long stall does not displace all others.
fn affordable(windows: &[(i64, i64)], events: &[SwitchEvent], most: usize) -> Vec<(i64, i64)> {
    let mut left = most;
    let fits = |(begin, end): &&(i64, i64)| {
        let before = |at: i64| events.partition_point(|e| e.at_ns < at);
        let count = before(end.saturating_add(1)) - before(*begin);
        let fits = count <= left / 2;
        left -= if fits { count } else { 0 };
        fits
    };
    let mut kept: Vec<(i64, i64)> = windows.iter().filter(fits).copied().collect();
    kept.sort_unstable();
    kept
}

/// Opens a ring buffer for each online CPU: for context switches on the CPUs in `cpus`, and on all CPUs for wake-ups of
/// `threads`.
fn of_cpus(threads: &[i32], cpus: &CpuList, wake: Option<WakePoint>) -> io::Result<Vec<Ring>> {
    let filter = threads.iter().map(|tid| format!("pid=={tid}")).collect::<Vec<_>>().join("||");
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let online: CpuList = online.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
    let ring = |cpu: &u32| {
        let watched = cpus.0.contains(cpu);
        Ring::of_cpu(*cpu, watched, wake, &filter, if watched { WATCHED_CPU } else { OTHER_CPU })
    };
    online.0.iter().map(ring).collect()
}

fn task(tid: i32) -> Option<Task> {
    Some(named(tid, comm(tid)?))
}

fn comm(tid: i32) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{tid}/comm")).ok()?.trim_end().to_owned())
}

fn named(tid: i32, name: String) -> Task {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let process: Option<i32> = status.lines().find_map(|l| l.strip_prefix("Tgid:")?.trim().parse().ok());
    let process = process.filter(|pid| *pid != tid).and_then(comm).filter(|process| *process != name);
    Task { name, policy: policy(tid), process, kernel: is_of_the_kernel(tid) }
}

/// True if the thread is a thread of the kernel: the flag PF_KTHREAD in field 9 of `/proc/TID/stat` (proc_pid_stat(5)).
fn is_of_the_kernel(tid: i32) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    // The name in field 2 may contain spaces and parentheses.
    let flags = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(6)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
}

fn policy(tid: i32) -> Option<Policy> {
    Some(sched_call::get_policy(tid).ok()?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_time_span_does_not_displace_the_others() {
        let event = |at_ns| SwitchEvent { at_ns, cpu: 0, what: SwitchKind::In(1) };
        let events: Vec<SwitchEvent> = (0..100).map(event).chain([event(200), event(300)]).collect();
        let windows = [(0, 99), (300, 310), (190, 210)];
        assert_eq!(affordable(&windows, &events, 1_000), [(0, 99), (190, 210), (300, 310)]);
        assert_eq!(affordable(&windows, &events, 150), [(190, 210), (300, 310)]);
        assert!(inside(&windows[..1], 99) && !inside(&windows[..1], 100));
    }
}
