//! What can be wrong with a record.

use std::path::PathBuf;

/// A record cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The directory is there already.
    #[error("{} exists already; give another --out, or move it away", .0.display())]
    Exists(PathBuf),
    /// There is no record there.
    #[error("{} is not a record: it has no manifest.json", .0.display())]
    NotARecord(PathBuf),
    /// Written by a later release.
    #[error(
        "{}: record format {found_major}.{found_minor} is newer than this tailbound reads ({ours}.x); use tailbound {readable_by} or later", path.display()
    )]
    Newer {
        /// The record.
        path: PathBuf,
        /// Its format.
        found_major: u32,
        /// Its format.
        found_minor: u32,
        /// Highest major version that this release reads.
        ours: u32,
        /// Release that reads it, as the record itself says.
        readable_by: String,
    },
    /// A file of the record is damaged.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// How.
        reason: String,
    },
    /// A trial has no samples, or not all of them.
    #[error("{}: {reason}", path.display())]
    SamplesMissing {
        /// The file that ought to be there, or the last that is.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A segment lies in the folder of a trial and is another's.
    #[error("{}: holds rows of trial {found}, not of trial {trial}", path.display())]
    SamplesForeign {
        /// The segment.
        path: PathBuf,
        /// Whose folder it is.
        trial: usize,
        /// Whose rows they are.
        found: u32,
    },
    /// A slot is missing or there twice.
    #[error("{}: slots do not follow each other: {}", path.display(), break_words(*due, *found))]
    SamplesNotConsecutive {
        /// The segment.
        path: PathBuf,
        /// Sequence number that is due.
        due: u64,
        /// The one that is there.
        found: u64,
    },
    /// The file system refused.
    #[error("{}: cannot {what}: {source}{}", path.display(), advice(source))]
    Io {
        /// Which.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Its error.
        source: std::io::Error,
    },
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => "; free some space, or give an --out on another disk",
        std::io::ErrorKind::PermissionDenied => "; give an --out where you may write",
        _ => "",
    }
}

fn break_words(due: u64, found: u64) -> String {
    match found.checked_sub(due) {
        Some(1) => format!("slot {due} is missing"),
        Some(_) => format!("slot {found} where slot {due} is due"),
        None => format!("slot {found} is there once more where slot {due} is due"),
    }
}

impl RecordError {
    pub(crate) fn io(path: &std::path::Path, what: &'static str) -> impl FnOnce(std::io::Error) -> RecordError {
        let path = path.to_owned();
        move |source| RecordError::Io { path, what, source }
    }
    pub(crate) fn damaged(path: &std::path::Path, reason: impl std::fmt::Display) -> RecordError {
        // The reason may cite the file.
        RecordError::Damaged { path: path.to_owned(), reason: tailbound_model::plain(&reason.to_string()) }
    }
}
