//! Computes how long a thread waited for a CPU between the first and the last slot.
//!
//! Input: the kernel's counters before the first slot, after the last slot, and after the loads had ended. The kernel
//! counts a wait only when the wait ends, so a wait that was not over when a counter was read is known only within
//! bounds, or not at all. Output: a waiting time that is at most the time between the slots, and how exact this time
//! is.

use tailbound_document::{LaterReading, Thread, ThreadReport};

/// Time for which one thread waited for a CPU between the first and the last slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    /// The waiting time in ns, with the meaning given by `bound`; never more than the time for which the thread did not
    /// run.
    pub ns: i64,
    /// How exact the time `ns`, for which the thread waited for a CPU, is.
    pub bound: Bound,
    /// CPU time of the thread between the first and the last slot, in ns.
    pub cpu_ns: i64,
    /// Time from the counter reading before the first slot to the counter reading after the last slot, in ns.
    pub span_ns: i64,
    /// True if the thread waited for a CPU after the last slot and had still got no CPU when the counters were read
    /// again after the loads had ended: the length of this wait is not known.
    pub open: bool,
    /// Time between two readings of the counters, in ns: the first reading was after the last slot, the second after
    /// the loads had ended.
    pub later_ns: i64,
}

/// How exact the time is for which a thread waited for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The waiting time of the thread is exact, as counted by the kernel.
    Exact,
    /// The time is a lower bound, because a wait that had not ended when the counters were read after the last slot is
    /// counted only in part or not at all.
    AtLeast,
    /// The time is an upper bound, because a wait that had begun before the first slot is counted completely.
    AtMost,
}

impl Bound {
    /// Words before the waiting time of a thread in a sentence, e.g. `at least `.
    pub fn words(self) -> &'static str {
        match self {
            Bound::Exact => "",
            Bound::AtLeast => "at least ",
            Bound::AtMost => "up to ",
        }
    }

    /// Sign before the waiting time of a thread in a table, e.g. `≥ `.
    pub fn sign(self) -> &'static str {
        match self {
            Bound::Exact => "",
            Bound::AtLeast => "≥ ",
            Bound::AtMost => "≤ ",
        }
    }
}

/// Computes the waiting time of `thread`, which must be in the table of `process` after the last slot; `None` if the
/// record does not contain both readings of the thread's counters.
pub fn waited(process: &ThreadReport, thread: &Thread) -> Option<Waited> {
    let span_ns = process.span_ns?;
    let before = process.before.iter().find(|b| b.tid == thread.tid);
    let since = |f: fn(&Thread) -> u64| f(thread).saturating_sub(before.map_or(0, f)) as i64;
    let (counted, cpu_ns) = (since(|t| t.run_delay_ns), since(|t| t.cpu_ns));
    let most = (span_ns - cpu_ns).max(0);
    let began_before = before.is_some_and(|b| b.runnable) && counted > 0;
    let later = thread.later.filter(|_| thread.runnable);
    let ended = later.map_or(0, |l| l.run_delay_ns.saturating_sub(thread.run_delay_ns) as i64);
    let within = later.map_or(0, |l| within(thread, l));
    // A wait may have been going on at the end of the span.
    let unread = thread.runnable && (later.is_none() || ended > 0);
    let open = later.is_some_and(|l| l.runnable && ended == 0 && l.cpu_ns == thread.cpu_ns);
    let (ns, bound) = match (began_before, open || unread) {
        // All counted waits may lie before the span, and the wait that goes on is not counted.
        (true, _) if open || thread.runnable && later.is_none() => (0, Bound::AtLeast),
        (true, _) => {
            let before_ns = before.and_then(|b| b.waiting_most_ns).unwrap_or(i64::MAX);
            nearer(counted.saturating_sub(before_ns) + within, counted + ended)
        }
        (false, true) => (counted + within, Bound::AtLeast),
        (false, false) => (counted, Bound::Exact),
    };
    Some(Waited { ns: ns.min(most), bound, cpu_ns, span_ns, open, later_ns: later.map_or(0, |l| l.after_ns) })
}

/// The lower bound of a waiting time if it is at least a fifth of the upper bound, and else the upper bound. With a fifth,
/// a thread whose lower bound shows that it was starved is never described by an upper bound that shows less.
fn nearer(least_ns: i64, most_ns: i64) -> (i64, Bound) {
    if least_ns > 0 && least_ns.saturating_mul(5) >= most_ns {
        (least_ns, Bound::AtLeast)
    } else {
        (most_ns, Bound::AtMost)
    }
}

