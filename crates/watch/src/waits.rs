//! Times in which threads of programs were ready and waited for a CPU.

use std::collections::{BTreeMap, HashMap, VecDeque};
use tailbound_document::CalledWait;

/// How long waits are remembered, ns.
const REMEMBERED_NS: i64 = 20_000_000_000;
/// Largest number of waits that are remembered for a process.
const MOST_WAITS: usize = 10_000;
/// Largest number of processes.
const MOST_PROCESSES: usize = 1_000;

/// The waits of the last seconds, by process.
#[derive(Default)]
pub struct Waits(HashMap<String, VecDeque<Wait>>);

/// A thread waited from `begin_ns` to `end_ns`, ns since 1970.
pub struct Wait {
    pub thread: i32,
    /// Name of the thread.
    pub name: String,
    /// Name of the thread that had the CPU longest meanwhile.
    pub by: String,
    /// For how much of the wait, ns; 0 = it is not known who had it.
    pub by_ns: i64,
    pub begin_ns: i64,
    pub end_ns: i64,
}

impl Waits {
    /// Adds a wait of a thread of a process.
    pub fn add(&mut self, process: &str, wait: Wait) {
        if self.0.len() >= MOST_PROCESSES && !self.0.contains_key(process) {
            return;
        }
        let waits = self.0.entry(process.to_owned()).or_default();
        let is_old = |old: &Wait| old.end_ns < wait.end_ns - REMEMBERED_NS;
        while waits.len() >= MOST_WAITS || waits.front().is_some_and(is_old) {
            waits.pop_front();
        }
        waits.push_back(wait);
    }

    /// The thread of these processes that waited longest between two times, and how long; of one thread alone if `only` names it.
    pub fn longest(&self, processes: &[&str], (from_ns, to_ns): (i64, i64), only: Option<i32>) -> Option<CalledWait> {
        let mut threads: BTreeMap<i32, (i64, i64, &Wait)> = BTreeMap::new();
        let all = processes.iter().filter_map(|process| self.0.get(*process)).flatten();
        for wait in all.filter(|wait| only.is_none_or(|only| only == wait.thread)) {
            let ns = wait.end_ns.min(to_ns) - wait.begin_ns.max(from_ns);
            if ns > 0 {
                let (sum, longest, of) = threads.entry(wait.thread).or_insert((0, 0, wait));
                *sum += ns;
                if ns > *longest {
                    (*longest, *of) = (ns, wait);
                }
            }
        }
        let (time_ns, _, wait) = threads.into_values().max_by_key(|(sum, ..)| *sum)?;
        let by = (wait.by_ns > 0).then(|| wait.by.clone());
        Some(CalledWait { thread: wait.name.clone(), time_ns, by, by_ns: wait.by_ns })
    }
}
