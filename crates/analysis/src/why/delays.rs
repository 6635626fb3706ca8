//! Bounds of a wait for a CPU that follow from the kernel's counter of run delays, for ends whose wake-ups were not
//! recorded.
//!
//! The kernel adds a wait to the counter of its thread when the thread gets a CPU. The agent reads the counter every
//! 50 ms, so that an increase contains all waits that ended between two readings.

use crate::why::share::Circumstances;
use crate::why::timeline::Timeline;
use tailbound_model::{Counter, CounterMove, CounterSeries};

/// A wait is certain only for what exceeds this number of median increases of the counter at other times.
const USUAL: i64 = 2;

/// Bounds of the wait with which a thread got a CPU, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delay {
    pub least_ns: i64,
    pub most_ns: i64,
}

/// The counter of run delays of one thread.
fn run_delays<'a>(thread: i32, end: &str, known: &Circumstances<'a>) -> Option<&'a CounterSeries> {
    let of = format!("thread {thread}");
    let mut all = known.of_end(end).flat_map(|s| &s.counters);
    all.find(|c| c.counter == Counter::RunDelayNs && c.of == of)
}

/// The wait with which `thread` of this end got a CPU at the time `came`; `None` if its counter was not read, or if the record
/// does not contain the increases of the counter at this time.
pub(crate) fn delay(thread: i32, end: &str, came: i64, timeline: &Timeline, known: &Circumstances) -> Option<Delay> {
    let series = run_delays(thread, end, known)?;
    if series.complete_from_ns.is_some_and(|from| came <= from) {
        return None;
    }
    let moves = series.moves.as_slice();
    // A reading takes time, so that two increases can contain the same moment.
    let mut around = moves.iter().filter(|m| m.from_ns < came && came <= m.to_ns).copied();
    let Some(mut sum) = around.next() else { return Some(Delay { least_ns: 0, most_ns: 0 }) };
    around.for_each(|m| sum = CounterMove { to_ns: m.to_ns, by: sum.by + m.by, ..sum });
    let (from_ns, to_ns, most_ns) = (sum.from_ns, sum.to_ns, sum.by as i64);
    // Other waits of the same thread that ended between the readings: those that the timeline shows, those of other
    // incidents, and what is usual.
    let shown_ns = timeline.away_ns(thread, (from_ns, to_ns), came);
    let elsewhere = known
        .incidents
        .iter()
        .filter(|(begin, end)| *begin < to_ns && from_ns < *end && !timeline.overlaps(*begin, *end));
    let elsewhere_ns: i64 = elsewhere.map(|(begin, end)| end - begin).sum();
    // The counter also contains the time for which a limit of CPU time stopped a thread that was ready.
    let limited = known.threads.rank(thread) > 0 || known.quota_may_have_stopped(end, from_ns, to_ns);
    let least_ns = match usual_ns(moves, known) {
        Some(usual_ns) if !limited => most_ns - shown_ns - elsewhere_ns - USUAL * usual_ns,
        _ => 0,
    };
    Some(Delay { least_ns: least_ns.max(0), most_ns })
}

