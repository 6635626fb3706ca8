//! A thread that keeps a CPU busy and notes when it did not have the CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use tailbound_host::{monotonic_ns, scheduling};
use tailbound_model::{CpuList, SwitchEvent, SwitchKind};

/// A thread that keeps a CPU busy.
pub struct Busy {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(i64, i64)>>,
}

impl Busy {
    /// Keeps `cpu` busy, and notes gaps of at least `shortest_ns` between two readings of the clock.
    pub fn begin(cpu: u32, shortest_ns: i64) -> Busy {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            scheduling::set_affinity(0, &CpuList::one(cpu)).unwrap();
            let mut gaps = Vec::new();
            let mut last_ns = monotonic_ns();
            while !stopped.load(Relaxed) {
                let now_ns = monotonic_ns();
                if now_ns - last_ns >= shortest_ns {
                    gaps.push((last_ns, now_ns));
                }
                last_ns = now_ns;
            }
            gaps
        });
        Busy { stop, thread }
    }

    /// Ends the thread. Returns begin and end of each time span in which it did not run, by its own clock, monotonic
    /// ns.
    pub fn end(self) -> Vec<(i64, i64)> {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap()
    }
}

/// Duration of an interrupt, and how much of this time lies in one of the time spans `gaps`, ns.
pub fn covered(event: &SwitchEvent, gaps: &[(i64, i64)]) -> (i64, i64) {
    let SwitchKind::Interrupted { ns, .. } = event.what else { return (0, 0) };
    let (begin, end) = (event.at_ns, event.at_ns + i64::from(ns));
    (end - begin, gaps.iter().map(|(from, to)| (end.min(*to) - begin.max(*from)).max(0)).sum())
}
