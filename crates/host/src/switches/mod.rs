//! Context switches as the kernel tells them: of whole CPUs where that is allowed, else of given threads only.
//!
//! In: threads and the CPUs that they may run on. Out: switches and wake-ups in order of time, and names of others. The
//! kernel writes them into rings; nobody who is watched does anything for it.

mod ring;
mod tracefs;

use crate::sched_call;
use ring::{Ring, Told, WakePoint};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use tailbound_model::{CpuList, Policy, SwitchEvent, SwitchKind, SwitchScope, Switches, Task};

/// Octets of a ring: what one may have without privilege (kernel.perf_event_mlock_kb) holds one of these for each CPU.
const WATCHED_CPU: usize = 512 << 10;
const OTHER_CPU: usize = 64 << 10;
const THREAD: usize = 32 << 10;
/// Events that are kept: 32 octets each.
const MOST_EVENTS: usize = 4 << 20;
/// Events that are told: well within a frame of the agent's protocol.
const MOST_TOLD: usize = 100_000;
/// Events of one piece of memory: they are never moved once they are there.
const PIECE: usize = 1 << 16;

/// Rings that are open.
pub struct SwitchWatch {
    rings: Vec<Ring>,
    scope: SwitchScope,
    wakes: bool,
    threads: Vec<i32>,
    pieces: Vec<Vec<SwitchEvent>>,
    /// No room for more.
    full: bool,
    gaps: Vec<(i64, i64)>,
    /// When the rings were last empty.
    read_ns: i64,
    tasks: BTreeMap<i32, Task>,
}

impl SwitchWatch {
    /// Gets ready to watch `threads`, which may run on `cpus`. What the kernel does not allow is seen in less detail.
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
        // The tracepoint may be there and forbidden.
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

    /// Begins.
    pub fn begin(&mut self) {
        self.read_ns = crate::monotonic_ns();
        let refused = self.rings.iter_mut().find_map(|ring| ring.enable().err());
        if let Some(e) = refused {
            (self.rings, self.scope) = (Vec::new(), SwitchScope::Nothing(e.to_string()));
        }
    }

    /// Readable when [`SwitchWatch::read`] is due.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.rings.iter().map(Ring::fd)
    }

    /// Empties the rings.
    pub fn read(&mut self) {
        let now = crate::monotonic_ns();
        let mut rings = std::mem::take(&mut self.rings);
        for ring in &mut rings {
            ring.read(|told| self.take(told));
        }
        (self.rings, self.read_ns) = (rings, now);
    }

    fn take(&mut self, told: Told) {
        match told {
            Told::Event(event) => {
                match event.what {
                    SwitchKind::Switch { out, into, .. } => [out, into].into_iter().for_each(|tid| self.meet(tid)),
                    SwitchKind::Wake { by, .. } => self.meet(by),
                    _ => {}
                }
                self.keep(event);
            }
            Told::Named { thread, name } => {
                self.tasks.insert(thread, Task { name, policy: policy(thread) });
            }
            Told::Born { thread, by } => {
                if let Some(name) = self.tasks.get(&by).map(|t| t.name.clone()) {
                    self.tasks.entry(thread).or_insert(Task { name, policy: None });
                }
            }
            Told::Missing { at_ns } => self.gaps.push((self.read_ns, at_ns)),
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

    /// Who is it? Asked as early as can be: it may be gone soon.
    fn meet(&mut self, tid: i32) {
        if tid > 0
            && !self.tasks.contains_key(&tid)
            && !self.threads.contains(&tid)
            && let Some(task) = task(tid)
        {
            self.tasks.insert(tid, task);
        }
    }

    /// Ends the watch; what happened within `windows`, which rise and lie apart.
    pub fn within(&mut self, windows: &[(i64, i64)]) -> Switches {
        self.read();
        let mut events: Vec<SwitchEvent> = Vec::new();
        for event in self.pieces.iter().flatten() {
            let at = windows.partition_point(|(_, end)| *end < event.at_ns);
            if windows.get(at).is_some_and(|(begin, _)| *begin <= event.at_ns) {
                events.push(*event);
            }
        }
        events.sort_by_key(|e| e.at_ns);
        let mut gaps = self.gaps.clone();
        if let Some(first) = events.get(MOST_TOLD) {
            gaps.push((first.at_ns, i64::MAX));
            events.truncate(MOST_TOLD);
        }
        let mut named: BTreeMap<i32, Task> = BTreeMap::new();
        for event in &events {
            let (one, other) = match event.what {
                SwitchKind::Switch { out, into, .. } => (out, into),
                SwitchKind::Wake { by, .. } => (by, 0),
                _ => (0, 0),
            };
            for tid in [one, other] {
                // A name may have changed since it was first met, and a policy may have been set.
                if let Some(known) = self.tasks.get(&tid) {
                    named.entry(tid).or_insert_with(|| task(tid).unwrap_or_else(|| known.clone()));
                }
            }
        }
        Switches {
            ends: Vec::new(),
            scope: self.scope.clone(),
            wakes: self.wakes,
            windows: windows.to_vec(),
            gaps,
            events,
            tasks: named,
            stops: Vec::new(),
        }
    }

    /// Nothing more is written.
    pub fn end(&mut self) {
        self.rings.iter_mut().for_each(Ring::disable);
        self.read();
    }
}

/// Rings of the CPUs in `cpus`, and of all others for wake-ups from there.
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
    let name = std::fs::read_to_string(format!("/proc/{tid}/comm")).ok()?.trim_end().to_owned();
    Some(Task { name, policy: policy(tid) })
}

fn policy(tid: i32) -> Option<Policy> {
    Some(sched_call::get_policy(tid).ok()?.0)
}
