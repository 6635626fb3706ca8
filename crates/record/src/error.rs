//! Errors of reading and writing records.

use std::fmt;
use std::path::PathBuf;
use tailbound_model::Problem;

/// Error: a record cannot be written or read. `Display` writes [`RecordError::problem`] on one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Error: the directory for a new record exists already.
    Exists(PathBuf),
    /// Error: the directory is not a record, because it has no manifest.
    NotARecord(PathBuf),
    /// Error: a later release wrote the record, in a format that this release cannot read.
    Newer {
        /// Directory of the record that cannot be read.
        path: PathBuf,
        /// Major version of the format in which the record was written.
        found_major: u32,
        /// Minor version of the format in which the record was written.
        found_minor: u32,
        /// Highest major version of the record format that this release of Tailbound can read.
        ours: u32,
        /// Earliest release of Tailbound that reads the record, as the record says.
        readable_by: String,
    },
    /// Error: a file of the record is damaged.
    Damaged {
        /// Path of the damaged file of the record.
        path: PathBuf,
        /// Description of the damage to the file of the record.
        reason: String,
    },
    /// Error: a trial has no samples, or some of its samples are missing.
    SamplesMissing {
        /// File of samples that should exist; if only the last samples are missing, the last file that exists.
        path: PathBuf,
        /// Description of the samples that are missing in the record.
        reason: String,
    },
    /// Error: a segment (file of samples) is in the folder of one trial, but contains rows of another trial.
    SamplesForeign {
        /// Path of the segment (file of samples) with the rows of another trial.
        path: PathBuf,
        /// Id of the trial to which the folder with the segment (file of samples) belongs.
        trial: usize,
        /// Id of the trial to which the rows of the segment (file of samples) belong.
        found: u32,
    },
    /// Error: a slot of a trial is missing or present twice.
    SamplesNotConsecutive {
        /// Path of the segment (file of samples) with the unexpected sequence number.
        path: PathBuf,
        /// Sequence number that the slot should have.
        due: u64,
        /// Sequence number that was found in place of the expected number.
        found: u64,
    },
    /// Error: the file system refused an operation on a record.
    Io {
        /// Path of the file or directory of the refused operation.
        path: PathBuf,
        /// Name of the refused operation, for example `open the segment`.
        what: &'static str,
        /// Error that the file system returned for the refused operation.
        source: std::io::Error,
    },
}

tailbound_model::display_as_problem!(RecordError);

/// Remedy for an error of the file system; empty if no remedy is known.
fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "free some space, or name a directory on another disk with --out",
        std::io::ErrorKind::PermissionDenied => "name a directory with --out in which you may write",
        _ => "",
    }
}

fn break_words(due: u64, found: u64) -> String {
    match found.checked_sub(due) {
        Some(1) => format!("slot {due} is missing"),
        Some(_) => format!("slot {found} was found where slot {due} was expected"),
        None => format!("slot {found} is present twice: slot {due} was expected"),
    }
}

impl RecordError {
    /// Returns what is wrong with the record, and what the user can do.
    pub fn problem(&self) -> Problem {
        let at = |code, path: &std::path::Path, what: &dyn fmt::Display| {
            Problem::new(code, format!("{}: {what}", path.display()), "")
        };
        match self {
            RecordError::Exists(path) => {
                let what = format!("{} exists already", path.display());
                Problem::new("record_exists", what, "name another directory with --out, or move the existing one away")
            }
            RecordError::NotARecord(path) => {
                let what = format!("{} is not a record: it has no manifest.json", path.display());
                Problem::new("not_a_record", what, "")
            }
            RecordError::Newer { path, found_major, found_minor, ours, readable_by } => {
                let what =
                    format!("record format {found_major}.{found_minor} is newer than this tailbound reads ({ours}.x)");
                at("record_newer", path, &what).with_remedy(format!("use tailbound {readable_by} or later"))
            }
            RecordError::Damaged { path, reason } => at("record_damaged", path, reason),
            RecordError::SamplesMissing { path, reason } => at("samples_missing", path, reason),
            RecordError::SamplesForeign { path, trial, found } => {
                let what = format!("the file holds rows of trial {found}, not of trial {trial}");
                at("samples_foreign", path, &what)
            }
            RecordError::SamplesNotConsecutive { path, due, found } => {
                let what = format!("slots do not follow each other: {}", break_words(*due, *found));
                at("samples_not_consecutive", path, &what)
            }
            RecordError::Io { path, what, source } => {
                at("record_io", path, &format_args!("cannot {what}: {source}")).with_remedy(advice(source))
            }
        }
    }

    pub(crate) fn io(path: &std::path::Path, what: &'static str) -> impl FnOnce(std::io::Error) -> RecordError {
        let path = path.to_owned();
        move |source| RecordError::Io { path, what, source }
    }
    pub(crate) fn damaged(path: &std::path::Path, reason: impl std::fmt::Display) -> RecordError {
        // The reason may contain text from the file.
        RecordError::Damaged { path: path.to_owned(), reason: tailbound_model::plain(&reason.to_string()) }
    }
}
