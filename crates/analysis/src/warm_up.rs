//! Finds a warm-up: a beginning of trials that differs from the rest of the trials.

use std::collections::BTreeMap;
use tailbound_document::WarmUpReport;
use tailbound_stats::{BlockMedians, WarmUp};

/// Reports the longest warm-up, if at least half of the trials have a warm-up.
pub(crate) fn of(medians: &BTreeMap<usize, BlockMedians>) -> Option<WarmUpReport> {
    let found: Vec<WarmUp> = medians.values().filter_map(BlockMedians::warm_up).collect();
    let longest = found.iter().max_by_key(|w| w.slots).filter(|_| 2 * found.len() >= medians.len())?;
    Some(WarmUpReport {
        slots: longest.slots,
        of: longest.of,
        before_ns: longest.before_ns as i64,
        after_ns: longest.after_ns as i64,
        trials: found.len() as u64,
    })
}
