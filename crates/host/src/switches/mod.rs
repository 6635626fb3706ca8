//! Context switches and interrupts recorded by the kernel: for whole CPUs if permitted, else only for given threads.
//!
//! Input: the watched threads, and the CPUs on which these threads may run. Output: context switches, wake-ups and
//! interrupts in the order of time, and names of the other threads in these events. The kernel writes the events into
//! ring buffers; the watched threads execute no code for this.

mod pairs;
mod points;
mod records;
mod ring;
mod tracefs;

use crate::sched_call;
use points::Points;
use records::Record;
use ring::{Ring, Wanted};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use tailbound_model::{CpuList, Policy, SwitchEvent, SwitchKind, SwitchScope, Switches, Task};

/// Size in bytes of the ring buffer of a CPU on which watched threads may run; users without privilege may have one
/// buffer of this size for each CPU (kernel.perf_event_mlock_kb).
const WATCHED_CPU: usize = 512 << 10;
/// Size in bytes of the ring buffer of a CPU whose interrupts are recorded too: there are more of them than context
/// switches. Users without privilege cannot have it, and cannot record interrupts.
const WITH_INTERRUPTS: usize = 2 << 20;
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
    interrupts: bool,
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
            interrupts: false,
            threads: threads.to_vec(),
            pieces: Vec::new(),
            full: false,
            gaps: Vec::new(),
            read_ns: 0,
            tasks: BTreeMap::new(),
        };
        let all = Points::find();
        // A tracepoint can exist without being permitted, and interrupts need many file descriptors.
        let attempts = [
            (all.clone(), WITH_INTERRUPTS),
            (all.clone(), WATCHED_CPU),
            (all.without_interrupts(), WATCHED_CPU),
            (Points::default(), WATCHED_CPU),
        ];
        for (points, bytes) in attempts {
            if let Ok(rings) = of_cpus(threads, cpus, &points, bytes) {
                watch.rings = rings;
                (watch.wakes, watch.interrupts) = (points.wake.is_some(), !points.edges.is_empty());
                watch.scope = SwitchScope::Cpus(cpus.clone());
                return watch;
            }
        }
        match threads.iter().map(|tid| Ring::of_thread(*tid, THREAD)).collect() {
            Ok(rings) => (watch.rings, watch.scope) = (rings, SwitchScope::OwnThreads),
            Err(e) => watch.scope = SwitchScope::Nothing(e.to_string()),
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
                threads_of(&event).into_iter().for_each(|tid| self.identify(tid));
                self.keep(event);
            }
            Record::Named { thread, name } => {
                self.tasks.insert(thread, Task { name, policy: policy(thread) });
            }
            Record::Created { thread, by } => {
                if let Some(name) = self.tasks.get(&by).map(|t| t.name.clone()) {
                    self.tasks.entry(thread).or_insert(Task { name, policy: None });
                }
            }
            Record::Missing { at_ns } => self.gaps.push((self.read_ns, at_ns)),
            // The ring buffer makes one event of begin and end of an interrupt.
            Record::Edge { .. } => {}
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

    /// Reads the remaining context-switch events from the ring buffers. Returns all events whose time lies in one of
    /// the time spans `windows` (begin and end, monotonic ns), which must be sorted and must not overlap, and the
    /// interrupts that began before a time span and ended within it.
    pub fn events_in(&mut self, windows: &[(i64, i64)]) -> Switches {
        self.read();
        let mut events: Vec<SwitchEvent> = Vec::new();
        for event in self.pieces.iter().flatten() {
            let at = windows.partition_point(|(_, end)| *end < event.at_ns);
            if windows.get(at).is_some_and(|(begin, _)| *begin <= end_ns(event)) {
                events.push(*event);
            }
        }
        events.sort_by_key(|e| e.at_ns);
        let mut gaps = self.gaps.clone();
        if let Some(first) = events.get(MOST_REPORTED) {
            gaps.push((first.at_ns, i64::MAX));
            events.truncate(MOST_REPORTED);
        }
        let mut named: BTreeMap<i32, Task> = BTreeMap::new();
        for event in &events {
            for tid in threads_of(event) {
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
            interrupts: self.interrupts,
            windows: windows.to_vec(),
            gaps,
            events,
            tasks: named,
            ..Switches::default()
        }
    }

    /// Stops the recording of context switches. Events that were recorded until then can still be taken.
    pub fn end(&mut self) {
        self.rings.iter_mut().for_each(Ring::disable);
        self.read();
        // The kernel waits for all CPUs before it closes a tracepoint: half a second for all of them.
        let rings = std::mem::take(&mut self.rings);
        // If no thread can be started, the caller waits.
        let _ = std::thread::Builder::new().name("close-rings".into()).spawn(move || drop(rings));
    }
}

/// Ids of the threads of an event between two threads; 0 = no thread.
fn threads_of(event: &SwitchEvent) -> [i32; 2] {
    match event.what {
        SwitchKind::Switch { out, into, .. } => [out, into],
        SwitchKind::Wake { thread, by, .. } => [thread, by],
        _ => [0, 0],
    }
}

/// Time at which an event ended: for an interrupt later than its begin, ns.
fn end_ns(event: &SwitchEvent) -> i64 {
    match event.what {
        SwitchKind::Interrupted { ns, .. } => event.at_ns + i64::from(ns),
        _ => event.at_ns,
    }
}

/// Opens a ring buffer for each online CPU: for context switches and interrupts on the CPUs in `cpus` with `bytes`
/// bytes, and on all CPUs for wake-ups of `threads`, and of all threads whose CPU is in `cpus`.
fn of_cpus(threads: &[i32], cpus: &CpuList, points: &Points, bytes: usize) -> io::Result<Vec<Ring>> {
    let wakes = wakes_filter(threads, cpus);
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    let online: CpuList = online.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
    let ring = |cpu: &u32| {
        let watched = cpus.0.contains(cpu);
        let bytes = if watched { bytes } else { OTHER_CPU };
        Ring::of_cpu(*cpu, &Wanted { points, watched, wakes: &wakes, bytes })
    };
    online.0.iter().map(ring).collect()
}

/// Filter for the tracepoint `sched_waking`: one of `threads`, or a thread that last ran on one of `cpus`. Threads of
/// the kernel that pass messages on (ksoftirqd, interrupt threads, vhost) are among the second.
fn wakes_filter(threads: &[i32], cpus: &CpuList) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in &cpus.0 {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let own = threads.iter().map(|tid| format!("pid=={tid}"));
    let near = ranges.iter().map(|(first, last)| format!("(target_cpu>={first}&&target_cpu<={last})"));
    own.chain(near).collect::<Vec<_>>().join("||")
}

fn task(tid: i32) -> Option<Task> {
    let name = std::fs::read_to_string(format!("/proc/{tid}/comm")).ok()?.trim_end().to_owned();
    Some(Task { name, policy: policy(tid) })
}

fn policy(tid: i32) -> Option<Policy> {
    Some(sched_call::get_policy(tid).ok()?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_ups_of_the_threads_and_of_their_cpus_are_recorded() {
        let cpus = CpuList([0, 1, 2, 5].into());
        let filter = wakes_filter(&[17, 18], &cpus);
        assert_eq!(filter, "pid==17||pid==18||(target_cpu>=0&&target_cpu<=2)||(target_cpu>=5&&target_cpu<=5)");
    }
}
