//! Temporary names for files and directories that are not complete yet.

use std::path::{Path, PathBuf};

/// Makes a temporary name in the same directory. The file or directory `path` has this name until it is complete.
pub(crate) fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    PathBuf::from(name)
}
