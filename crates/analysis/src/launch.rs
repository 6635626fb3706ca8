//! Compares the launch times of messages with their arrivals.
//!
//! Input: for each trial, the samples and the refused launch times. Output: when the messages of a condition arrived, measured from
//! their launch times.

use crate::clocks::has_one_clock;
use tailbound_document::LaunchReport;
use tailbound_model::{Condition, LaunchMode, LaunchRefusal, LaunchSpec, Metric, NO_TIME};
use tailbound_record::{Columns, Record, RecordError};

/// The launch times in these trials of a condition; `None` if its messages have none. Arrivals in trials whose ends have different
/// clocks are left out.
pub(crate) fn of(
    record: &Record,
    condition: &Condition,
    trials: &[usize],
) -> Result<Option<LaunchReport>, RecordError> {
    let Some(launch) = condition.spec.stream.and_then(|stream| stream.launch) else { return Ok(None) };
    // Times from the launch time to the arrival, ns.
    let mut after_ns: Vec<i64> = Vec::new();
    for trial in trials.iter().filter(|trial| has_one_clock(record, **trial)) {
        let columns = Columns::of(&[Metric::SendLateness, Metric::Out, Metric::Back]).with_echo_begin();
        record.scan(*trial, &columns, &mut |batch| {
            let arrived = batch.ways(true).filter(|(i, ..)| !batch.warm_up[*i] && batch.intended_ns[*i] != NO_TIME);
            after_ns.extend(arrived.map(|(i, _, arrived_ns)| arrived_ns - batch.intended_ns[i] - launch.lead.0));
        })?;
    }
    let done = record.manifest.trials.iter().filter(|done| trials.contains(&done.id));
    let streams: Vec<_> = done.filter_map(|done| done.stream.as_ref()).collect();
    let refused: Vec<LaunchRefusal> =
        streams.iter().flat_map(|stream| &stream.refused).map(|refused| refused.why).collect();
    let refused_incomplete = streams.iter().any(|stream| stream.reports_full || stream.refused_more > 0);
    Ok(Some(LaunchReport { refused_incomplete, ..report(launch, after_ns, &refused) }))
}

fn report(launch: LaunchSpec, mut after_ns: Vec<i64>, refused: &[LaunchRefusal]) -> LaunchReport {
    after_ns.sort_unstable();
    let at = |share: f64| {
        let rank = (after_ns.len() as f64 * share).ceil() as usize;
        after_ns.get(rank.max(1) - 1).copied()
    };
    let refused = |why| refused.iter().filter(|one| **one == why).count() as u64;
    LaunchReport {
        lead_ns: launch.lead.0,
        ahead_ns: launch.ahead.0,
        deadline: launch.mode == LaunchMode::Deadline,
        messages: after_ns.len() as u64,
        early: after_ns.partition_point(|ns| *ns < 0) as u64,
        early_max_ns: after_ns.first().map_or(0, |ns| (-ns).max(0)),
        after_p50_ns: at(0.5),
        after_p99_ns: at(0.99),
        after_max_ns: after_ns.last().copied(),
        refused_invalid: refused(LaunchRefusal::Invalid),
        refused_missed: refused(LaunchRefusal::Missed),
        refused_incomplete: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::Nanos;

    #[test]
    fn arrivals_are_measured_from_the_launch_times() {
        let launch = LaunchSpec { lead: Nanos(1_000), ahead: Nanos(300), priority: 3, ..LaunchSpec::default() };
        let found = report(launch, vec![40, -200, 0, -10, 900], &[LaunchRefusal::Missed, LaunchRefusal::Invalid]);
        assert_eq!((found.messages, found.early, found.early_max_ns), (5, 2, 200));
        assert_eq!((found.after_p50_ns, found.after_p99_ns, found.after_max_ns), (Some(0), Some(900), Some(900)));
        assert_eq!((found.refused_invalid, found.refused_missed, found.deadline), (1, 1, false));
        let none = report(launch, Vec::new(), &[]);
        assert_eq!((none.early_max_ns, none.after_p50_ns, none.after_max_ns), (0, None, None));
        assert_eq!(report(launch, vec![7], &[]).early_max_ns, 0);
    }
}
