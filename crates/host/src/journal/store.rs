//! The journal of an active run: entries are added, updated and undone.

use super::file::{Header, Line, is_still_at, lock};
use super::{JournalError, directory};
use crate::undo::{self, Undone};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tailbound_model::{JournalEntry, Undo};

/// Number that identifies an entry within its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// The journal of the calling process's run. It can be shared between threads: every method takes `&self`.
///
/// If the journal is dropped, nothing is undone and the file stays; the next cleanup undoes the open entries.
#[derive(Debug)]
pub struct Journal {
    run: String,
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Number of bytes in the complete lines of the journal file.
    length: u64,
    next: u64,
    open: Vec<JournalEntry>,
}

impl Journal {
    /// Begins the journal of a run in this user's directory ([`journal_dir`](super::journal_dir)).
    ///
    /// # Errors
    /// The directory cannot be made, the run id is not a valid file name, or another run with this id has a journal.
    pub fn create(run: &str) -> Result<Journal, JournalError> {
        Journal::create_in(&directory::journal_dir()?, run)
    }

    /// Begins the journal of changes with a lease that ends at this time, in ns since 1970. The calling process undoes them then,
    /// unless they are confirmed by [`keep`](Journal::keep).
    ///
    /// # Errors
    /// The errors are the same as for [`create`](Journal::create).
    pub fn create_with_lease(run: &str, until_ns: i64) -> Result<Journal, JournalError> {
        Journal::begun(&directory::journal_dir()?, run, Some(until_ns))
    }

    /// Begins the journal of a run in the directory `dir`.
    ///
    /// # Errors
    /// The errors are the same as for [`create`](Journal::create).
    pub fn create_in(dir: &Path, run: &str) -> Result<Journal, JournalError> {
        Journal::begun(dir, run, None)
    }

