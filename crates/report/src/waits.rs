//! How long a thread waited for a CPU between the first slot and the last.
//!
//! In: what the kernel had counted before, after, and once the loads had ended. It counts a wait when it ends, so one that was
//! going on at a reading is told by bounds, or not at all. Out: a time that fits into the span, and how exact it is.

use crate::circumstances::{LaterReading, Thread, ThreadReport};

/// Of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waited {
    /// The time, by `bound`; never more than what the thread did not run.
    pub ns: i64,
    pub bound: Bound,
    /// What it ran meanwhile.
    pub cpu_ns: i64,
    /// From the reading before the first slot to that after the last.
    pub span_ns: i64,
    /// It waited at the end, and had no CPU when it was read again: how long that had gone on is not known.
    pub open: bool,
    /// How much later that was.
    pub later_ns: i64,
}

/// What is known of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// As the kernel counted it.
    Exact,
    /// The wait at the end is known less the time until it was read.
    AtLeast,
    /// A wait that had begun before the span is counted whole.
    AtMost,
}

impl Bound {
    /// Goes before the time in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Bound::Exact => "",
            Bound::AtLeast => "at least ",
            Bound::AtMost => "up to ",
        }
    }

    /// Goes before the number in a table.
    pub fn sign(self) -> &'static str {
        match self {
            Bound::Exact => "",
            Bound::AtLeast => "≥ ",
            Bound::AtMost => "≤ ",
        }
    }
}

/// Of `thread`, one of those that were read after the last slot; `None` where the record does not tell the span.
pub(crate) fn waited(process: &ThreadReport, thread: &Thread) -> Option<Waited> {
    let span_ns = process.span_ns?;
    let before = process.before.iter().find(|b| b.tid == thread.tid);
    let since = |f: fn(&Thread) -> u64| f(thread).saturating_sub(before.map_or(0, f)) as i64;
    let (counted, cpu_ns) = (since(|t| t.run_delay_ns), since(|t| t.cpu_ns));
    let most = (span_ns - cpu_ns).max(0);
    let began_before = before.is_some_and(|b| b.runnable) && counted > 0;
    let later = thread.later.filter(|_| thread.runnable);
    let ended = later.map_or(0, |l| l.run_delay_ns.saturating_sub(thread.run_delay_ns) as i64);
    let within = later.map_or(0, |l| within(thread, l));
    // A wait was going on at the end, as far as is known: it may have begun before the last moment of the span.
    let unread = thread.runnable && (later.is_none() || ended > 0);
    let open = later.is_some_and(|l| l.runnable && ended == 0 && l.cpu_ns == thread.cpu_ns);
    let (ns, bound) = match (began_before, open || unread) {
        // What was counted may all lie before the span, and what goes on is not counted.
        (true, _) if open || thread.runnable && later.is_none() => (0, Bound::AtLeast),
        (true, _) => (counted + ended, Bound::AtMost),
        (false, true) => (counted + within, Bound::AtLeast),
        (false, false) => (counted, Bound::Exact),
    };
    Some(Waited { ns: ns.min(most), bound, cpu_ns, span_ns, open, later_ns: later.map_or(0, |l| l.after_ns) })
}

/// What a thread had waited from its birth until it was read, at least.
pub(crate) fn since_birth_ns(thread: &Thread) -> i64 {
    thread.run_delay_ns as i64 + thread.later.filter(|_| thread.runnable).map_or(0, |l| within(thread, l))
}

/// Of the waits that ended between two readings, what lies before the first of them, at least.
fn within(thread: &Thread, later: LaterReading) -> i64 {
    (later.run_delay_ns.saturating_sub(thread.run_delay_ns) as i64 - later.after_ns.max(0)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn thread(run_delay_ms: u64, cpu_ms: u64, runnable: bool) -> Thread {
        let text = serde_json::json!({
            "tid": 7, "name": "recv", "role": "receive", "policy": "other", "cpus": "0", "last_cpu": 0,
            "cpu_ns": cpu_ms * 1_000_000, "run_delay_ns": run_delay_ms * 1_000_000, "runnable": runnable,
            "voluntary_switches": 0, "involuntary_switches": 0, "migrations": 0, "minor_faults": 0, "major_faults": 0,
        });
        serde_json::from_value(text).unwrap()
    }

    /// Over 4 s; `later` is when it was read again, with run delay and CPU time then, in ms.
    fn of(before: Thread, after: Thread, later: Option<(i64, u64, u64, bool)>) -> Waited {
        let later = later.map(|(after_ms, run_delay_ms, cpu_ms, runnable)| LaterReading {
            after_ns: after_ms * MS,
            cpu_ns: cpu_ms * 1_000_000,
            run_delay_ns: run_delay_ms * 1_000_000,
            runnable,
        });
        let after = Thread { later, ..after };
        let process = ThreadReport {
            trial: 0,
            ends: vec!["ping".into()],
            pid: 1,
            asked_policy: None,
            asked_cpus: None,
            span_ns: Some(4_000 * MS),
            before: vec![before],
            after: vec![after.clone()],
        };
        waited(&process, &after).unwrap()
    }

    fn told(waited: Waited) -> (i64, Bound, bool) {
        (waited.ns / MS, waited.bound, waited.open)
    }

    #[test]
    fn finished_waits_are_exact() {
        assert_eq!(told(of(thread(10, 5, false), thread(310, 8, false), None)), (300, Bound::Exact, false));
        // It just ran when it was read.
        let again = Some((20, 310, 12, true));
        assert_eq!(told(of(thread(10, 5, false), thread(310, 8, true), again)), (300, Bound::Exact, false));
    }

    #[test]
    fn a_wait_that_goes_on_at_the_end_counts_less_what_lies_behind_it() {
        let found = of(thread(10, 5, false), thread(12, 6, true), Some((30, 3_912, 7, false)));
        assert_eq!(told(found), (2 + 3_870, Bound::AtLeast, false));
        // It had begun after the end, as far as is known: nothing is added.
        let short = of(thread(10, 5, false), thread(12, 6, true), Some((30, 42, 7, false)));
        assert_eq!(told(short), (2, Bound::AtLeast, false));
    }

    #[test]
    fn no_wait_is_longer_than_the_time_that_the_thread_did_not_run() {
        // From before the first slot to behind the last, with no CPU in between.
        let found = of(thread(10, 5, true), thread(10, 5, true), Some((30, 9_010, 6, false)));
        assert_eq!(told(found), (4_000, Bound::AtLeast, false));
        // It waited for long before the first slot, then ran for a second.
        let early = of(thread(10, 5, true), thread(8_010, 1_005, false), None);
        assert_eq!(told(early), (3_000, Bound::AtMost, false));
    }

    #[test]
    fn a_wait_that_does_not_end_is_open() {
        let found = of(thread(10, 5, false), thread(12, 6, true), Some((200, 12, 6, true)));
        assert_eq!((told(found), found.later_ns), ((2, Bound::AtLeast, true), 200 * MS));
        // It was read once more too late.
        assert_eq!(told(of(thread(10, 5, false), thread(12, 6, true), None)), (2, Bound::AtLeast, false));
        // What was counted may have been before the span.
        let before = of(thread(10, 5, true), thread(310, 6, true), Some((200, 310, 6, true)));
        assert_eq!(told(before), (0, Bound::AtLeast, true));
    }
}
