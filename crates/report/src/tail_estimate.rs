//! How late one message in so many is, beyond what was measured.

use crate::condition::ConditionReport;
use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use crate::number::{Unit, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailbound_stats::{NotApplicable, TailEstimate};

/// A tail estimate, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TailReport {
    /// One message in `one_in` is later than about `level_ns`. Never a bound.
    Estimate {
        /// How rare.
        one_in: u64,
        /// The return level.
        level_ns: i64,
        /// Lower end of its 95 % interval.
        low_ns: i64,
        /// Upper end.
        high_ns: i64,
        /// Messages later than this are the tail.
        threshold_ns: i64,
        /// How many they are.
        exceedances: u64,
        /// In how many clusters they come.
        clusters: u64,
        /// 1 = late messages come one by one, 0.1 = about ten at a time.
        extremal_index: f64,
        /// Shape of the generalised Pareto distribution: above 0 heavier than exponential, below 0 bounded.
        shape: f64,
        /// Its scale.
        scale_ns: i64,
        /// Anderson-Darling statistic of the clusters' latest messages.
        anderson_darling: f64,
        /// What it exceeds in one of ten cases although the distribution fits.
        critical: f64,
        /// Clusters beyond a level that the first half of the record expects in the second.
        held_out_expected: f64,
        /// Clusters that the second half has there.
        held_out_found: u64,
        /// The fitted tail from above the threshold up to the level: how rare, level, both ends of its interval.
        #[serde(default)]
        course: Vec<(f64, i64, i64, i64)>,
    },
    /// Nothing can be said.
    NotApplicable {
        /// How rare.
        one_in: u64,
        /// Why not.
        not_applicable: String,
    },
}

impl TailReport {
    pub(crate) fn of((one_in, told): &(u64, Result<TailEstimate, NotApplicable>)) -> Self {
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
}

/// The estimates, that of the longest tail in numbers; the reasons where there is none only when the study asks.
pub(crate) fn findings(report: &Report) -> Vec<Finding> {
    let mut told: Vec<(i64, &ConditionReport, String)> = Vec::new();
    let mut without: Vec<(&ConditionReport, u64, &str)> = Vec::new();
    for condition in &report.conditions {
        match condition.round_trip.as_ref().and_then(|m| m.tail.as_ref()) {
            Some(TailReport::Estimate { one_in, level_ns, low_ns, high_ns, clusters, .. }) => {
                let unit = Unit::of(*level_ns as f64);
                let text = format!(
                    "one message in {} of {} returns later than about {} (95 %: {} to {}), told from {} clusters of late \
                     ones",
                    count(*one_in),
                    condition.name,
                    unit.with(*level_ns as f64),
                    unit.number(*low_ns as f64),
                    unit.with(*high_ns as f64),
                    count(*clusters),
                );
                told.push((*level_ns, condition, text));
            }
            Some(TailReport::NotApplicable { one_in, not_applicable }) => {
                without.push((condition, *one_in, not_applicable));
            }
            None => {}
        }
    }
    told.sort_by_key(|(level, ..)| std::cmp::Reverse(*level));
    let mut all = Vec::new();
    if let Some((_, first, text)) = told.first() {
        let more = match told.len() - 1 {
            0 => String::new(),
            1 => "; sooner in one more condition".to_owned(),
            n => format!("; sooner in {n} more conditions"),
        };
        let text = format!("Tail estimate, not a bound: {text}{more}.");
        let ids: Vec<usize> = told.iter().map(|(_, c, _)| c.id).collect();
        let evidence = format!("condition-{}", first.id);
        all.push(Finding { evidence, ..finding(FindingLevel::Caution, "tail_estimate", text, &ids) });
    }
    if let Some((condition, one_in, reason)) = without.first().filter(|_| report.view.tail_asked) {
        let more = match without.len() - 1 {
            0 => String::new(),
            n => format!(" (and {n} more conditions)"),
        };
        let text = format!("No tail estimate of 1 in {} for {}: {reason}{more}.", count(*one_in), condition.name);
        let ids: Vec<usize> = without.iter().map(|(c, ..)| c.id).collect();
        all.push(finding(FindingLevel::Caution, "no_tail_estimate", text, &ids));
    }
    all
}
