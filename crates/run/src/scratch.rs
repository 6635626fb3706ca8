//! Directories for sockets that exist as long as a run.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use tailbound_host::EntryId;
use tailbound_host::journal::Journal;
use tailbound_model::{Problem, Undo};

/// Makes a directory for sockets, which only this user may enter, and writes it to the journal. Its path should be short,
/// because the path of a socket may have at most 107 bytes.
///
/// # Errors
/// The directory or the journal cannot be written.
pub(crate) fn make_directory(journal: &Journal, path: &Path) -> Result<(PathBuf, EntryId), Problem> {
    let failed = |text: String| Problem::new("run_failed", text, "");
    let text = path.display().to_string();
    let undo = |inode| Undo::RemoveDirectory { path: text.clone(), inode };
    let entry = journal.before(undo(None)).map_err(|e| failed(e.to_string()))?;
    let made = std::fs::DirBuilder::new().mode(0o700).create(path).and_then(|()| std::fs::metadata(path));
    let inode = made.map_err(|e| failed(format!("cannot make {text}: {e}")))?.ino();
    journal.update(entry, undo(Some(inode))).map_err(|e| failed(e.to_string()))?;
    Ok((path.to_owned(), entry))
}