/// Smallest possible time for which a thread had waited for a CPU from its start until its counters were read, in ns.
pub(crate) fn since_birth_ns(thread: &Thread) -> i64 {
    thread.run_delay_ns as i64 + thread.later.filter(|_| thread.runnable).map_or(0, |l| within(thread, l))
}

/// Smallest possible part, in ns, of the waits that ended between two counter readings and that lies before the first
/// reading.
fn within(thread: &Thread, later: LaterReading) -> i64 {
    (later.run_delay_ns.saturating_sub(thread.run_delay_ns) as i64 - later.after_ns.max(0)).max(0)
}

/// Longest limit in ns for a blocked call or delivery.
pub const BLOCKED_MOST_NS: i64 = 100_000_000;
/// Shortest limit in ns for a blocked call or delivery. The scheduler of an ordinary host can delay any thread for less.
const BLOCKED_LEAST_NS: i64 = 1_000_000;

/// Limit in ns: a call, a delivery or a wake-up that takes at least this long was blocked. The limit is the period of
/// the messages, because the next message is due then, within [`BLOCKED_MOST_NS`] and 1 ms.
pub fn blocked_limit_ns(period_ns: Option<i64>) -> i64 {
    period_ns.map_or(BLOCKED_MOST_NS, |ns| ns.clamp(BLOCKED_LEAST_NS, BLOCKED_MOST_NS))
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

    /// Computes the waiting time over a span of 4 s in a test. `later` is the counter reading after the loads had
    /// ended: its time, run delay and CPU time in ms, and whether the thread was ready to run.
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
            read_ns: Some(0),
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
        // The thread was running when it was read.
        let again = Some((20, 310, 12, true));
        assert_eq!(told(of(thread(10, 5, false), thread(310, 8, true), again)), (300, Bound::Exact, false));
    }

    #[test]
    fn a_wait_that_goes_on_at_the_end_counts_less_what_lies_behind_it() {
        let found = of(thread(10, 5, false), thread(12, 6, true), Some((30, 3_912, 7, false)));
        assert_eq!(told(found), (2 + 3_870, Bound::AtLeast, false));
        // The wait may have begun after the end of the span, so nothing is added.
        let short = of(thread(10, 5, false), thread(12, 6, true), Some((30, 42, 7, false)));
        assert_eq!(told(short), (2, Bound::AtLeast, false));
    }

    #[test]
    fn no_wait_is_longer_than_the_time_that_the_thread_did_not_run() {
        // The thread waited from before the first slot until after the last slot, without a CPU.
        let found = of(thread(10, 5, true), thread(10, 5, true), Some((30, 9_010, 6, false)));
        assert_eq!(told(found), (4_000, Bound::AtLeast, false));
        // The thread waited for a long time before the first slot, and then ran for a second.
        let early = of(thread(10, 5, true), thread(8_010, 1_005, false), None);
        assert_eq!(told(early), (3_000, Bound::AtMost, false));
    }

    /// Test: a wait was going on at the first slot, and it is known for how long it can have gone on.
    #[test]
    fn a_wait_that_began_before_the_first_slot_has_a_lower_bound() {
        let before = |most_ms: i64| Thread { waiting_most_ns: Some(most_ms * MS), ..thread(10, 5, true) };
        let found = of(before(60), thread(1_010, 6, false), None);
        assert_eq!(told(found), (940, Bound::AtLeast, false));
        let found = of(before(60), thread(1_010, 6, true), Some((30, 1_050, 7, false)));
        assert_eq!(told(found), (940 + 10, Bound::AtLeast, false));
        // Nearly all of the wait can lie before the first slot.
        assert_eq!(told(of(before(900), thread(1_010, 6, false), None)), (1_000, Bound::AtMost, false));
    }

    #[test]
    fn a_wait_that_does_not_end_is_open() {
        let found = of(thread(10, 5, false), thread(12, 6, true), Some((200, 12, 6, true)));
        assert_eq!((told(found), found.later_ns), ((2, Bound::AtLeast, true), 200 * MS));
        // There was no later reading.
        assert_eq!(told(of(thread(10, 5, false), thread(12, 6, true), None)), (2, Bound::AtLeast, false));
        // The counted wait may lie before the span.
        let before = of(thread(10, 5, true), thread(310, 6, true), Some((200, 310, 6, true)));
        assert_eq!(told(before), (0, Bound::AtLeast, true));
    }
}
