//! Errors of making and verifying bundles (Tailbound's program, drivers and libraries, packed for another host).

use std::path::{Path, PathBuf};

/// The reason why a bundle or a container image cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Error: a file of the bundle could not be read or written.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// The attempted action on the file, for example `cannot read`.
        what: &'static str,
        /// Path of the file that could not be read or written.
        path: PathBuf,
        /// The error that the kernel returned for the file.
        source: std::io::Error,
    },
    /// Error: the file or directory to which the bundle should be written exists already.
    #[error("{} already exists: name another {what} with --out", path.display())]
    Exists {
        /// Path of the file or directory that exists already.
        path: PathBuf,
        /// Kind of the existing file system entry: `directory` or `file`.
        what: &'static str,
    },
    /// Error: the file system to which the bundle is written is full.
    #[error("the file system is full: {} cannot be written; free some space, or name a path on another file system with --out", .0.display())]
    NoRoom(PathBuf),
    /// Error: a file changed while it was read into the bundle.
    #[error("{} changed while it was read: wait until nothing writes to it, and try again", .0.display())]
    Changed(PathBuf),
    /// Error: a file is not an ELF program, or names no dynamic loader.
    #[error("{} cannot be bundled: {reason}", path.display())]
    Program {
        /// Path of the file that cannot be put into a bundle.
        path: PathBuf,
        /// Reason why the file cannot be put into a bundle.
        reason: String,
    },
    /// Error: a library that the bundle needs is missing on this host.
    #[error("{} needs {library}, which this host does not have: install the package of this library, or remove the driver", needs.display())]
    Library {
        /// Path of the program or driver that needs the missing library.
        needs: PathBuf,
        /// Name of the shared library that is missing on this host.
        library: String,
    },
    /// Error: two different files would have the same path in the bundle.
    #[error("{} and {} have the same name but different content: a bundle can contain only one of them", first.display(), second.display())]
    Twice {
        /// Path of the file that was added to the bundle first.
        first: PathBuf,
        /// Path of the file that was found later and has the same name in the bundle.
        second: PathBuf,
    },
    /// Error: a directory is not a complete bundle.
    #[error("{} is not a bundle: {reason}; `tailbound bundle` makes one", path.display())]
    NotABundle {
        /// Path of the directory that is not a bundle.
        path: PathBuf,
        /// Reason why the directory is not a bundle.
        reason: String,
    },
}

impl BundleError {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> BundleError {
        let path = path.to_owned();
        move |source| BundleError::File { what, path, source }
    }
}
