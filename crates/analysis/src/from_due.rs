//! Latency of messages in one direction, from the time at which they were due: the definition of benchmark programs that send a
//! stream at given times.
//!
//! Input: the samples of trials whose ends have one clock. Output: the mean, and exact quantiles over all scheduled messages.

use crate::passes::changed;
use crate::series::answered;
use std::collections::BTreeMap;
use tailbound_model::{Metric, NO_TIME};
use tailbound_record::{Columns, Record, RecordError};
use tailbound_stats::{Distribution, Estimate, Quantile};

/// Time from the due time of each message until the receiving end had it, ns, by statistic (`mean`, `p50` ...). Messages of the warm-up
/// are left out. A message that did not arrive is later than every value, and is not in the mean. Without due times (stop-and-wait) or
/// arrivals, there are no statistics.
pub(crate) fn of(
    record: &Record,
    trials: &[usize],
    quantiles: &[Quantile],
) -> Result<BTreeMap<String, f64>, RecordError> {
    let mut all = Distribution::new();
    each(record, trials, &mut |value| match value {
        Some(ns) => all.value(ns),
        None => all.beyond(),
    })?;
    let mut second = all.plan(quantiles);
    if second.needs_values() {
        each(record, trials, &mut |value| value.into_iter().for_each(|ns| second.offer(ns)))?;
    }
    let estimates = second.finish().map_err(|differ| changed(record, differ))?;
    let with_value = |estimate: &Estimate| Some((estimate.q().label(), estimate.value_ns()? as f64));
    let mean = all.moments().mean().map(|mean| ("mean".to_owned(), mean));
    Ok(mean.into_iter().chain(estimates.iter().filter_map(with_value)).collect())
}

/// Calls `value` for each message that was scheduled, with its latency; `None` = it was not sent or did not arrive.
fn each(record: &Record, trials: &[usize], value: &mut dyn FnMut(Option<i64>)) -> Result<(), RecordError> {
    let columns = Columns::of(&[Metric::SendLateness, Metric::Out]);
    for trial in trials {
        record.scan(*trial, &columns, &mut |batch| {
            let time = |column: &[i64], i: usize| column.get(i).copied().filter(|ns| *ns != NO_TIME);
            for i in (0..batch.len()).filter(|i| !batch.warm_up[*i]) {
                match (time(&batch.intended_ns, i), time(&batch.echo_in_ns, i)) {
                    (Some(due_ns), Some(arrived_ns)) => value(Some(arrived_ns - due_ns)),
                    // An answered message without a row of the pong has arrived; it is not known when.
                    _ if answered(batch.outcome[i]) => {}
                    _ => value(None),
                }
            }
        })?;
    }
    Ok(())
}
