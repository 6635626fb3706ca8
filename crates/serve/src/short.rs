//! The result of a record for the list of records: a few figures of its worst condition.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};
use tailbound_report::number::{Unit, count};
use tailbound_report::{ConditionReport, MetricReport, QuantileReport, Report, worst_condition};

/// Result of the worst condition of a record.
#[derive(Debug, Clone)]
pub(crate) struct Short {
    pub condition: String,
    pub p50_ns: Option<i64>,
    /// p99, and the ends of its interval, ns.
    pub p99_ns: Option<(i64, i64, Option<i64>)>,
    /// Number of messages of all conditions that were not answered, and number of all scheduled messages.
    pub lost: (u64, u64),
    /// Buckets of the histogram: lower and upper bound in ns, and number of messages.
    pub histogram: Vec<(i64, i64, u64)>,
}

impl Short {
    /// Takes the figures from a report. A record without round trips has none.
    pub fn of(report: &Report) -> Option<Short> {
        let condition = worst_condition(report)?;
        let figures = condition.round_trip.as_ref().filter(|m| m.n > 0);
        let all = || report.conditions.iter().map(|c: &ConditionReport| &c.counts);
        Some(Short {
            condition: condition.name.clone(),
            p50_ns: figures.and_then(|m| m.quantile(0.5)?.value_ns()),
            p99_ns: figures.and_then(p99),
            lost: (all().map(|c| c.lost + c.not_sent).sum(), all().map(|c| c.scheduled).sum()),
            histogram: figures.map_or(Vec::new(), |m| m.histogram.clone()),
        })
    }

    /// Words for the messages without an answer.
    pub fn lost_words(&self) -> String {
        match self.lost {
            (0, _) => "none".into(),
            (lost, all) => format!("{} of {}", count(lost), count(all)),
        }
    }
}

fn p99(figures: &MetricReport) -> Option<(i64, i64, Option<i64>)> {
    match figures.quantile(0.99)? {
        QuantileReport::Value { value_ns, low_ns, high_ns, .. } => Some((*value_ns, *low_ns, *high_ns)),
        _ => None,
    }
}

/// A time as text, with a unit of its own.
pub(crate) fn time(ns: i64) -> String {
    Unit::of(ns as f64).with(ns as f64)
}

/// Results that were computed already, by record and time of the last change of its manifest.
#[derive(Default)]
pub(crate) struct Shorts(Mutex<HashMap<PathBuf, (SystemTime, Option<Short>)>>);

impl Shorts {
    /// Results of records that are known, or that `compute` makes before `end`. A record whose result
    /// has not been computed yet is missing from the map.
    pub fn of(
        &self,
        dirs: &[&Path],
        end: Instant,
        compute: impl Fn(&Path) -> Option<Short>,
    ) -> BTreeMap<PathBuf, Option<Short>> {
        let mut all = BTreeMap::new();
        for dir in dirs {
            let Ok(changed) = std::fs::metadata(dir.join("manifest.json")).and_then(|m| m.modified()) else { continue };
            let known = self.lock().get(*dir).filter(|(of, _)| *of == changed).map(|(_, short)| short.clone());
            let short = match known {
                Some(short) => short,
                None if Instant::now() > end => continue,
                None => {
                    let short = compute(dir);
                    self.lock().insert((*dir).to_owned(), (changed, short.clone()));
                    short
                }
            };
            all.insert((*dir).to_owned(), short);
        }
        all
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (SystemTime, Option<Short>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
