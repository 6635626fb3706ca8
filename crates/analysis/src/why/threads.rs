//! The threads of a trial: which belong to the ends, and who the other threads are.

use crate::clocks::OWN;
use crate::why::conduct::Conduct;
use crate::why::handled::Handled;
use crate::why::kernels::Kernel;
use crate::why::other_clock::{Machine, Pong, kernel_id};
use std::collections::BTreeMap;
use tailbound_document::{CauseWord, CausedBy, Thread, ThreadReport};
use tailbound_gates::Gate;
use tailbound_model::{CpuList, Metric, Policy, SwitchKind, Switches, Task};

/// Names of Tailbound's processes begin with one of these: the program itself, and the processes that it names.
const OWN_NAMES: [&str; 2] = ["tailbound", "tb-"];
/// Loads of a study run in processes of Tailbound, but the study asks for them.
const LOAD_NAMES: &str = "tb-load-";

/// Rank of deadline threads, above the priorities of all other threads.
const DEADLINE_RANK: u32 = 100;

/// The threads of a trial by thread id.
#[derive(Default)]
pub(crate) struct Threads<'a> {
    /// The threads of the ends, each with the report and the id of its process.
    ends: BTreeMap<i32, (&'a ThreadReport, &'a Thread, i32)>,
    others: BTreeMap<i32, &'a Task>,
    /// The CPUs on which threads of the ends may run, each with the only end that has such a thread.
    cpus: BTreeMap<u32, Option<&'static str>>,
    /// Names of threads that say more than the kernel's.
    names: BTreeMap<i32, String>,
    conduct: Conduct,
    /// Kernels of the ping end, of the pong end, and of the host of the guests in which they run.
    kernels: [Kernel; 3],
    /// For each CPU, the highest frequency that it had in the recorded events, kHz.
    highest_khz: BTreeMap<u32, u32>,
}

