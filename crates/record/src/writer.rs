//! Writes a record: the manifest first, then the data of each trial.

use crate::*;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tailbound_model::{ClockHistory, HostFacts, Severity, Switches, ThreadTable, Warning};

/// A record on disk to which a run writes.
#[derive(Debug)]
pub struct RecordWriter {
    dir: PathBuf,
    events: File,
    /// Content of the record's manifest, in memory; [`RecordWriter::save`] writes it to disk.
    pub manifest: Manifest,
}

impl RecordWriter {
    /// Temporary path of a record's directory. The directory has this path as long as it does not contain a manifest.
    pub fn partial_name(dir: &Path) -> PathBuf {
        let mut name = dir.file_name().unwrap_or_default().to_owned();
        name.push(format!(".partial-{}", std::process::id()));
        dir.with_file_name(name)
    }

    /// Creates the directory `dir` of a record with its manifest. A directory without a manifest never exists under
    /// this name.
    ///
    /// # Errors
    /// The directory exists already, or cannot be created.
    pub fn create(dir: &Path, manifest: Manifest) -> Result<RecordWriter, RecordError> {
        if dir.symlink_metadata().is_ok() {
            return Err(RecordError::Exists(dir.to_owned()));
        }
        let partial = Self::partial_name(dir);
        let made = (|| {
            fs::create_dir_all(&partial).map_err(RecordError::io(&partial, "make the directory"))?;
            for folder in ["samples", "facts", "threads", "logs"] {
                let path = partial.join(folder);
                fs::create_dir_all(&path).map_err(RecordError::io(&path, "make the directory"))?;
            }
            write_json(&partial.join("manifest.json"), &manifest)?;
            let path = partial.join("events.jsonl");
            let events = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .map_err(RecordError::io(&path, "open the events"))?;
            fs::rename(&partial, dir).map_err(|e| match e.kind() {
                // Another run has created a directory with this name in the meantime.
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => RecordError::Exists(dir.to_owned()),
                _ => RecordError::io(dir, "make the record")(e),
            })?;
            Ok(events)
        })();
        match made {
            Ok(events) => Ok(RecordWriter { dir: dir.to_owned(), events, manifest }),
            Err(e) => {
                // The directory has our process id in its name, and contains no record.
                let _ = fs::remove_dir_all(&partial);
                Err(e)
            }
        }
    }

    /// Path of the directory of the record.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Path of a segment (file of samples) of one end of a trial.
    pub fn segment_path(dir: &Path, trial: usize, end: &str, number: usize) -> PathBuf {
        dir.join("samples").join(trial.to_string()).join(format!("{end}-{number}.parquet"))
    }

    /// Path of the file with the stages that the messages of one end of a trial passed.
    pub fn stages_path(dir: &Path, trial: usize, end: &str) -> PathBuf {
        dir.join("samples").join(trial.to_string()).join(format!("stages-{end}.parquet"))
    }

