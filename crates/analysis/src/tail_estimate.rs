//! Converts a tail estimate (for example, how late one message in a million is) into the document.

use tailbound_document::TailReport;
use tailbound_stats::{NotApplicable, TailEstimate};

pub(crate) fn of((one_in, told): &(u64, Result<TailEstimate, NotApplicable>)) -> TailReport {
    let digits = |v: f64| (v * 1e4).round() / 1e4;
    match *told {
        Ok(e) => TailReport::Estimate {
            one_in: *one_in,
            level_ns: e.level_ns as i64,
            low_ns: e.low_ns as i64,
            high_ns: e.high_ns as i64,
            threshold_ns: e.threshold_ns,
            exceedances: e.exceedances,
            clusters: e.clusters,
            extremal_index: digits(e.extremal_index),
            shape: digits(e.shape),
            scale_ns: e.scale_ns as i64,
            anderson_darling: digits(e.anderson_darling),
            critical: digits(e.critical),
            held_out_expected: digits(e.expected_in_held_out),
            held_out_found: e.found_in_held_out,
            course: e
                .course
                .iter()
                .flatten()
                .map(|l| (digits(l.one_in), l.level_ns as i64, l.low_ns as i64, l.high_ns as i64))
                .collect(),
        },
        Err(reason) => TailReport::NotApplicable { one_in: *one_in, not_applicable: reason.to_string() },
    }
}