impl<'a> Threads<'a> {
    /// The threads of the ends in thread tables, and the other threads in the recorded events. A pong whose side is not
    /// followed has no threads here.
    pub fn of(tables: &'a [ThreadReport], trial: usize, seen: &'a [Switches], pong: &Pong) -> Threads<'a> {
        let of_ping = |process: &ThreadReport| process.ends.iter().any(|end| end == OWN);
        let of_trial = tables.iter().filter(|t| t.trial == trial);
        let mut threads = Threads::of_tasks(seen);
        for p in of_trial.filter(|t| pong.is_followed() || of_ping(t)) {
            let apart = matches!(pong, Pong::Bounded(_)) && !of_ping(p);
            let machine = if apart { Machine::Pong } else { Machine::Ping };
            let id = |tid: i32| machine.thread(tid);
            let end = match p.ends.as_slice() {
                [end] if end == OWN => Some("ping"),
                [end] if end == "pong" => Some("pong"),
                _ => None,
            };
            for t in p.before.iter().chain(&p.after) {
                threads.ends.insert(id(t.tid), (p, t, id(p.pid)));
                let cpus = t.cpus.parse::<CpuList>().unwrap_or_default().0.into_iter();
                for cpu in cpus.map(|cpu| machine.cpu(cpu)) {
                    threads.cpus.entry(cpu).and_modify(|only| *only = only.filter(|e| Some(*e) == end)).or_insert(end);
                }
            }
        }
        threads
    }

    /// The same threads; those with these ids have these names.
    pub fn with_names(self, names: BTreeMap<i32, String>) -> Threads<'a> {
        Threads { names, ..self }
    }

    /// The same threads, of ends that send and receive in this way.
    pub fn of_conduct(self, conduct: Conduct) -> Threads<'a> {
        Threads { conduct, ..self }
    }

    /// Whether the threads that receive messages poll.
    pub fn poll(&self) -> bool {
        self.conduct.poll
    }

    /// The gate of the class of the messages that this end sends, if it has one.
    pub fn gate(&self, end: &str) -> Option<&Gate> {
        self.conduct.gates.get(end)
    }

    /// If something held a message on this leg and released it together with others: the time until which it was held (monotonic
    /// ns), and the usual time on the way, ns.
    pub fn held_until_ns(&self, leg: Metric, due_ns: i64) -> Option<(i64, i64)> {
        self.conduct.held.until_ns(leg, due_ns)
    }

    /// What executors handled, if they receive the messages.
    pub fn handled(&self) -> Option<&Handled> {
        self.conduct.handled.as_ref()
    }

    /// Whether the sender sleeps by a timer of its own until a message is due.
    pub fn sleep_until_due(&self) -> bool {
        self.conduct.sleep_until_due
    }

    /// Time by which the kernel may delay the timers of a thread of an end, ns; `None` if it is not known.
    pub fn timer_slack_ns(&self, tid: i32) -> Option<i64> {
        let (_, thread, _) = self.ends.get(&tid)?;
        thread.timer_slack_ns.and_then(|ns| i64::try_from(ns).ok())
    }

    /// Whether the messages on this leg are sent again if they are lost.
    pub fn are_sent_again(&self, leg: Metric) -> bool {
        self.conduct.are_sent_again(leg)
    }

    /// Whether the writers in the process of this thread wait for acknowledgements.
    pub fn await_acks(&self, tid: i32) -> bool {
        let all = |ends: &[String]| !ends.is_empty() && ends.iter().all(|end| self.conduct.await_acks.contains(end));
        self.ends.get(&tid).is_some_and(|(process, ..)| all(&process.ends))
    }

    /// The same threads, with what is known about the kernels of the ping end, of the pong end, and of the host of the guests in
    /// which they run.
    pub fn of_kernels(self, kernels: [Kernel; 3]) -> Threads<'a> {
        Threads { kernels, ..self }
    }

    /// The kernel that has this CPU. Without CPUs of a pong with another clock, the ends have the same kernel.
    pub fn kernel(&self, cpu: u32) -> Kernel {
        self.kernels[Machine::of_cpu(cpu) as usize]
    }

    /// The end whose threads may run on this CPU, if no thread of the other end may.
    pub fn end_of_cpu(&self, cpu: u32) -> Option<&'static str> {
        self.cpus.get(&cpu).copied().flatten()
    }

    /// The threads in the recorded events alone.
    pub fn of_tasks(seen: &'a [Switches]) -> Threads<'a> {
        let others = seen.iter().flat_map(|s| &s.tasks).map(|(tid, task)| (*tid, task));
        let mut highest_khz = BTreeMap::new();
        let all = seen.iter().flat_map(|s| s.events.iter().chain(s.away.iter().map(|away| &away.event)));
        for event in all {
            if let SwitchKind::Frequency { khz } = event.what {
                let highest: &mut u32 = highest_khz.entry(event.cpu).or_default();
                *highest = khz.max(*highest);
            }
        }
        Threads { others: others.collect(), highest_khz, ..Threads::default() }
    }

    /// The highest frequency that a CPU had in the recorded events, kHz; `None` if its frequency is not known.
    pub fn highest_khz(&self, cpu: u32) -> Option<u32> {
        self.highest_khz.get(&cpu).copied()
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
        let own = self.ends.get(&tid).map(|(_, thread, _)| thread.name.clone()).or(self.names.get(&tid).cloned());
        own.or_else(|| self.others.get(&tid).map(|task| task.name.clone()))
    }

    /// Role of a thread of an end, e.g. `receive`.
    pub fn role(&self, tid: i32) -> Option<String> {
        self.ends.get(&tid).map(|(_, thread, _)| thread.role.clone()).filter(|role| !role.is_empty())
    }

    /// Whether a thread has a real-time policy with a priority, `fifo` or `rr`; false if its policy is not known.
    pub fn is_real_time(&self, tid: i32) -> bool {
        (1..DEADLINE_RANK).contains(&self.rank(tid))
    }

    /// Ids of the threads of the kernel, or of two kernels, with this name.
    pub fn of_the_kernel(&self, name: &str) -> impl Iterator<Item = i32> {
        self.others.iter().filter(move |(_, task)| task.kernel && task.name == name).map(|(tid, _)| *tid)
    }

    /// Whether a thread belongs to the kernel.
    pub fn is_of_the_kernel(&self, tid: i32) -> bool {
        self.others.get(&tid).is_some_and(|task| task.kernel)
    }

    /// Rank of a thread in the kernel's scheduler: real-time threads by priority, deadline threads above them, all other
    /// threads 0.
    pub fn rank(&self, tid: i32) -> u32 {
        let of = |policy: &Policy| match policy {
            Policy::Fifo { priority } | Policy::Rr { priority } => *priority,
            Policy::Deadline { .. } => DEADLINE_RANK,
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
            tid: (tid > 0).then_some(kernel_id(tid)),
            policy,
            ..CausedBy::named(name)
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
        let name = self.names.get(&tid).unwrap_or(&task.name);
        let by = by(name.clone(), task.policy.map(|p| p.to_string()));
        (word, CausedBy { process: task.process.clone(), ..by })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(ends: &[&str], cpus: &[&str]) -> ThreadReport {
        let thread = |cpus: &&str| Thread { cpus: (*cpus).to_owned(), ..Thread::default() };
        ThreadReport {
            ends: ends.iter().map(|end| (*end).to_owned()).collect(),
            before: cpus.iter().map(thread).collect(),
            ..ThreadReport::default()
        }
    }

    #[test]
    fn each_cpu_has_the_kernel_of_its_end() {
        let kernels = [true, false, true].map(|throttles| Kernel { throttles, ..Kernel::default() });
        let threads = Threads::of_tasks(&[]).of_kernels(kernels);
        let cpus = [Machine::Ping, Machine::Pong, Machine::Host].map(|machine| machine.cpu(1));
        assert_eq!(cpus.map(|cpu| threads.kernel(cpu).throttles), [true, false, true]);
    }

    #[test]
    fn a_cpu_belongs_to_an_end_if_the_other_end_cannot_run_there() {
        let tables = [process(&["ping"], &["0", "0,2"]), process(&["pong"], &["1-2"])];
        let threads = Threads::of(&tables, 0, &[], &Pong::SameClock);
        assert_eq!([0, 1, 2, 3].map(|cpu| threads.end_of_cpu(cpu)), [Some("ping"), Some("pong"), None, None]);
        let both = [process(&["ping", "pong"], &["0"])];
        assert_eq!(Threads::of(&both, 0, &[], &Pong::SameClock).end_of_cpu(0), None);
    }
}
