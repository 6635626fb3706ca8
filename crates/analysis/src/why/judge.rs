//! Finds the cause of the delay of one message from the context switches of threads.

use crate::why::leg::Leg;
use crate::why::timeline::Timeline;
use crate::why::walk::{Stretch, What, back};
use crate::why::words;
use std::collections::BTreeMap;
use tailbound_document::{Cause, CauseKind, Message, Report, Thread, ThreadReport};
use tailbound_model::{Metric, Policy, Switches, Task};

/// A cause must explain at least this share of the time that a leg took beyond its median.
const ENOUGH: f64 = 0.5;

/// Everything that is known about one late message: the leg that exceeds its median most, the threads of its trial and
/// their context switches.
pub(crate) struct Judge<'a> {
    message: &'a Message,
    leg: &'a Leg,
    seen: Result<&'a [Switches], &'a str>,
    threads: BTreeMap<i32, (&'a ThreadReport, &'a Thread)>,
}

impl<'a> Judge<'a> {
    /// Makes an object that finds the cause of the lateness of a message. If `only` names an end, only the processes of
    /// this end are used, because the processes of the other end run on another kernel.
    pub fn new(
        report: &'a Report,
        message: &'a Message,
        leg: &'a Leg,
        seen: Result<&'a [Switches], &'a str>,
        only: Option<&str>,
    ) -> Self {
        let asked = |t: &&ThreadReport| only.is_none_or(|end| t.ends.iter().any(|e| e == end));
        let of_trial = report.threads.iter().filter(|t| t.trial == message.trial).filter(asked);
        let rows = of_trial.flat_map(|p| p.before.iter().chain(&p.after).map(move |t| (t.tid, (p, t))));
        Judge { message, leg, seen, threads: rows.collect() }
    }

    pub fn cause(&self) -> Cause {
        let seen = match self.seen {
            Ok(seen) => seen,
            Err(why) => return self.unexplained(why.to_owned()),
        };
        let (begin, end) = (self.leg.begin_ns, self.leg.end_ns);
        let Some(timeline) = Timeline::of(seen, (begin, end)) else {
            let why = "during the delay of this message, there were more context switches than could be recorded";
            return self.unexplained(why.into());
        };
        let mut way = self.way(&timeline, self.leg.end, begin, end);
        // If the sender is delayed in its send call, the message is delayed, whichever thread received it.
        if let Some((from, to)) = self.leg.call {
            let to = to.min(end);
            let sender = self.way(&timeline, "ping", from, to);
            way.extend(sender.into_iter().filter(|s| !way.contains(s)).collect::<Vec<_>>());
        }
        let enough = (ENOUGH * self.leg.excess_ns as f64) as i64;
        let stopped = self.stopped(seen, &timeline, begin, end);
        let waited = longest(&way, |s| matches!(s.what, What::Waited { .. }));
        let blocked = longest(&way, |s| s.what == What::Slept && self.is_in_call(s));
        if let Some((end, ns)) = stopped.filter(|(_, ns)| *ns >= enough) {
            let text =
                format!("the process of the {end} end was stopped for {} (SIGSTOP, or a debugger)", words::time(ns));
            return Cause { end: Some(end.to_owned()), ..self.made(CauseKind::Stopped, ns, text) };
        }
        if let Some((stretch, ns)) = waited.filter(|(s, ns)| *ns >= enough && self.threads.contains_key(&s.thread)) {
            return self.waited(seen, &timeline, &way, stretch, ns);
        }
        if let Some((stretch, ns)) = blocked.filter(|(_, ns)| *ns >= enough) {
            let text = format!(
                "{} was blocked for {} in the driver's call to send",
                self.thread_words(stretch.thread),
                words::time(ns)
            );
            return self.about(stretch.thread, self.made(CauseKind::Blocked, ns, text));
        }
        self.unexplained(self.what_was_seen(&way))
    }

