//! The threads of a trial: which belong to the ends, and who the other threads are.

use crate::clocks::OWN;
use crate::why::other_clock::{Pong, id_of_pong, kernel_id};
use std::collections::BTreeMap;
use tailbound_document::{CauseWord, CausedBy, Thread, ThreadReport};
use tailbound_model::{Policy, Switches, Task};

/// Names of Tailbound's processes begin with one of these: the program itself, and the processes that it names.
const OWN_NAMES: [&str; 2] = ["tailbound", "tb-"];
/// Loads of a study run in processes of Tailbound, but the study asks for them.
const LOAD_NAMES: &str = "tb-load-";

/// The threads of a trial by thread id.
#[derive(Default)]
pub(crate) struct Threads<'a> {
    /// The threads of the ends, each with the report and the id of its process.
    ends: BTreeMap<i32, (&'a ThreadReport, &'a Thread, i32)>,
    others: BTreeMap<i32, &'a Task>,
}

impl<'a> Threads<'a> {
    /// The threads of the ends in thread tables, and the other threads in the recorded events. A pong whose side is not
    /// followed has no threads here.
    pub fn of(tables: &'a [ThreadReport], trial: usize, seen: &'a [Switches], pong: &Pong) -> Threads<'a> {
        let of_ping = |process: &ThreadReport| process.ends.iter().any(|end| end == OWN);
        let of_trial = tables.iter().filter(|t| t.trial == trial);
        let rows = of_trial.filter(|t| pong.is_followed() || of_ping(t)).flat_map(|p| {
            let apart = matches!(pong, Pong::Bounded(_)) && !of_ping(p);
            let id = move |tid: i32| if apart { id_of_pong(tid) } else { tid };
            p.before.iter().chain(&p.after).map(move |t| (id(t.tid), (p, t, id(p.pid))))
        });
        Threads { ends: rows.collect(), ..Threads::of_tasks(seen) }
    }

    /// The threads in the recorded events alone.
    pub fn of_tasks(seen: &'a [Switches]) -> Threads<'a> {
        let others = seen.iter().flat_map(|s| &s.tasks).map(|(tid, task)| (*tid, task));
        Threads { others: others.collect(), ..Threads::default() }
    }

    pub fn is_of_an_end(&self, tid: i32) -> bool {
        self.ends.contains_key(&tid)
    }

    /// Whether both threads belong to the process that runs an end.
    pub fn are_of_one_end(&self, one: i32, other: i32) -> bool {
        let process = |tid| self.ends.get(&tid).map(|(.., pid)| *pid);
        process(one).is_some() && process(one) == process(other)
    }

    /// Ids of the threads of the process that runs the end with this name.
    pub fn of_end(&self, end: &str) -> impl Iterator<Item = i32> {
        self.ends.iter().filter(move |(_, (process, ..))| process.ends.iter().any(|e| e == end)).map(|(tid, _)| *tid)
    }

    /// Id of the main thread of the end's process, which sends.
    pub fn main_of(&self, end: &str) -> Option<i32> {
        self.of_end(end).find(|tid| self.ends.get(tid).is_some_and(|(.., pid)| pid == tid))
    }

    pub fn name(&self, tid: i32) -> Option<String> {
        let own = self.ends.get(&tid).map(|(_, thread, _)| thread.name.clone());
        own.or_else(|| self.others.get(&tid).map(|task| task.name.clone()))
    }

    /// Rank of a thread in the kernel's scheduler: real-time threads by priority, deadline threads above them, all other
    /// threads 0.
    pub fn rank(&self, tid: i32) -> u32 {
        let of = |policy: &Policy| match policy {
            Policy::Fifo { priority } | Policy::Rr { priority } => *priority,
            Policy::Deadline { .. } => 100,
            _ => 0,
        };
        match self.ends.get(&tid) {
            Some((_, thread, _)) => thread.policy.parse().as_ref().map_or(0, of),
            None => self.others.get(&tid).and_then(|task| task.policy.as_ref()).map_or(0, of),
        }
    }

    /// The thread with this id, which had a CPU, and the cause of a wait for that CPU.
    pub fn had_the_cpu(&self, tid: i32) -> (CauseWord, CausedBy) {
        let by = |name: String, policy: Option<String>| CausedBy {
            name,
            process: None,
            tid: (tid > 0).then_some(kernel_id(tid)),
            policy,
        };
        if let Some((_, thread, _)) = self.ends.get(&tid) {
            return (CauseWord::WaitedForCpu, by(thread.name.clone(), Some(thread.policy.clone())));
        }
        let Some(task) = self.others.get(&tid) else {
            // The kernel reports no id for a thread that is ending, or that is in another PID namespace.
            let name = if tid < 0 { "a thread without a visible id" } else { "a thread that ended" };
            return (CauseWord::WaitedForCpu, by(name.into(), None));
        };
        let own = OWN_NAMES.iter().any(|own| task.name.starts_with(own)) && !task.name.starts_with(LOAD_NAMES);
        let word = match () {
            () if task.kernel => CauseWord::KernelThread,
            () if own => CauseWord::Instrument,
            () => CauseWord::WaitedForCpu,
        };
        let by = by(task.name.clone(), task.policy.map(|p| p.to_string()));
        (word, CausedBy { process: task.process.clone(), ..by })
    }
}
