//! Journals of other runs: listed, and undone where their owner is gone.

use super::file::{self, Content, Header, Line, Unread};
use super::{JournalError, directory};
use crate::process;
use crate::undo::{self, Undone};
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tailbound_model::JournalEntry;

/// One journal as it lies there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JournalState {
    /// Run id, from the file's name.
    pub run: String,
    /// The file.
    pub path: PathBuf,
    /// Whose it is; `None` when that cannot be read.
    pub header: Option<Header>,
    /// The owner lives: the journal is not touched.
    pub owner_alive: bool,
    /// Somebody else is working on it: another cleanup.
    pub busy: bool,
    /// Written in an earlier boot: the entries are void.
    pub stale_boot: bool,
    /// Not undone yet, in the order of their making.
    pub entries: Vec<JournalEntry>,
    /// Why nothing can be done about it from here, if so: damaged, of another machine, of another container.
    pub problem: Option<String>,
}

impl JournalState {
    /// Nothing known of it yet.
    fn of(path: &Path) -> JournalState {
        JournalState {
            run: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            path: path.to_owned(),
            header: None,
            owner_alive: false,
            busy: false,
            stale_boot: false,
            entries: Vec::new(),
            problem: None,
        }
    }
}

/// What a cleanup did. Sentences for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CleanupReport {
    /// Things taken back.
    pub undone: Vec<String>,
    /// Things that were not ours any more.
    pub left_alone: Vec<String>,
    /// Runs whose journal was of an earlier boot.
    pub void: Vec<String>,
    /// Runs that go on, and those that another cleanup works on.
    pub alive: Vec<String>,
    /// What could not be undone or read; the journal stays.
    pub failed: Vec<String>,
}

impl CleanupReport {
    /// Nothing was left to be done and nothing failed.
    pub fn is_clean(&self) -> bool {
        self.failed.is_empty()
    }
}

/// All journals of this user.
///
/// # Errors
/// The directory cannot be read; one that does not exist is empty.
pub fn list() -> Result<Vec<JournalState>, JournalError> {
    list_in(&directory::journal_dir()?)
}

pub(super) fn list_in(dir: &Path) -> Result<Vec<JournalState>, JournalError> {
    let one = |path: PathBuf| match File::open(&path) {
        Ok(file) => Some(inspect(&path, file).0),
        // Its run ended just now.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(JournalState { problem: Some(error.to_string()), ..JournalState::of(&path) }),
    };
    Ok(journals(dir)?.into_iter().filter_map(one).collect())
}

/// Undoes what dead runs left, the last change first. `say` hears each sentence as it becomes true.
///
/// # Errors
/// The directory cannot be read, or other users can write to it.
pub fn cleanup(say: &mut dyn FnMut(&str)) -> Result<CleanupReport, JournalError> {
    cleanup_in(&directory::journal_dir()?, say)
}

pub(super) fn cleanup_in(dir: &Path, say: &mut dyn FnMut(&str)) -> Result<CleanupReport, JournalError> {
    let mut report = CleanupReport::default();
    let paths = journals(dir)?;
    if let (false, Some(why)) = (paths.is_empty(), directory::distrust(dir)) {
        return Err(JournalError::NoPlace(format!("{why}: what its journals ask for is not done")));
    }
    for path in paths {
        clean(&path, &mut report, say);
    }
    Ok(report)
}

fn journals(dir: &Path) -> Result<Vec<PathBuf>, JournalError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(JournalError::file("read", dir))?,
    };
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.extension().is_some_and(|x| x == "jsonl")).collect();
    paths.sort();
    Ok(paths)
}

/// How long a lock may outlast its owner: a process that is just being started holds it until it has become its program.
const LOCK_LINGERS: Duration = Duration::from_millis(200);

/// Reads a journal and judges it. The second value is there when the journal is not in use: the file with its lock, which
/// is held as long as the file, and the length of its whole part.
fn inspect(path: &Path, mut file: File) -> (JournalState, Option<(File, usize)>) {
    let patience = Instant::now() + LOCK_LINGERS;
    loop {
        let locked = file::try_lock(&file);
        let (mut state, whole) = read(path, &mut file);
        match locked {
            Ok(true) => return (state, Some((file, whole))),
            Ok(false) if state.owner_alive => return (state, None),
            Ok(false) if Instant::now() < patience => std::thread::sleep(Duration::from_millis(10)),
            Ok(false) => {
                state.busy = true;
                return (state, None);
            }
            Err(error) => {
                state.problem.get_or_insert(format!("cannot be locked: {error}"));
                return (state, None);
            }
        }
    }
}