/// Median increase of the counter while no message was late, ns; `None` if there is no such increase.
fn usual_ns(moves: &[CounterMove], known: &Circumstances) -> Option<i64> {
    let late = |m: &CounterMove| known.incidents.iter().any(|(begin, end)| *begin < m.to_ns && m.from_ns < *end);
    let mut usual: Vec<u64> = moves.iter().filter(|m| !late(m)).map(|m| m.by).collect();
    usual.sort_unstable();
    usual.get(usual.len() / 2).map(|by| *by as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::threads::Threads;
    use tailbound_model::{SwitchEvent, SwitchKind, SwitchScope, Switches};

    const THREAD: i32 = 20;
    const MS: i64 = 1_000_000;

    /// The thread leaves its CPU at 100 ms and gets it again at 120 ms. Readings every 50 ms show these increases.
    fn seen(increases: &[(i64, i64)], extra: &[(Counter, &str, i64, i64)]) -> [Switches; 1] {
        let one = |counter, of: &str, moves: Vec<CounterMove>| CounterSeries {
            counter,
            of: of.into(),
            moves,
            longest_step_ns: 50 * MS,
            complete_from_ns: None,
        };
        let at = |to: i64, by: i64| CounterMove { from_ns: (to - 50) * MS, to_ns: to * MS, by: by as u64 };
        let delays = increases.iter().map(|(to, by)| at(*to, *by)).collect();
        let mut counters = vec![one(Counter::RunDelayNs, "thread 20", delays)];
        counters.extend(extra.iter().map(|(counter, of, to, by)| one(*counter, of, vec![at(*to, *by)])));
        let event = |at_ns, what| SwitchEvent { at_ns, cpu: 1, what };
        let events = vec![
            event(100 * MS, SwitchKind::Out { thread: THREAD, preempted: false }),
            event(120 * MS, SwitchKind::In(THREAD)),
            event(121 * MS, SwitchKind::Out { thread: THREAD, preempted: false }),
            event(122 * MS, SwitchKind::In(THREAD)),
        ];
        let (ends, scope) = (vec!["pong".to_owned()], SwitchScope::OwnThreads);
        [Switches { ends, scope, counters, events, ..Switches::default() }]
    }

    fn delay_of(seen: &[Switches], incidents: &[(i64, i64)]) -> Option<Delay> {
        let timeline = Timeline::of(seen, (90 * MS, 125 * MS));
        let threads = Threads::default();
        delay(THREAD, "pong", 120 * MS, &timeline, &Circumstances { threads: &threads, seen, incidents, guests: &[] })
    }

    const QUIET: [(i64, i64); 3] = [(50, 40_000), (200, 50_000), (250, 60_000)];

    #[test]
    fn the_counter_bounds_the_wait_of_a_thread_that_woke_late() {
        let incident = [(100 * MS, 121 * MS)];
        let increases = [QUIET.as_slice(), &[(150, 18 * MS)]].concat();
        // The other sleep that ended between the readings took 1 ms, and the usual increase is 50 us.
        let bounds = Delay { least_ns: 18 * MS - MS - 100_000, most_ns: 18 * MS };
        assert_eq!(delay_of(&seen(&increases, &[]), &incident), Some(bounds));
        // The counter did not increase: the thread slept.
        assert_eq!(delay_of(&seen(&QUIET, &[]), &incident), Some(Delay { least_ns: 0, most_ns: 0 }));
    }

    #[test]
    fn increases_that_were_left_out_say_nothing_about_a_wait() {
        let delay_with = |complete_from_ns| {
            let mut seen = seen(&QUIET, &[]);
            seen[0].counters[0].complete_from_ns = Some(complete_from_ns);
            delay_of(&seen, &[(100 * MS, 121 * MS)])
        };
        assert_eq!([120 * MS, 119 * MS].map(delay_with), [None, Some(Delay { least_ns: 0, most_ns: 0 })]);
    }

    #[test]
    fn a_wait_of_another_incident_or_a_limit_of_cpu_time_leaves_no_certain_wait() {
        let increases = [QUIET.as_slice(), &[(150, 18 * MS)]].concat();
        let none = Some(Delay { least_ns: 0, most_ns: 18 * MS });
        let two = [(100 * MS, 121 * MS), (126 * MS, 146 * MS)];
        assert_eq!(delay_of(&seen(&increases, &[]), &two), none);
        let quota = (Counter::QuotaThrottledNs, "group", 200, 60 * MS);
        assert_eq!(delay_of(&seen(&increases, &[quota]), &two[..1]), none);
        // A quota whose increases of this time were left out may have stopped the thread.
        let later = (Counter::QuotaThrottledNs, "group", 400, 60 * MS);
        let mut seen_later = seen(&increases, &[later]);
        assert_ne!(delay_of(&seen_later, &two[..1]), none);
        seen_later[0].counters[1].complete_from_ns = Some(300 * MS);
        assert_eq!(delay_of(&seen_later, &two[..1]), none);
        // Without a reading at a quiet time, nothing is known about the usual.
        assert_eq!(delay_of(&seen(&[(150, 18 * MS)], &[]), &two[..1]), none);
        assert_eq!(delay_of(&seen(&[(150, 18 * MS)], &[]), &two), none);
    }

    #[test]
    fn without_the_counter_of_the_thread_nothing_is_known() {
        let mut seen = seen(&QUIET, &[]);
        seen[0].counters.clear();
        assert_eq!(delay_of(&seen, &[]), None);
    }
}
