//! Writes a bundle (Tailbound's program, drivers and libraries) to a directory.

use crate::contents::Contents;
use crate::error::BundleError;
use crate::manifest::{Bundle, MANIFEST, digest};
use crate::partial::partial;
use std::path::{Path, PathBuf};

/// Makes a bundle of `program` and `drivers` (name and shared object of each driver) in `directory`. The directory
/// appears only when it is complete.
///
/// # Errors
/// `directory` exists, a library is missing on this host, or a file cannot be read or written.
pub fn pack(
    program: &Path,
    release: &str,
    drivers: &[(String, PathBuf)],
    directory: &Path,
) -> Result<Bundle, BundleError> {
    if directory.exists() {
        return Err(BundleError::Exists { path: directory.to_owned(), what: "directory" });
    }
    let contents = Contents::gather(program, release, drivers)?;
    let partial = partial(directory);
    let made = fill(&contents, &partial)
        .and_then(|()| std::fs::rename(&partial, directory).map_err(BundleError::file("cannot name", directory)));
    if made.is_err() {
        // The first error is the one that is reported.
        let _ = std::fs::remove_dir_all(&partial);
    }
    made.map(|()| contents.bundle)
}

/// Copies all files of a bundle into a directory and writes the manifest.
fn fill(contents: &Contents, directory: &Path) -> Result<(), BundleError> {
    for sub in ["bin", "lib/tailbound/drivers"] {
        let sub = directory.join(sub);
        std::fs::create_dir_all(&sub).map_err(BundleError::file("cannot make", &sub))?;
    }
    for (file, from) in contents.bundle.files.iter().zip(&contents.sources) {
        let to = directory.join(&file.path);
        std::fs::copy(from, &to).map_err(BundleError::file("cannot copy", from))?;
        if digest(&to)? != (file.bytes, file.sha256.clone()) {
            return Err(BundleError::Changed(from.clone()));
        }
    }
    let manifest = directory.join(MANIFEST);
    std::fs::write(&manifest, contents.manifest()).map_err(BundleError::file("cannot write", &manifest))
}
