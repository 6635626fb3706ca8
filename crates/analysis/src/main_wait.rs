//! Computes how long the main thread of the ping end waited for a CPU in one time span, from recorded context switches.
//!
//! The kernel's counter of waiting time covers a whole trial. It does not show whether the thread waited in a particular
//! call; the context switches around that call do.

use tailbound_document::{Report, Thread};
use tailbound_model::{CpuList, Metric, NO_TIME, SwitchKind, SwitchScope, Switches};
use tailbound_record::{Columns, Record, SlotBatch};

/// The end whose main thread sends.
const END: &str = "ping";

/// The longest M2 (`WakeToSent`) or M4 (`WakePeriod`) of a trial: begin and end, by the clock of the ping end, ns.
/// `None` if the samples cannot be read or no slot has a value.
pub(crate) fn longest(record: &Record, trial: usize, metric: Metric) -> Option<(i64, i64)> {
    let mut longest: Option<(i64, i64)> = None;
    let columns = Columns::of(&[metric]);
    let mut each = |batch: &SlotBatch| {
        for i in (0..batch.len()).filter(|i| !batch.warm_up[*i]) {
            let (begin, end) = match metric {
                Metric::WakePeriod => (batch.previous_wake_ns[i], batch.wake_ns[i]),
                _ => (batch.wake_ns[i], batch.send_end_ns[i]),
            };
            let longer = longest.is_none_or(|(b, e)| end.saturating_sub(begin) > e - b);
            if begin != NO_TIME && end != NO_TIME && longer {
                longest = Some((begin, end));
            }
        }
    };
    record.scan(trial, &columns, &mut each).ok()?;
    longest
}

/// The main thread of the ping end after the last slot of a trial, and the time for which it waited for a CPU between
/// the first and the last slot, in ns; `None` if the record does not have both readings of the thread.
pub(crate) fn main_thread(report: &Report, trial: usize) -> Option<(&Thread, i64)> {
    let process = report.threads.iter().find(|p| p.trial == trial && p.ends.iter().any(|e| e == END))?;
    let main = |threads: &[Thread]| threads.iter().position(|t| t.role == "main");
    let after = &process.after[main(&process.after)?];
    let before = &process.before[main(&process.before)?];
    Some((after, after.run_delay_ns.saturating_sub(before.run_delay_ns) as i64))
}

/// Smallest possible time in ns for which a thread of the ping end waited for a CPU between two times; `None` if no
/// context switches were recorded at the end of this span.
pub(crate) fn waited_ns(record: &Record, trial: usize, thread: &Thread, span: (i64, i64)) -> Option<i64> {
    let seen: Vec<Switches> = record.switches(trial).into_iter().collect::<Result<_, _>>().ok()?;
    let own = seen.iter().find(|s| s.ends.iter().any(|e| e == END))?;
    let all_seen = match &own.scope {
        SwitchScope::Cpus(cpus) => thread.cpus.parse::<CpuList>().is_ok_and(|list| list.0.is_subset(&cpus.0)),
        SwitchScope::OwnThreads => true,
        SwitchScope::Nothing(_) | SwitchScope::Off => false,
    };
    all_seen.then(|| within(own, thread.tid, span)).flatten()
}

/// Sum of a thread's waits within a time span at whose end the thread runs; `None` if its end was not recorded, or if
/// events within it were lost. A wait whose begin was not recorded is left out.
fn within(seen: &Switches, tid: i32, (begin, end): (i64, i64)) -> Option<i64> {
    let window = seen.windows.iter().find(|(from, to)| *from <= end && end <= *to)?;
    if seen.gaps.iter().any(|(from, to)| *from < end && begin < *to) {
        return None;
    }
    // Time since when the thread is ready and does not run, if it is known to wait.
    let mut ready_since: Option<i64> = None;
    let mut runs = false;
    let mut sum = 0;
    let mut add = |since: i64, until: i64| sum += (until.min(end) - since.max(begin)).max(0);
    for event in seen.events.iter().filter(|e| (window.0..=end).contains(&e.at_ns)) {
        match event.what {
            SwitchKind::Switch { into, .. } | SwitchKind::In(into) if into == tid => {
                if let Some(since) = ready_since.take() {
                    add(since, event.at_ns);
                }
                runs = true;
            }
            SwitchKind::Switch { out: left, preempted, .. } | SwitchKind::Out { thread: left, preempted }
                if left == tid =>
            {
                ready_since = preempted.then_some(event.at_ns);
                runs = false;
            }
            SwitchKind::Wake { thread, .. } if thread == tid && !runs => {
                ready_since.get_or_insert(event.at_ns);
            }
            _ => {}
        }
    }
    // At the end of the span the thread ran, because it read the clock; a wait that seems to go on is not counted.
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::SwitchEvent;

    const MAIN: i32 = 7;

    fn seen(events: &[(i64, SwitchKind)]) -> Switches {
        let event = |(at_ns, what): &(i64, SwitchKind)| SwitchEvent { at_ns: *at_ns, cpu: 0, what: *what };
        Switches { windows: vec![(0, 1_000)], events: events.iter().map(event).collect(), ..Switches::default() }
    }

    fn switch(out: i32, into: i32, preempted: bool) -> SwitchKind {
        SwitchKind::Switch { out, into, preempted, state: None, limit: None }
    }

    fn wake(thread: i32) -> SwitchKind {
        SwitchKind::Wake { thread, by: 0, interrupt: true, packet: false, limit: None }
    }

    #[test]
    fn waits_are_summed_within_the_span() {
        let events = seen(&[
            (100, switch(MAIN, 9, true)),
            (300, switch(9, MAIN, false)),
            (400, switch(MAIN, 0, false)),
            (600, wake(MAIN)),
            (650, switch(9, MAIN, false)),
        ]);
        assert_eq!(within(&events, MAIN, (0, 1_000)), Some(250));
        assert_eq!(within(&events, MAIN, (200, 700)), Some(150), "only the part within the span counts");
        assert_eq!(within(&events, MAIN, (-50, 1_000)), Some(250), "the begin of the span was not recorded");
        assert_eq!(within(&events, MAIN, (400, 600)), Some(0), "a sleeping thread does not wait for a CPU");
        assert_eq!(within(&events, 9, (0, 1_000)), Some(0), "no wait of another thread");
    }

    #[test]
    fn unknown_waits_do_not_count() {
        assert_eq!(within(&seen(&[(500, switch(9, MAIN, false))]), MAIN, (0, 1_000)), Some(0));
        assert_eq!(within(&seen(&[(500, wake(MAIN))]), MAIN, (0, 1_000)), Some(0), "the thread ran at the end");
        let gap = Switches { gaps: vec![(10, 20)], ..seen(&[(500, wake(MAIN))]) };
        assert_eq!(within(&gap, MAIN, (0, 1_000)), None);
        assert_eq!(within(&seen(&[]), MAIN, (0, 1_001)), None, "the end of the span was not recorded");
    }
}