    /// What the threads that carried the message did between the times `begin` and `end`. They are followed back from
    /// the thread of the end `at` (ping or pong) that runs at the time `end`.
    fn way(&self, timeline: &Timeline, at: &str, begin: i64, end: i64) -> Vec<Stretch> {
        let here = self.threads.iter().filter(|(_, (process, _))| process.ends.iter().any(|e| e == at));
        // If several threads run, the thread that got its CPU last was woken for this message.
        let last = here.filter_map(|(tid, _)| Some((timeline.running(*tid, end)?.0, *tid))).max();
        let known = |tid: i32| self.threads.contains_key(&tid);
        let outranks = |one: i32, other: i32| self.rank(one) > self.rank(other);
        last.map(|(_, tid)| back(timeline, tid, (begin, end), &known, &outranks)).unwrap_or_default()
    }

    /// Rank of a thread in the kernel's scheduler: real-time threads by priority, all other threads 0.
    fn rank(&self, tid: i32) -> u32 {
        let of = |policy: &Policy| match policy {
            Policy::Fifo { priority } | Policy::Rr { priority } => *priority,
            Policy::Deadline { .. } => 100,
            _ => 0,
        };
        if let Some((_, thread)) = self.threads.get(&tid) {
            return thread.policy.parse().as_ref().map_or(0, of);
        }
        let task = self.seen.ok().and_then(|seen| seen.iter().find_map(|s| s.tasks.get(&tid)));
        task.and_then(|t| t.policy.as_ref()).map_or(0, of)
    }

