//! Errors that occur while the archive of a container image is written.

use crate::error::BundleError;
use std::io;
use std::path::Path;

/// An error that happens while an archive is written. The path of the archive is added later.
#[derive(Debug)]
pub(crate) enum ArchiveError {
    Source(BundleError),
    Archive(io::Error),
}

impl From<io::Error> for ArchiveError {
    fn from(e: io::Error) -> ArchiveError {
        ArchiveError::Archive(e)
    }
}

impl ArchiveError {
    pub(crate) fn at(self, file: &Path) -> BundleError {
        match self {
            ArchiveError::Source(e) => e,
            ArchiveError::Archive(e) if e.kind() == io::ErrorKind::StorageFull => BundleError::NoRoom(file.to_owned()),
            ArchiveError::Archive(e) => BundleError::file("cannot write", file)(e),
        }
    }
}
