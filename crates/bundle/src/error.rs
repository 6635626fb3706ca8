//! What can be wrong with a bundle.

use std::path::{Path, PathBuf};

/// A bundle that cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file could not be read or written.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was done with it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// What is to be made is there already.
    #[error("{} is there already: name another {what} with --out", path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
        /// A directory or a file.
        what: &'static str,
    },
    /// The file system is full.
    #[error("no room for {}: make room there, or name a place on another file system with --out", .0.display())]
    NoRoom(PathBuf),
    /// A file is another one than a moment before.
    #[error("{} changed while it was read: wait until nothing writes to it, and try again", .0.display())]
    Changed(PathBuf),
    /// A program without a loader, or no ELF file.
    #[error("{} cannot be bundled: {reason}", path.display())]
    Program {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A library is not to be found on this host.
    #[error("{} needs {library}, which this host does not have: install the package that holds it, or leave the driver out", needs.display())]
    Library {
        /// Who needs it.
        needs: PathBuf,
        /// Its name.
        library: String,
    },
    /// Two files of one name that differ.
    #[error("{} and {} have the same name and differ: a bundle holds one of them", first.display(), second.display())]
    Twice {
        /// Taken first.
        first: PathBuf,
        /// Found after.
        second: PathBuf,
    },
    /// A directory that is no bundle, or one that is not whole.
    #[error("{} is not a bundle: {reason}; `tailbound bundle` makes one", path.display())]
    NotABundle {
        /// The directory.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl BundleError {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> BundleError {
        let path = path.to_owned();
        move |source| BundleError::File { what, path, source }
    }
}
