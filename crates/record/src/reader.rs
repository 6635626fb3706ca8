//! Reads a record, including the record of a run that did not finish.

use crate::{FORMAT_MAJOR, Format, Manifest, RecordError, Status};
use std::fs;
use std::path::{Path, PathBuf};
use tailbound_model::{ClockHistory, HostFacts, Switches, ThreadTable};

/// A record of a run on disk, opened for reading.
#[derive(Debug)]
pub struct Record {
    dir: PathBuf,
    /// Content of the record's `manifest.json`.
    pub manifest: Manifest,
}

impl Record {
    /// Opens the record in the directory `dir`.
    ///
    /// # Errors
    /// The directory is not a record, is damaged, or has a later format.
    pub fn open(dir: &Path) -> Result<Record, RecordError> {
        let path = dir.join("manifest.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(RecordError::NotARecord(dir.to_owned())),
            Err(e) => return Err(RecordError::io(&path, "read the manifest")(e)),
        };
        // The version is read first, because a later release may have changed the rest.
        #[derive(serde::Deserialize)]
        struct Head {
            format: Format,
            #[serde(default)]
            readable_by: String,
        }
        let head: Head = serde_json::from_slice(&text).map_err(|e| RecordError::damaged(&path, e))?;
        if head.format.major > FORMAT_MAJOR {
            return Err(RecordError::Newer {
                path: dir.to_owned(),
                found_major: head.format.major,
                found_minor: head.format.minor,
                ours: FORMAT_MAJOR,
                readable_by: tailbound_model::plain(&head.readable_by),
            });
        }
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|e| RecordError::damaged(&path, e))?;
        let conditions = manifest.plan.conditions.len();
        if manifest.plan.trials.iter().any(|t| t.condition >= conditions) {
            return Err(RecordError::damaged(&path, "a trial names a condition that the plan does not have"));
        }
        Ok(Record { dir: dir.to_owned(), manifest })
    }

    /// Path of the directory of the record.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Status of the record: valid, invalid or incomplete.
    pub fn status(&self) -> Status {
        self.manifest.status
    }

    /// Facts of each host for which the record has a file of facts, or the error of reading the file.
    pub fn hosts(&self) -> Vec<Result<HostFacts, RecordError>> {
        self.manifest.hosts.values().map(|file| self.json(Path::new(file))).collect()
    }

    /// Thread tables of a trial, or the errors of reading them.
    pub fn threads(&self, trial: usize) -> Vec<Result<ThreadTable, RecordError>> {
        self.of_trial("threads", trial)
    }

    /// Context switches that the agents recorded in a trial, or the errors of reading them.
    pub fn switches(&self, trial: usize) -> Vec<Result<Switches, RecordError>> {
        self.of_trial("switches", trial)
    }

    /// Histories of the clocks of hosts during a trial, or the errors of reading them.
    pub fn clocks(&self, trial: usize) -> Vec<Result<ClockHistory, RecordError>> {
        self.of_trial("clocks", trial)
    }

    /// Reads all JSON files of a trial in a folder of the record.
    fn of_trial<T: serde::de::DeserializeOwned>(&self, folder: &str, trial: usize) -> Vec<Result<T, RecordError>> {
        let Ok(entries) = fs::read_dir(self.dir.join(folder)) else { return Vec::new() };
        let prefix = format!("{trial}-");
        let mut files: Vec<PathBuf> = entries
            .filter_map(|e| Some(Path::new(folder).join(e.ok()?.file_name())))
            .filter(|p| {
                p.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(&prefix) && n.ends_with(".json"))
            })
            .collect();
        files.sort();
        files.iter().map(|p| self.json(p)).collect()
    }

    fn json<T: serde::de::DeserializeOwned>(&self, file: &Path) -> Result<T, RecordError> {
        let path = self.dir.join(file);
        let text = fs::read(&path).map_err(RecordError::io(&path, "read the file"))?;
        serde_json::from_slice(&text).map_err(|e| RecordError::damaged(&path, e))
    }

    /// Paths of the closed segments (files of samples) of one end of one trial, in order.
    pub(crate) fn segments(&self, trial: usize, end: &str) -> Vec<PathBuf> {
        numbered_segments(&self.dir, trial, end).into_iter().map(|(_, path)| path).collect()
    }
}

fn numbered_segments(dir: &Path, trial: usize, end: &str) -> Vec<(usize, PathBuf)> {
    let Ok(entries) = fs::read_dir(dir.join("samples").join(trial.to_string())) else { return Vec::new() };
    let mut numbered: Vec<(usize, PathBuf)> = entries
        .filter_map(|e| {
            let path = e.ok()?.path();
            let name = path.file_name()?.to_str()?;
            let number = name.strip_prefix(end)?.strip_prefix('-')?.strip_suffix(".parquet")?.parse().ok()?;
            Some((number, path))
        })
        .collect();
    numbered.sort();
    numbered
}

/// Number of the next segment (file of samples) of an end, and number of rows in the earlier segments.
///
/// # Errors
/// A segment is damaged.
pub fn stored_rows(dir: &Path, trial: usize, end: &str) -> Result<(usize, u64), RecordError> {
    let segments = numbered_segments(dir, trial, end);
    let next = segments.last().map_or(0, |(number, _)| number + 1);
    let rows = segments.iter().map(|(_, path)| crate::columns::count_rows(path)).sum::<Result<u64, _>>()?;
    Ok((next, rows))
}