    /// The end whose process was stopped for the longest time between `begin` and `end`, and this time in ns.
    fn stopped(&self, seen: &'a [Switches], timeline: &Timeline, begin: i64, end: i64) -> Option<(&'a str, i64)> {
        let of = |s: &'a Switches| {
            let threads = || self.threads.iter().filter(|(_, (p, _))| p.ends == s.ends).map(|(tid, _)| *tid);
            let overlap = |(from, to): &(i64, i64)| {
                // The supervisor may notice a stop late; the process had then not run since it was stopped.
                let from = timeline.idle_since(threads(), *from).map_or(*from, |idle| idle.min(*from));
                to.min(&end) - from.max(begin)
            };
            // A stop that began after the leg did not cause the delay, however long the process had been idle.
            let ns = s.stops.iter().filter(|(from, _)| *from < end).map(overlap).filter(|ns| *ns > 0).sum();
            Some((s.ends.first()?.as_str(), ns))
        };
        seen.iter().filter_map(of).max_by_key(|(_, ns)| *ns)
    }

    /// True if the sender slept within its send call: the call of this message or, for the send lateness, the call of
    /// the previous message.
    fn is_in_call(&self, stretch: &Stretch) -> bool {
        let within = |(from, to): (i64, i64)| from <= stretch.begin_ns && stretch.end_ns <= to;
        let is_sender = self.threads.get(&stretch.thread).is_some_and(|(process, thread)| process.pid == thread.tid);
        let before = self.message.previous_send_end_ns.map(|end| (i64::MIN, end));
        match self.leg.metric {
            Metric::SendLateness => is_sender && before.is_some_and(within),
            _ => self.leg.call.is_some_and(within),
        }
    }

    fn waited(&self, seen: &[Switches], timeline: &Timeline, way: &[Stretch], stretch: Stretch, ns: i64) -> Cause {
        let What::Waited { cpu } = stretch.what else { return self.unexplained(String::new()) };
        // All waits of the thread for this CPU, and the threads that had the CPU in the meantime.
        let task = |tid: i32| seen.iter().find_map(|s| s.tasks.get(&tid));
        let mut had: Vec<(String, i32, i64)> = Vec::new();
        for s in way.iter().filter(|s| s.thread == stretch.thread && s.what == stretch.what) {
            for (who, ns) in timeline.occupants(cpu, s.begin_ns, s.end_ns) {
                let name = self.name(who, task(who));
                // Threads with the same name are counted together.
                match had.iter_mut().find(|(other, ..)| *other == name) {
                    Some((.., sum)) => *sum += ns,
                    None => had.push((name, who, ns)),
                }
            }
        }
        had.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
        let most = had.first().filter(|(.., had)| *had * 2 >= ns);
        let (instead, words) = match most {
            Some((_, 0, _)) => (
                None,
                "while no thread ran on that CPU: something else kept the thread from running (the CPU quota of a \
                    cgroup, or a host that took the CPU)"
                    .to_owned(),
            ),
            Some((name, tid, _)) => {
                (Some(name.clone()), format!("while {} ran on that CPU", self.other_words(*tid, task(*tid), name)))
            }
            None if had.is_empty() => (
                None,
                "but which threads ran on that CPU is not known: this needs the privilege to watch whole CPUs \
                (CAP_PERFMON, or kernel.perf_event_paranoid of at most 0)"
                    .into(),
            ),
            None => {
                let some: Vec<String> = had.iter().take(3).map(|(name, ..)| format!("`{name}`")).collect();
                (None, format!("while {} and other threads ran on that CPU", some.join(", ")))
            }
        };
        let text = format!(
            "{} was ready to run for {} on CPU {cpu} {words}",
            self.thread_words(stretch.thread),
            words::time(ns)
        );
        Cause { cpu: Some(cpu), instead, ..self.about(stretch.thread, self.made(CauseKind::Waited, ns, text)) }
    }

    fn name(&self, tid: i32, task: Option<&Task>) -> String {
        let own = self.threads.get(&tid).map(|(_, thread)| thread.name.clone());
        own.or_else(|| task.map(|t| t.name.clone())).unwrap_or_else(|| match tid {
            // The kernel reports no id for a thread that is ending.
            ..0 => "a thread that ended then".to_owned(),
            tid => format!("thread {tid}, which is gone"),
        })
    }

    fn other_words(&self, tid: i32, task: Option<&Task>, name: &str) -> String {
        if self.threads.contains_key(&tid) {
            return self.thread_words(tid);
        }
        match task.and_then(|t| t.policy) {
            Some(policy) => format!("`{name}` ({policy})"),
            None => format!("`{name}`"),
        }
    }

    fn thread_words(&self, tid: i32) -> String {
        match self.threads.get(&tid) {
            Some((process, thread)) => {
                format!("thread `{}` of the {} end ({})", thread.name, process.ends.join(" and "), thread.policy)
            }
            None => format!("thread {tid}"),
        }
    }

    /// Describes what the thread at the end of the leg did for most of the leg's time.
    fn what_was_seen(&self, way: &[Stretch]) -> String {
        let Some((stretch, ns)) = longest(way, |_| true) else {
            return "no thread of the receiving end was seen on a CPU".into();
        };
        let (who, time) = (self.thread_words(stretch.thread), words::time(ns));
        match stretch.what {
            What::Slept => {
                format!("{who} slept for {time} of it; no thread waited for a CPU: the message was elsewhere")
            }
            What::Ran { cpu } => {
                format!("{who} ran on CPU {cpu} for {time} of it: its own work, an interrupt, or a hypervisor")
            }
            What::Waited { cpu } => format!("{who} waited for CPU {cpu} for {time} of it, which is less than half"),
        }
    }

    fn about(&self, tid: i32, cause: Cause) -> Cause {
        let (process, thread) = self.threads.get(&tid).copied().unzip();
        Cause { thread: thread.map(|t| t.name.clone()), end: process.map(|p| p.ends.join(" and ")), ..cause }
    }

    fn unexplained(&self, text: String) -> Cause {
        self.made(CauseKind::Unexplained, 0, format!("unexplained: {text}"))
    }

    fn made(&self, kind: CauseKind, explained_ns: i64, text: String) -> Cause {
        Cause {
            leg: words::leg_key(self.leg.metric).into(),
            excess_ns: self.leg.excess_ns,
            explained_ns: explained_ns.min(self.leg.excess_ns),
            kind,
            thread: None,
            end: None,
            cpu: None,
            instead: None,
            text: words::sentence(self.message, self.leg, &text),
        }
    }
}

/// Of the time spans for which `counts` is true: the thread and its activity (running, waiting or sleeping) with the
/// longest total time, and this total time in ns.
fn longest(way: &[Stretch], counts: impl Fn(&Stretch) -> bool) -> Option<(Stretch, i64)> {
    let mut sums: Vec<(Stretch, i64)> = Vec::new();
    for stretch in way.iter().filter(|s| counts(s)) {
        let ns = stretch.end_ns - stretch.begin_ns;
        match sums.iter_mut().find(|(s, _)| (s.thread, s.what) == (stretch.thread, stretch.what)) {
            Some((_, sum)) => *sum += ns,
            None => sums.push((*stretch, ns)),
        }
    }
    sums.into_iter().max_by_key(|(_, ns)| *ns)
}
