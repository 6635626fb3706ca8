//! Verdicts for the list of records: whether p99 differs from the one of the run before, by the comparison of both records.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};
use tailbound_model::Metric;
use tailbound_record::Record;
use tailbound_report::{CompareOptions, compare_records, verdict_with_ratio};

/// The statistic that the list compares.
const STATISTIC: &str = "p99";

/// Two records of one study, and the condition that the list shows of both.
pub(crate) struct Follows<'a> {
    pub before: &'a Path,
    pub now: &'a Path,
    pub condition: &'a str,
}

/// When both manifests were changed, and the verdict about both records in words.
type Known = ([SystemTime; 2], String);

/// Verdicts that were computed already, by the directories of both records.
#[derive(Default)]
pub(crate) struct Verdicts(Mutex<HashMap<[PathBuf; 2], Known>>);

impl Verdicts {
    /// Verdicts of the pairs by the directory of the later record, which are known or are computed before `end`. Further pairs
    /// get their verdicts with the next request.
    pub fn of(&self, pairs: &[Follows<'_>], end: Instant) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        for pair in pairs {
            let (Some(before), Some(now)) = (changed(pair.before), changed(pair.now)) else { continue };
            let key = [pair.before.to_owned(), pair.now.to_owned()];
            let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let known = lock().get(&key).filter(|(of, _)| *of == [before, now]).map(|(_, words)| words.clone());
            let words = match known {
                Some(words) => words,
                None if Instant::now() > end => continue,
                None => {
                    let words = compare(pair);
                    lock().insert(key, ([before, now], words.clone()));
                    words
                }
            };
            all.insert(pair.now.to_owned(), words);
        }
        all
    }
}

fn changed(dir: &Path) -> Option<SystemTime> {
    std::fs::metadata(dir.join("manifest.json")).and_then(|file| file.modified()).ok()
}

/// The verdict of `tailbound compare` about p99 of the round trip of a condition.
fn compare(pair: &Follows<'_>) -> String {
    let options = CompareOptions { metrics: vec![Metric::RoundTrip], margin: None };
    let (Ok(before), Ok(now)) = (Record::open(pair.before), Record::open(pair.now)) else { return String::new() };
    let comparison = compare_records(&before, &now, &options).ok();
    let of_condition = comparison.and_then(|c| c.pairs.into_iter().find(|p| p.name == pair.condition));
    let statistic = of_condition.and_then(|p| p.statistics.into_iter().find(|c| c.statistic == STATISTIC));
    statistic.map_or("not comparable".into(), |c| verdict_with_ratio(&c))
}
