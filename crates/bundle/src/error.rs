//! Errors of making and verifying bundles (Tailbound's program, drivers and libraries, packed for another host).

use std::path::{Path, PathBuf};
use tailbound_model::Problem;

/// The reason why a bundle or a container image cannot be made or used. `Display` writes [`BundleError::problem`] on
/// one line.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Error: a file of the bundle could not be read or written.
    File {
        /// The attempted action on the file, for example `cannot read`.
        what: &'static str,
        /// Path of the file that could not be read or written.
        path: PathBuf,
        /// The error that the kernel returned for the file.
        source: std::io::Error,
    },
    /// Error: the file or directory to which the bundle should be written exists already.
    Exists {
        /// Path of the file or directory that exists already.
        path: PathBuf,
        /// Kind of the existing file system entry: `directory` or `file`.
        what: &'static str,
    },
    /// Error: the file system to which the bundle is written is full.
    NoRoom(PathBuf),
    /// Error: a file changed while it was read into the bundle.
    Changed(PathBuf),
    /// Error: a file is not an ELF program, or names no dynamic loader.
    Program {
        /// Path of the file that cannot be put into a bundle.
        path: PathBuf,
        /// Reason why the file cannot be put into a bundle.
        reason: String,
    },
    /// Error: a library that the bundle needs is missing on this host.
    Library {
        /// Path of the program or driver that needs the missing library.
        needs: PathBuf,
        /// Name of the shared library that is missing on this host.
        library: String,
    },
    /// Error: two different files would have the same path in the bundle.
    Twice {
        /// Path of the file that was added to the bundle first.
        first: PathBuf,
        /// Path of the file that was found later and has the same name in the bundle.
        second: PathBuf,
    },
    /// Error: a directory is not a complete bundle.
    NotABundle {
        /// Path of the directory that is not a bundle.
        path: PathBuf,
        /// Reason why the directory is not a bundle.
        reason: String,
    },
}

impl BundleError {
    /// Returns what is wrong with the bundle or the image, and what the user can do.
    pub fn problem(&self) -> Problem {
        match self {
            BundleError::File { what, path, source } => {
                Problem::new("bundle_file", format!("{what} {}: {source}", path.display()), "")
            }
            BundleError::Exists { path, what } => {
                let remedy = format!("name another {what} with --out");
                Problem::new("bundle_exists", format!("{} already exists", path.display()), remedy)
            }
            BundleError::NoRoom(path) => {
                let what = format!("the file system is full: {} cannot be written", path.display());
                Problem::new("no_room", what, "free some space, or name a path on another file system with --out")
            }
            BundleError::Changed(path) => {
                let what = format!("{} changed while it was read", path.display());
                Problem::new("bundle_file_changed", what, "wait until no program writes to this file, and try again")
            }
            BundleError::Program { path, reason } => {
                Problem::new("not_bundled", format!("{} cannot be bundled: {reason}", path.display()), "")
            }
            BundleError::Library { needs, library } => {
                let what = format!("{} needs {library}, which this host does not have", needs.display());
                let remedy = format!("install the package that contains {library}, or remove the driver that needs it");
                Problem::new("library_missing", what, remedy)
            }
            BundleError::Twice { first, second } => {
                let what = format!(
                    "{} and {} have the same name but different content: a bundle can contain only one of them",
                    first.display(),
                    second.display()
                );
                Problem::new("bundle_name_twice", what, "")
            }
            BundleError::NotABundle { path, reason } => {
                let what = format!("{} is not a bundle: {reason}", path.display());
                Problem::new("not_a_bundle", what, "`tailbound bundle` makes one")
            }
        }
    }

    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> BundleError {
        let path = path.to_owned();
        move |source| BundleError::File { what, path, source }
    }
}

tailbound_model::display_as_problem!(BundleError);
