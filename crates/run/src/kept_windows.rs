//! Chooses the time spans of a trial whose recorded events are kept: those of the worst incidents, and of some ordinary
//! messages, from which the report learns what is usual.

use tailbound_record::{MatchedMessage, TrialIncidents};

/// A time span begins this long before the first message was due, ns: the reason for its delay may have begun earlier.
const BEFORE_NS: i64 = 2_000_000;
/// A time span ends this long after the last answer, ns.
const AFTER_NS: i64 = 500_000;

/// The time spans whose events are kept, without overlap, the most important first: the message at which the run ends,
/// then ordinary messages, which are short and without which no ledger is right, then incidents, the worst first.
pub(crate) fn kept_windows(found: Option<&TrialIncidents>, matched: Option<&MatchedMessage>) -> Vec<(i64, i64)> {
    let mut worst: Vec<_> = found.iter().flat_map(|found| &found.found.worst).collect();
    worst.sort_by_key(|incident| std::cmp::Reverse(incident.rank()));
    if worst.is_empty() && matched.is_none() {
        return Vec::new();
    }
    let matched = matched.map(|message| {
        let (begin, end) = (message.due_ns, message.received_ns.unwrap_or(message.due_ns));
        let around = worst.iter().filter(|i| i.begin_ns <= end && begin <= i.end_ns);
        around.fold((begin, end), |span, i| (span.0.min(i.begin_ns), span.1.max(i.end_ns)))
    });
    let ordinary = found.iter().flat_map(|found| &found.ordinary).map(|o| (o.due_ns, o.received_ns));
    let spans = matched.into_iter().chain(ordinary);
    let spans = spans.chain(worst.iter().map(|i| (i.begin_ns, i.end_ns)));
    apart(spans.map(widened))
}

/// The time span whose events are kept for messages from `begin` until `end`, ns.
pub(crate) fn widened((begin, end): (i64, i64)) -> (i64, i64) {
    (begin.saturating_sub(BEFORE_NS), end.saturating_add(AFTER_NS))
}

/// The same time spans for an agent whose clock is ahead of the clock of the ping by `ahead_ns` (minimum and maximum) at a
/// time of the ping's clock. Each time span of the result contains the whole time span, whatever the difference is.
pub(crate) fn in_other_clock(windows: &[(i64, i64)], ahead_ns: impl Fn(i64) -> [i64; 2]) -> Vec<(i64, i64)> {
    let converted = |&(begin, end): &(i64, i64)| {
        let ([least, _], [_, most]) = (ahead_ns(begin), ahead_ns(end));
        (begin.saturating_add(least), end.saturating_add(most))
    };
    apart(windows.iter().map(converted))
}

/// Joins time spans that overlap. The result has the order of importance, in which the time spans are given.
pub(crate) fn apart(spans: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut spans: Vec<(usize, (i64, i64))> = spans.enumerate().collect();
    spans.sort_by_key(|(_, (begin, _))| *begin);
    let mut apart: Vec<(usize, (i64, i64))> = Vec::new();
    for (rank, (begin, end)) in spans {
        match apart.last_mut() {
            Some((best, last)) if begin <= last.1 => {
                last.1 = last.1.max(end);
                *best = rank.min(*best);
            }
            _ => apart.push((rank, (begin, end))),
        }
    }
    apart.sort_by_key(|(rank, _)| *rank);
    apart.into_iter().map(|(_, span)| span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::UntilTerm;
    use tailbound_record::Ordinary;
    use tailbound_stats::{IncidentFinder, LateRule, Misses};

    const MS: i64 = 1_000_000;

    fn found(incidents: &[(i64, i64)], ordinary: &[i64]) -> TrialIncidents {
        let rule = LateRule::new((90_000, 100_000), 100_000, None);
        let mut finder = IncidentFinder::new(rule, 10);
        for (due, latency) in incidents {
            finder.answered(0, *due, *latency);
        }
        let ordinary = ordinary.iter().map(|due| Ordinary { row: 0, due_ns: *due, received_ns: due + 100_000 });
        TrialIncidents {
            rule,
            found: finder.finish(),
            misses: Misses::new(1, 10),
            slots: 100,
            latencies: tailbound_stats::Histogram::new(),
            ordinary: ordinary.collect(),
        }
    }

    #[test]
    fn ordinary_messages_come_first_and_then_the_worst_incidents() {
        let windows = kept_windows(Some(&found(&[(100 * MS, MS), (200 * MS, 5 * MS)], &[50 * MS])), None);
        let expected = [(48 * MS, 50 * MS + 600_000), (198 * MS, 205 * MS + 500_000), (98 * MS, 101 * MS + 500_000)];
        assert_eq!(windows, expected);
    }

    #[test]
    fn time_spans_that_overlap_are_one_and_a_trial_on_time_has_none() {
        let windows = |incidents: &[(i64, i64)]| kept_windows(Some(&found(incidents, &[99 * MS])), None);
        assert_eq!(windows(&[(100 * MS, MS)]), [(97 * MS, 101 * MS + 500_000)]);
        assert_eq!(windows(&[]), []);
    }

    #[test]
    fn time_spans_of_another_clock_contain_all_that_is_possible() {
        // The most important time span comes first; two time spans touch because the difference is not known exactly.
        let windows = [(9 * MS, 10 * MS), (MS, 2 * MS), (2 * MS + 50, 3 * MS)];
        let ahead_ns = |at_ns: i64| [7_000_000_000 - 30, 7_000_000_000 + 40 + at_ns / MS];
        let at = |ns: i64| 7_000_000_000 + ns;
        let expected = [(at(9 * MS - 30), at(10 * MS + 50)), (at(MS - 30), at(3 * MS + 43))];
        assert_eq!(in_other_clock(&windows, ahead_ns), expected);
    }

    #[test]
    fn the_message_at_which_the_run_ends_comes_first_with_its_incident() {
        let matched = |due_ns, received_ns| MatchedMessage {
            trial: 0,
            row: 0,
            slot: 0,
            due_ns,
            received_ns,
            term: UntilTerm::Lost,
            value_ns: None,
            matches: 1,
        };
        let given = found(&[(100 * MS, MS), (200 * MS, 5 * MS)], &[50 * MS]);
        let first = |message: &MatchedMessage| kept_windows(Some(&given), Some(message))[0];
        assert_eq!(first(&matched(100 * MS, Some(101 * MS))), (98 * MS, 101 * MS + 500_000));
        // A lost message within the worst incident, and a message that is neither late nor lost.
        assert_eq!(first(&matched(203 * MS, None)), (198 * MS, 205 * MS + 500_000));
        assert_eq!(first(&matched(300 * MS, Some(300 * MS + 1))), (298 * MS, 300 * MS + 500_001));
        // Without any answer, there are neither incidents nor ordinary messages.
        assert_eq!(kept_windows(None, Some(&matched(300 * MS, None))), [(298 * MS, 300 * MS + 500_000)]);
    }
}