fn read(path: &Path, file: &mut File) -> (JournalState, usize) {
    let mut state = JournalState::of(path);
    let mut text = String::new();
    let parsed = match file.rewind().and_then(|()| file.read_to_string(&mut text)) {
        Ok(_) => file::parse(&text),
        Err(error) => Err(Unread::Damaged(error.to_string())),
    };
    match parsed {
        Ok(Content { header, open, whole }) => {
            state.entries = open;
            judge(&mut state, header);
            (state, whole)
        }
        Err(Unread::NothingBegun) => (state, 0),
        Err(Unread::Damaged(why)) => {
            state.problem = Some(format!("cannot be read ({why}): what it lists is not undone"));
            (state, 0)
        }
    }
}

fn judge(state: &mut JournalState, header: Header) {
    if header.machine != file::machine() {
        state.problem = Some(format!("was written on another machine ({})", header.machine));
    } else if process::boot_id().is_ok_and(|now| now != header.boot_id) {
        state.stale_boot = true;
    } else if header.pid_namespace != 0 && header.pid_namespace != file::pid_namespace() {
        state.problem = Some("was written in another container, whose processes cannot be told from here".into());
    } else {
        state.owner_alive = process::is_alive(header.owner);
    }
    state.header = Some(header);
}

fn clean(path: &Path, report: &mut CleanupReport, say: &mut dyn FnMut(&str)) {
    let file = match OpenOptions::new().read(true).append(true).open(path) {
        Ok(file) => file,
        // Another cleanup was faster.
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => return note(&mut report.failed, say, format!("journal {}: {error}", path.display())),
    };
    let (mut state, held) = inspect(path, file);
    let run = &state.run;
    if state.owner_alive {
        return note(&mut report.alive, say, format!("run {run} goes on: left alone"));
    }
    if state.busy {
        return note(
            &mut report.alive,
            say,
            format!("the journal of run {run} is being cleaned up by another process"),
        );
    }
    if let Some(problem) = &state.problem {
        return note(&mut report.failed, say, format!("journal {} {problem}", path.display()));
    }
    let Some((file, whole)) = held else { return };
    if !file::is_still_at(&file, path) {
        return;
    }
    if state.stale_boot {
        let void = state.entries.iter().filter(|e| !e.undo.outlasts_boot());
        let entries = void.map(|e| undo::describe(&e.undo)).collect::<Vec<_>>();
        let list = if entries.is_empty() { "nothing".to_owned() } else { entries.join("; ") };
        note(&mut report.void, say, format!("run {run} was before the last boot, its journal is void ({list})"));
        state.entries.retain(|e| e.undo.outlasts_boot());
    }
    if undo_entries(&state, &file, whole, report, say) {
        remove(path, report, say);
    }
}

/// Undoes all open entries, the last first; true when none is left.
fn undo_entries(
    state: &JournalState,
    mut file: &File,
    whole: usize,
    report: &mut CleanupReport,
    say: &mut dyn FnMut(&str),
) -> bool {
    // What a crash cut short must not run into the lines added here.
    let _ = file.set_len(whole as u64);
    let mut all = true;
    for entry in state.entries.iter().rev() {
        match undo::undo(&entry.undo) {
            Ok(outcome) => {
                // If this cannot be written (disk full) the next cleanup looks again, and finds nothing to do.
                let _ = file.write_all(Line::done(entry.number).text().as_bytes());
                match outcome {
                    Undone::Did(text) => note(&mut report.undone, say, text),
                    Undone::LeftAlone(text) => note(&mut report.left_alone, say, text),
                    Undone::AlreadyGone => {}
                }
            }
            Err(error) => {
                all = false;
                note(&mut report.failed, say, format!("run {}: {error}", state.run));
            }
        }
    }
    all
}

fn remove(path: &Path, report: &mut CleanupReport, say: &mut dyn FnMut(&str)) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            note(&mut report.failed, say, format!("journal {}: {error}", path.display()));
        }
        _ => {}
    }
}

fn note(list: &mut Vec<String>, say: &mut dyn FnMut(&str), text: String) {
    say(&text);
    list.push(text);
}