    /// Removes a trial that has ended: its samples, thread tables, events and logs, and its part of the manifest and the
    /// plan, with its warnings. Of the warnings that make the trial invalid, the first of each code remains, so that the record
    /// is still invalid for this reason. The manifest is written first, so that a record that is cut off has no trial
    /// without samples.
    ///
    /// # Errors
    /// The manifest cannot be written, or a file cannot be removed.
    pub fn remove_trial(&mut self, trial: usize) -> Result<(), RecordError> {
        self.manifest.trials.retain(|t| t.id != trial);
        self.manifest.plan.trials.retain(|t| t.id != trial);
        let of_trial = |warning: &mut Warning| warning.trial == Some(trial);
        let removed: Vec<Warning> = self.manifest.warnings.extract_if(.., of_trial).collect();
        for mut warning in removed.into_iter().filter(|warning| warning.severity == Severity::Invalid) {
            let is_known = |known: &Warning| known.problem.code == warning.problem.code && known.trial.is_none();
            if !self.manifest.warnings.iter().any(is_known) {
                warning.trial = None;
                warning.problem.what =
                    format!("in trial {trial}, which was removed (`--rolling`): {}", warning.problem.what);
                self.manifest.warnings.push(warning);
            }
        }
        self.save()?;
        let samples = self.dir.join("samples").join(trial.to_string());
        match fs::remove_dir_all(&samples) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(RecordError::io(&samples, "remove the samples")(e))?,
            _ => {}
        }
        let begin = format!("{trial}-");
        for folder in ["threads", "switches", "clocks", "logs"].map(|name| self.dir.join(name)) {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for path in entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(&begin)) {
                let path = path.path();
                fs::remove_file(&path).map_err(RecordError::io(&path, "remove the file"))?;
            }
        }
        Ok(())
    }

    /// Appends an event of the run to the record's `events.jsonl`.
    pub fn event(&mut self, event: Event) -> Result<(), RecordError> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let line = EventLine { at_unix_ns: now.as_nanos() as i64, event };
        let mut text = serde_json::to_string(&line).map_err(|e| RecordError::damaged(&self.dir, e))?;
        text.push('\n');
        self.events.write_all(text.as_bytes()).map_err(RecordError::io(&self.dir, "write an event"))
    }

    /// Adds a warning to the manifest in memory and to `events.jsonl`.
    pub fn warn(&mut self, warning: Warning) -> Result<(), RecordError> {
        self.manifest.warnings.push(warning.clone());
        self.event(Event::Warned(warning))
    }

    /// Stores the facts of a host in the record.
    pub fn host(&mut self, facts: &HostFacts) -> Result<(), RecordError> {
        let file = format!("facts/{}.json", file_name(&facts.host));
        write_json(&self.dir.join(&file), facts)?;
        self.manifest.hosts.insert(facts.host.clone(), file);
        Ok(())
    }

    /// Stores a thread table of a trial in the record.
    pub fn threads(&mut self, trial: usize, name: &str, table: &ThreadTable) -> Result<(), RecordError> {
        write_json(&self.dir.join("threads").join(format!("{trial}-{name}.json")), table)
    }

    /// Stores the context switches that an agent recorded in a trial.
    pub fn switches(&mut self, trial: usize, name: &str, seen: &Switches) -> Result<(), RecordError> {
        self.compact("switches", &format!("{trial}-{name}.json"), seen)
    }

    /// Stores the history of the clocks of a host during a trial.
    pub fn clocks(&mut self, trial: usize, history: &ClockHistory) -> Result<(), RecordError> {
        let host = file_name(&history.host);
        self.compact("clocks", &format!("{trial}-{host}.json"), history)
    }

    /// Writes a compact file into a folder that most records do not have.
    fn compact(&self, folder: &str, file: &str, value: &impl serde::Serialize) -> Result<(), RecordError> {
        let folder = self.dir.join(folder);
        fs::create_dir_all(&folder).map_err(RecordError::io(&folder, "make the directory"))?;
        let path = folder.join(file);
        let text = serde_json::to_vec(value).map_err(|e| RecordError::damaged(&path, e))?;
        write_file(&path, &text)
    }

    /// Stores the log messages of the middleware at one end of a trial.
    pub fn log(&mut self, trial: usize, end: &str, text: &str) -> Result<(), RecordError> {
        let path = self.dir.join("logs").join(format!("{trial}-{end}.log"));
        fs::write(&path, text).map_err(RecordError::io(&path, "write the log"))
    }

    /// Writes the record's manifest to disk again, in one atomic step.
    pub fn save(&self) -> Result<(), RecordError> {
        write_json(&self.dir.join("manifest.json"), &self.manifest)
    }
}

/// Name of a host as a part of the name of a file.
fn file_name(host: &str) -> String {
    host.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), RecordError> {
    let text = serde_json::to_vec_pretty(value).map_err(|e| RecordError::damaged(path, e))?;
    write_file(path, &text)
}

/// Writes a file under a temporary name, closes it and renames it.
fn write_file(path: &Path, text: &[u8]) -> Result<(), RecordError> {
    let temporary = path.with_extension("json.partial");
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    written.map_err(|e| {
        let _ = fs::remove_file(&temporary);
        RecordError::io(path, "write the file")(e)
    })
}
