//! Finds the record of the last run of a study, and compares it with the record of the run after it.

use crate::compare::{CompareOptions, compare_records};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tailbound_document::{Comparison, SinceReport};
use tailbound_model::Metric;
use tailbound_record::{Manifest, Record, Status};

/// Number of records of a folder that are looked at, the ones that were written last. Each manifest has to be read.
const LOOKED_AT: usize = 50;

/// What changed since the last run of the study: the comparison of the last valid record of the study that began before this one
/// and lies in the same folder. `None` if there is none, or if none of its conditions can be compared.
pub fn since(record: &Record) -> Option<SinceReport> {
    let dir = record.dir().canonicalize().ok()?;
    let earlier = last_before(&record.manifest, &dir)?;
    let options = CompareOptions { metrics: vec![Metric::RoundTrip], margin: None };
    let mut comparison = compare_records(&earlier, record, &options).ok()?;
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let (a, b) = (name(earlier.dir())?, name(&dir)?);
    // The report must not depend on the place of the folder.
    (comparison.a.name, comparison.b.name) = (a.clone(), b.clone());
    (comparison.a.record, comparison.b.record) = (a.clone(), b);
    has_ratio(&comparison).then_some(SinceReport { record: a, comparison })
}

fn has_ratio(comparison: &Comparison) -> bool {
    comparison.pairs.iter().flat_map(|pair| &pair.statistics).any(|compared| compared.ratio.is_some())
}

/// The last record before this one of the same study, among the directories beside `dir`.
fn last_before(manifest: &Manifest, dir: &Path) -> Option<Record> {
    let mut beside: Vec<(SystemTime, PathBuf)> =
        fs::read_dir(dir.parent()?).ok()?.flatten().filter_map(written).collect();
    beside.retain(|(_, path)| path != dir);
    beside.sort_by(|a, b| b.cmp(a));
    let records = beside.iter().take(LOOKED_AT).filter_map(|(_, path)| Record::open(path).ok());
    let before = records.filter(|other| other.status() == Status::Valid && is_before(&other.manifest, manifest));
    before.max_by_key(|other| other.manifest.began_unix_ns)
}

/// When the manifest of a directory was written. `None` = no record is there, or one that a run is replacing.
fn written(entry: fs::DirEntry) -> Option<(SystemTime, PathBuf)> {
    let name = entry.file_name().to_string_lossy().into_owned();
    // The link `latest` names one of the other directories.
    let is_own = entry.file_type().is_ok_and(|kind| kind.is_dir());
    if !is_own || name.contains(".replaced-") || name.contains(".partial-") {
        return None;
    }
    let changed = fs::metadata(entry.path().join("manifest.json")).and_then(|file| file.modified()).ok()?;
    Some((changed, entry.path()))
}

/// Whether a record is one of an earlier run of the same study: the name and the text of the study are the same. Its settings
/// (`--set`) may differ, because they are among the changes.
fn is_before(other: &Manifest, this: &Manifest) -> bool {
    let is_same = other.plan.study == this.plan.study && other.plan.source == this.plan.source;
    let is_run = !this.plan.source.is_empty() && this.imported.is_empty();
    is_same && is_run && other.began_unix_ns < this.began_unix_ns && other.run_id != this.run_id
}
