//! A few figures of a record for a list of records. The samples are read for one metric only, and no causes are looked for, so that
//! a list of many records does not take long.

use crate::analyse::{choose, clocks};
use crate::clocks::Legs;
use crate::pass_error::PassError;
use crate::passes;
use crate::sample_faults;
use crate::series::{Series, Side};
use tailbound_model::{Flow, Metric, Outcome};
use tailbound_record::{Columns, Record, RecordError};
use tailbound_stats::{Distribution, Estimate, Quantile};

/// Figures of a record for a list of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Brief {
    /// Longest p99 of the round trips of all conditions, ns; `None` if no condition has one.
    pub worst_p99_ns: Option<i64>,
    /// Number of lost messages of all conditions.
    pub lost: u64,
}

/// Computes the figures of a record for a list of records. They have the definitions of the report.
///
/// # Errors
/// The record changes while it is being read.
pub fn brief(record: &Record) -> Result<Brief, RecordError> {
    let mut faults = sample_faults::faults(record);
    loop {
        let read = clocks(record, &faults).and_then(|clocks| {
            let conditions = record.manifest.plan.conditions.iter().enumerate();
            let answered = conditions.filter(|(_, c)| c.spec.measure.flow().is_none_or(Flow::has_answers));
            let chosen = answered.map(|(id, condition)| choose(record, &faults, &clocks, id, condition).used);
            chosen.map(|trials| of_condition(record, &trials)).collect::<Result<Vec<Brief>, PassError>>()
        });
        match read {
            Ok(all) => {
                let worst_p99_ns = all.iter().filter_map(|one| one.worst_p99_ns).max();
                return Ok(Brief { worst_p99_ns, lost: all.iter().map(|one| one.lost).sum() });
            }
            Err(PassError { trial: Some(trial), error }) if !faults.contains_key(&trial) => {
                faults.insert(trial, error);
            }
            Err(e) => return Err(e.error),
        }
    }
}

fn of_condition(record: &Record, trials: &[usize]) -> Result<Brief, PassError> {
    let columns = Columns::of(&[Metric::RoundTrip]);
    let mut series = Series::default();
    let mut distribution = Distribution::default();
    let mut lost = 0;
    for &trial in trials {
        let read = record.scan(trial, &columns, &mut |batch| {
            series.classify(batch);
            let is_lost = |(outcome, warm_up): &(&u8, &bool)| **outcome == Outcome::Lost as u8 && !**warm_up;
            lost += batch.outcome.iter().zip(&batch.warm_up).filter(is_lost).count() as u64;
            series.load(batch, (Metric::RoundTrip, Side::Low), Legs::Exact);
            for run in series.values().split(|v| *v == Series::BEYOND) {
                distribution.values(run);
            }
            (0..series.beyond).for_each(|_| distribution.beyond());
        });
        read.map_err(|error| PassError { trial: Some(trial), error })?;
    }
    let mut plan = distribution.plan(&[Quantile::P99]);
    let again = if plan.needs_values() { trials } else { &[] };
    for &trial in again {
        let read = record.scan(trial, &columns, &mut |batch| {
            series.classify(batch);
            series.load(batch, (Metric::RoundTrip, Side::Low), Legs::Exact);
            series.values().iter().for_each(|v| plan.offer(*v));
        });
        read.map_err(|error| PassError { trial: Some(trial), error })?;
    }
    let estimates = plan.finish().map_err(|e| PassError { trial: None, error: passes::changed(record, e) })?;
    let p99 = estimates.iter().find_map(|estimate| match estimate {
        Estimate::Value { value_ns, .. } => Some(*value_ns),
        _ => None,
    });
    Ok(Brief { worst_p99_ns: p99, lost })
}