    fn begun(dir: &Path, run: &str, lease_until_ns: Option<i64>) -> Result<Journal, JournalError> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if run.is_empty() || run.starts_with('.') || run.len() > 200 || !run.chars().all(good) {
            return Err(JournalError::BadRunId(run.to_owned()));
        }
        directory::make(dir)?;
        // A cleanup would refuse the journals in this directory.
        if let Some(why) = directory::distrust(dir) {
            return Err(JournalError::NoPlace(why));
        }
        let path = dir.join(format!("{run}.jsonl"));
        let file = create_locked(&path, run)?;
        let state = State { file, length: 0, next: 1, open: Vec::new() };
        let journal = Journal { run: run.to_owned(), path, state: Mutex::new(state) };
        match journal.begin(dir, lease_until_ns) {
            Ok(()) => Ok(journal),
            Err(error) => {
                // A journal without a header has no use for a cleanup.
                let _ = fs::remove_file(&journal.path);
                Err(error)
            }
        }
    }

    /// Writes the header of the journal, and syncs the directory so that the file's name survives a power cut.
    fn begin(&self, dir: &Path, lease_until_ns: Option<i64>) -> Result<(), JournalError> {
        let header = Header::own(&self.run, lease_until_ns)
            .map_err(JournalError::file("describe this process in", &self.path))?;
        let line = serde_json::to_string(&header).expect("the header of a journal could not be written as JSON") + "\n";
        self.append(&mut self.lock(), &line, true)?;
        File::open(dir).and_then(|d| d.sync_all()).map_err(JournalError::file("write to", dir))
    }

    /// Id of the run to which the journal belongs.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Path of the journal file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes to disk how a change is undone. Callers must call this before they make the change.
    ///
    /// # Errors
    /// The entry could not be written; then the change must not be made.
    pub fn before(&self, undo: Undo) -> Result<EntryId, JournalError> {
        let mut state = self.lock();
        let number = state.next;
        self.append(&mut state, &Line::entry(number, undo.clone()).text(), true)?;
        state.next += 1;
        state.open.push(JournalEntry { number, undo });
        Ok(EntryId(number))
    }

    /// Replaces an entry of the journal when the identity of the changed object (interface index, process id) is known.
    ///
    /// # Errors
    /// There is no open entry with this number, or the update could not be written; the entry is then unchanged.
    pub fn update(&self, id: EntryId, undo: Undo) -> Result<(), JournalError> {
        let mut state = self.lock();
        let at = state.position(id)?;
        self.append(&mut state, &Line::update(id.0, undo.clone()).text(), true)?;
        state.open[at].undo = undo;
        Ok(())
    }

    /// Marks an entry of the journal as undone.
    ///
    /// # Errors
    /// There is no open entry with this number, or the mark could not be written. If the mark could not be written, a
    /// cleanup looks at the entry again, which does no harm.
    pub fn done(&self, id: EntryId) -> Result<(), JournalError> {
        let mut state = self.lock();
        let at = state.position(id)?;
        // The line is not synced, because a power cut makes every entry void.
        self.append(&mut state, &Line::done(id.0).text(), false)?;
        state.open.remove(at);
        Ok(())
    }

    /// Entries of the journal that are not undone yet, in the order in which they were made.
    pub fn open_entries(&self) -> Vec<JournalEntry> {
        self.lock().open.clone()
    }

    /// Undoes the change of one entry and marks the entry as undone. The call may block, see
    /// [`undo()`](crate::undo::undo()).
    ///
    /// # Errors
    /// The change could not be undone; the entry stays open.
    pub fn undo(&self, id: EntryId) -> Result<Undone, JournalError> {
        let what = {
            let state = self.lock();
            state.open[state.position(id)?].undo.clone()
        };
        let outcome = undo::undo(&what).map_err(|e| JournalError::NotUndone(vec![e.to_string()]))?;
        self.done(id)?;
        Ok(outcome)
    }

    /// Undoes all open entries of the journal, the last entry first, and continues after failures. `say` receives a
    /// sentence for each entry that was undone or left alone.
    ///
    /// # Errors
    /// Some entries could not be undone; the error lists them.
    pub fn undo_all(&self, say: &mut dyn FnMut(&str)) -> Result<(), JournalError> {
        let mut left = Vec::new();
        for entry in self.open_entries().into_iter().rev() {
            match self.undo(EntryId(entry.number)) {
                Ok(Undone::AlreadyGone) => {}
                Ok(outcome) => say(&outcome.to_string()),
                Err(JournalError::NotUndone(mut why)) => left.append(&mut why),
                Err(error) => left.push(error.to_string()),
            }
        }
        if left.is_empty() { Ok(()) } else { Err(JournalError::NotUndone(left)) }
    }

    /// Ends the journal: if all entries are undone, removes the journal file.
    ///
    /// # Errors
    /// Some entries are not undone; the error lists them, and the file stays for a later cleanup.
    pub fn finish(&self) -> Result<(), JournalError> {
        let state = self.lock();
        if !state.open.is_empty() {
            let left = state.open.iter().map(|e| undo::describe(&e.undo)).collect();
            return Err(JournalError::NotUndone(left));
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(JournalError::file("remove", &self.path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Ends the journal and keeps its changes: a cleanup no longer undoes them, and [`revert`](super::revert) does.
    ///
    /// # Errors
    /// The file cannot be renamed; it is a journal as before.
    pub fn keep(&self) -> Result<(), JournalError> {
        let kept = self.path.with_extension(super::cleanup::KEPT);
        fs::rename(&self.path, &kept).map_err(JournalError::file("rename", &self.path))?;
        let dir = kept.parent().unwrap_or(Path::new("."));
        File::open(dir).and_then(|d| d.sync_all()).map_err(JournalError::file("write to", dir))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements, so a panic while the lock is held does not damage it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, state: &mut State, line: &str, sync: bool) -> Result<(), JournalError> {
        let written =
            state.file.write_all(line.as_bytes()).and_then(|()| if sync { state.file.sync_data() } else { Ok(()) });
        match written {
            Ok(()) => {
                state.length += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Removes a partly written line (disk full), so that the next line starts cleanly.
                let _ = state.file.set_len(state.length);
                Err(JournalError::file("write to", &self.path)(error))
            }
        }
    }
}

impl State {
    fn position(&self, id: EntryId) -> Result<usize, JournalError> {
        self.open.iter().position(|e| e.number == id.0).ok_or(JournalError::NoSuchEntry(id.0))
    }
}

/// Makes the journal file and locks it. If a cleanup removes the new file before it is locked, makes the file again.
fn create_locked(path: &Path, run: &str) -> Result<File, JournalError> {
    loop {
        let file = match OpenOptions::new().append(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(JournalError::Exists { run: run.to_owned(), path: path.to_owned() });
            }
            other => other.map_err(JournalError::file("create", path))?,
        };
        lock(&file).map_err(JournalError::file("lock", path))?;
        if is_still_at(&file, path) {
            return Ok(file);
        }
    }
}
