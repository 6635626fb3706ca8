//! The journal of a run that goes on.

use super::file::{Header, Line, is_still_at, lock};
use super::{JournalError, directory};
use crate::undo::{self, Undone};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tailbound_model::{JournalEntry, Undo};

/// Names one entry of one journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u64);

/// The journal of this run. Shareable: every method takes `&self`.
///
/// Dropping it undoes nothing and keeps the file; the entries left are what the next cleanup undoes.
#[derive(Debug)]
pub struct Journal {
    run: String,
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Bytes of whole lines.
    length: u64,
    next: u64,
    open: Vec<JournalEntry>,
}

impl Journal {
    /// Begins the journal of a run in this user's directory ([`journal_dir`](super::journal_dir)).
    ///
    /// # Errors
    /// The directory cannot be made, the id is not a file name, or a run with this id has a journal.
    pub fn create(run: &str) -> Result<Journal, JournalError> {
        Journal::create_in(&directory::journal_dir()?, run)
    }

    /// Begins the journal of a run in a given directory.
    ///
    /// # Errors
    /// As [`create`](Journal::create).
    pub fn create_in(dir: &Path, run: &str) -> Result<Journal, JournalError> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if run.is_empty() || run.starts_with('.') || run.len() > 200 || !run.chars().all(good) {
            return Err(JournalError::BadRunId(run.to_owned()));
        }
        directory::make(dir)?;
        // A cleanup would refuse what lies here.
        if let Some(why) = directory::distrust(dir) {
            return Err(JournalError::NoPlace(why));
        }
        let path = dir.join(format!("{run}.jsonl"));
        let file = create_locked(&path, run)?;
        let state = State { file, length: 0, next: 1, open: Vec::new() };
        let journal = Journal { run: run.to_owned(), path, state: Mutex::new(state) };
        match journal.begin(dir) {
            Ok(()) => Ok(journal),
            Err(error) => {
                // Without its header it would only puzzle a cleanup.
                let _ = fs::remove_file(&journal.path);
                Err(error)
            }
        }
    }

    /// Writes the header, and makes the file's name as lasting as its content.
    fn begin(&self, dir: &Path) -> Result<(), JournalError> {
        let header = Header::own(&self.run).map_err(JournalError::file("describe this process in", &self.path))?;
        let line = serde_json::to_string(&header).expect("a header of plain data is always JSON") + "\n";
        self.append(&mut self.lock(), &line, true)?;
        File::open(dir).and_then(|d| d.sync_all()).map_err(JournalError::file("write to", dir))
    }

    /// The run's id.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes down how a change is undone, on disk when this returns; to be called before the change.
    ///
    /// # Errors
    /// It could not be written: the change must not be made.
    pub fn before(&self, undo: Undo) -> Result<EntryId, JournalError> {
        let mut state = self.lock();
        let number = state.next;
        self.append(&mut state, &Line::entry(number, undo.clone()).text(), true)?;
        state.next += 1;
        state.open.push(JournalEntry { number, undo });
        Ok(EntryId(number))
    }

    /// Replaces an entry, once an identity (an interface's index, a process id) is known.
    ///
    /// # Errors
    /// No such open entry, or it could not be written; the entry stands as it was.
    pub fn update(&self, id: EntryId, undo: Undo) -> Result<(), JournalError> {
        let mut state = self.lock();
        let at = state.position(id)?;
        self.append(&mut state, &Line::update(id.0, undo.clone()).text(), true)?;
        state.open[at].undo = undo;
        Ok(())
    }

    /// Marks a change as undone.
    ///
    /// # Errors
    /// No such open entry, or it could not be written: a cleanup will look at it again, which does no harm.
    pub fn done(&self, id: EntryId) -> Result<(), JournalError> {
        let mut state = self.lock();
        let at = state.position(id)?;
        // Not synced: after a power cut every entry is void anyway.
        self.append(&mut state, &Line::done(id.0).text(), false)?;
        state.open.remove(at);
        Ok(())
    }

    /// Entries not undone yet, in the order of their making.
    pub fn open_entries(&self) -> Vec<JournalEntry> {
        self.lock().open.clone()
    }

    /// Undoes one change with the common executors and marks it. May block, see [`undo()`](crate::undo::undo()).
    ///
    /// # Errors
    /// It could not be undone: it stays open.
    pub fn undo(&self, id: EntryId) -> Result<Undone, JournalError> {
        let what = {
            let state = self.lock();
            state.open[state.position(id)?].undo.clone()
        };
        let outcome = undo::undo(&what).map_err(|e| JournalError::NotUndone(vec![e.to_string()]))?;
        self.done(id)?;
        Ok(outcome)
    }

    /// Undoes everything left, the last change first; goes on past failures. `say` hears a sentence for each thing done
    /// or left alone.
    ///
    /// # Errors
    /// What is left.
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

    /// Ends the journal: with everything undone the file is removed.
    ///
    /// # Errors
    /// The list of what is left; the file stays for a cleanup.
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

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between any two statements: a panic elsewhere does not spoil it.
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
                // Half a line (disk full) must not stand in the middle of the file.
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

/// Makes the file and takes its lock. A cleanup may take the new file for one left behind and remove it in between.
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
