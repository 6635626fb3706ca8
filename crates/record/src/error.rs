//! Errors of reading and writing records.

use std::path::PathBuf;

/// Error: a record cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Error: the directory for a new record exists already.
    #[error("{} exists already; give another --out, or move it away", .0.display())]
    Exists(PathBuf),
    /// Error: the directory is not a record, because it has no manifest.
    #[error("{} is not a record: it has no manifest.json", .0.display())]
    NotARecord(PathBuf),
    /// Error: a later release wrote the record, in a format that this release cannot read.
    #[error(
        "{}: record format {found_major}.{found_minor} is newer than this tailbound reads ({ours}.x); use tailbound {readable_by} or later", path.display()
    )]
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
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// Path of the damaged file of the record.
        path: PathBuf,
        /// Description of the damage to the file of the record.
        reason: String,
    },
    /// Error: a trial has no samples, or some of its samples are missing.
    #[error("{}: {reason}", path.display())]
    SamplesMissing {
        /// File of samples that should exist; if only the last samples are missing, the last file that exists.
        path: PathBuf,
        /// Description of the samples that are missing in the record.
        reason: String,
    },
    /// Error: a segment (file of samples) is in the folder of one trial, but contains rows of another trial.
    #[error("{}: holds rows of trial {found}, not of trial {trial}", path.display())]
    SamplesForeign {
        /// Path of the segment (file of samples) with the rows of another trial.
        path: PathBuf,
        /// Id of the trial to which the folder with the segment (file of samples) belongs.
        trial: usize,
        /// Id of the trial to which the rows of the segment (file of samples) belong.
        found: u32,
    },
    /// Error: a slot of a trial is missing or present twice.
    #[error("{}: slots do not follow each other: {}", path.display(), break_words(*due, *found))]
    SamplesNotConsecutive {
        /// Path of the segment (file of samples) with the unexpected sequence number.
        path: PathBuf,
        /// Sequence number that the slot should have.
        due: u64,
        /// Sequence number that was found in place of the expected number.
        found: u64,
    },
    /// Error: the file system refused an operation on a record.
    #[error("{}: cannot {what}: {source}{}", path.display(), advice(source))]
    Io {
        /// Path of the file or directory of the refused operation.
        path: PathBuf,
        /// Name of the refused operation, for example `open the segment`.
        what: &'static str,
        /// Error that the file system returned for the refused operation.
        source: std::io::Error,
    },
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "; free some space, or name a directory on another disk with --out",
        std::io::ErrorKind::PermissionDenied => "; name a directory with --out in which you may write",
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
    pub(crate) fn io(path: &std::path::Path, what: &'static str) -> impl FnOnce(std::io::Error) -> RecordError {
        let path = path.to_owned();
        move |source| RecordError::Io { path, what, source }
    }
    pub(crate) fn damaged(path: &std::path::Path, reason: impl std::fmt::Display) -> RecordError {
        // The reason may contain text from the file.
        RecordError::Damaged { path: path.to_owned(), reason: tailbound_model::plain(&reason.to_string()) }
    }
}
