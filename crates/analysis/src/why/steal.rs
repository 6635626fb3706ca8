//! Bounds of the time that the hypervisor took from a CPU, from the counter of steal time that the agents read.

use crate::why::share::{Circumstances, Share};
use tailbound_document::{CauseWord, Evidence};

/// Unit of the counter, ns: the kernel shows whole units of USER_HZ, which is 100 per second.
const UNIT_NS: i64 = 10_000_000;
/// The kernel adds stolen time to the counter at the next tick of the CPU, at most this time later, ns.
const COUNTED_AFTER_NS: i64 = 10_000_000;

/// Bounds of the time that the hypervisor took from a CPU within a time span, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stolen {
    pub least_ns: i64,
    pub most_ns: i64,
}

/// Bounds of the time that the hypervisor took from the CPU of an end between two times; `None` if its counter did not
/// increase.
pub(crate) fn stolen((end, cpu): (&str, u32), (from_ns, to_ns): (i64, i64), known: &Circumstances) -> Option<Stolen> {
    let (mut least_ns, mut most_ns) = (0, 0);
    for counted in known.steal_moves(end, cpu) {
        let begin_ns = counted.from_ns.saturating_sub(COUNTED_AFTER_NS);
        let within_ns = to_ns.min(counted.to_ns) - from_ns.max(begin_ns);
        if within_ns <= 0 {
            continue;
        }
        let by_ns = counted.by as i64;
        // All time that the reading covers outside of the time span may have been stolen.
        let outside_ns = counted.to_ns - begin_ns - within_ns;
        least_ns += (by_ns - UNIT_NS - outside_ns).clamp(0, within_ns);
        most_ns += within_ns.min(by_ns + UNIT_NS);
    }
    let most_ns = most_ns.min(to_ns - from_ns);
    (most_ns > 0).then_some(Stolen { least_ns: least_ns.min(most_ns), most_ns })
}

/// Divides a share of a CPU's time between its own cause and the hypervisor, if that took the CPU meanwhile.
pub(crate) fn divided(share: Share, known: &Circumstances) -> Vec<Share> {
    let span = (share.from_ns, share.to_ns);
    let Some(found) = share.key.cpu.and_then(|cpu| stolen((share.key.end, cpu), span, known)) else {
        return vec![share];
    };
    let mut key = share.key.clone();
    (key.cause, key.thread, key.by) = (CauseWord::Steal, None, None);
    let bounded = |low_ns, counted| if low_ns > 0 { counted } else { Evidence::AtMost };
    let low_ns = (share.low_ns - found.most_ns).max(0);
    let evidence = bounded(low_ns, share.evidence.max(Evidence::Counted));
    let rest = Share { low_ns, high_ns: share.high_ns - found.least_ns, evidence, ..share };
    let evidence = bounded(found.least_ns, Evidence::Counted);
    vec![rest, Share { key, low_ns: found.least_ns, high_ns: found.most_ns, evidence, ..share }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::threads::Threads;
    use tailbound_model::{Counter, CounterMove, CounterSeries, Switches};

    const MS: i64 = 1_000_000;

    /// Lower and upper bound of the steal time of CPU 1 in a time span, ms. Each of `increases` has the times of two readings
    /// of its counter, and the difference of the readings, ms.
    fn within(from_ms: i64, to_ms: i64, increases: &[(i64, i64, u64)]) -> Option<(i64, i64)> {
        let one =
            |&(from, to, by): &(i64, i64, u64)| CounterMove { from_ns: from * MS, to_ns: to * MS, by: by * MS as u64 };
        let series = CounterSeries {
            counter: Counter::StealNs,
            of: "cpu 1".into(),
            moves: increases.iter().map(one).collect(),
            longest_step_ns: 50 * MS,
            complete_from_ns: None,
        };
        let seen = [Switches { ends: vec!["pong".into()], counters: vec![series], ..Switches::default() }];
        let threads = Threads::default();
        let known = Circumstances { threads: &threads, seen: &seen, incidents: &[], guests: &[] };
        let span = (from_ms * MS, to_ms * MS);
        assert_eq!(stolen(("pong", 0), span, &known), None, "the counter of another CPU");
        assert_eq!(stolen(("ping", 1), span, &known), None, "the counter of another host");
        stolen(("pong", 1), span, &known).map(|found| (found.least_ns / MS, found.most_ns / MS))
    }

    #[test]
    fn a_short_time_span_may_have_been_stolen_as_a_whole_or_not_at_all() {
        assert_eq!(within(120, 123, &[(100, 150, 20)]), Some((0, 3)));
        // At most what was counted and one unit more.
        assert_eq!(within(100, 150, &[(100, 150, 20)]), Some((0, 30)));
        assert_eq!(within(160, 190, &[(100, 150, 20)]), None);
        // Time that was stolen just before a reading can be counted after it.
        assert_eq!(within(80, 95, &[(100, 150, 20)]), Some((0, 5)));
    }

    #[test]
    fn a_long_increase_was_stolen_at_least_in_part() {
        // 150 ms of 160 ms (130 to 290 ms), and at most one unit less than counted, of which 30 ms lie outside.
        assert_eq!(within(150, 280, &[(140, 290, 150)]), Some((110, 130)));
        // Two readings in a row.
        assert_eq!(within(90, 210, &[(100, 150, 50), (150, 200, 50)]), Some((80, 120)));
    }
}
