//! Lists the journals of other runs, and undoes the entries of journals whose owner (the process of the run) has ended.

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

/// State of one journal file: whether its owner still runs, and the changes that are not undone yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JournalState {
    /// Id of the run, taken from the name of the journal file.
    pub run: String,
    /// Path of the journal file.
    pub path: PathBuf,
    /// Header of the journal, which names the owner; `None` if the header cannot be read.
    pub header: Option<Header>,
    /// Whether the owner of the journal still runs; then a cleanup does not change the journal.
    pub owner_alive: bool,
    /// Whether another process cleans up after this journal at the moment.
    pub busy: bool,
    /// Whether the journal was written before the last boot; then its entries are void, except entries for changes that
    /// survive a boot.
    pub stale_boot: bool,
    /// Entries of the journal that are not undone yet, in the order in which they were made.
    pub entries: Vec<JournalEntry>,
    /// Reason why this process cannot clean up the journal: the journal is damaged, or was written on another machine
    /// or in another container.
    pub problem: Option<String>,
}

impl JournalState {
    /// State of a journal file that has not been read yet.
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

/// Results of a cleanup of journals, as sentences for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CleanupReport {
    /// Sentences about the changes to the host that the cleanup undid.
    pub undone: Vec<String>,
    /// Sentences about changes that the cleanup left alone, because something else had changed them since.
    pub left_alone: Vec<String>,
    /// Sentences about runs whose journal was written before the last boot.
    pub void: Vec<String>,
    /// Sentences about runs that are still active, and about runs on whose journal another cleanup works.
    pub alive: Vec<String>,
    /// Errors of entries that could not be undone and of journals that could not be read; these journals stay.
    pub failed: Vec<String>,
}

impl JournalState {
    /// Whether the changes have a lease: settings are in force, and nothing measures.
    pub fn has_lease(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.lease_until_ns.is_some())
    }
}

impl CleanupReport {
    /// Whether the cleanup could undo all changes without a failure.
    pub fn is_clean(&self) -> bool {
        self.failed.is_empty()
    }
}

/// Ending of the file names of journals of runs.
const OF_RUN: &str = "jsonl";
/// Ending of the file names of journals whose changes the user has confirmed.
pub(super) const KEPT: &str = "kept";

/// Lists the journals of all runs of this user.
///
/// # Errors
/// The directory of journals exists but cannot be read.
pub fn list() -> Result<Vec<JournalState>, JournalError> {
    list_in(&directory::journal_dir()?)
}

/// Lists the journals of changes that the user has confirmed, in the order of their names.
///
/// # Errors
/// The directory of journals exists but cannot be read.
pub fn kept() -> Result<Vec<JournalState>, JournalError> {
    states(journals(&directory::journal_dir()?, KEPT)?)
}

pub(super) fn list_in(dir: &Path) -> Result<Vec<JournalState>, JournalError> {
    states(journals(dir, OF_RUN)?)
}

fn states(paths: Vec<PathBuf>) -> Result<Vec<JournalState>, JournalError> {
    let one = |path: PathBuf| match File::open(&path) {
        Ok(file) => Some(inspect(&path, file).0),
        // The run of this journal has just ended.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(JournalState { problem: Some(error.to_string()), ..JournalState::of(&path) }),
    };
    Ok(paths.into_iter().filter_map(one).collect())
}

/// Undoes the changes left by runs that have ended, the last change first. `say` receives a sentence after each change.
///
/// # Errors
/// The directory of journals cannot be read, or other users can write to it.
pub fn cleanup(say: &mut dyn FnMut(&str)) -> Result<CleanupReport, JournalError> {
    cleanup_in(&directory::journal_dir()?, say)
}

pub(super) fn cleanup_in(dir: &Path, say: &mut dyn FnMut(&str)) -> Result<CleanupReport, JournalError> {
    clean_all(dir, journals(dir, OF_RUN)?, say)
}

/// Undoes the changes that the user has confirmed, the last change first. `say` receives a sentence after each change.
///
/// # Errors
/// The directory of journals cannot be read, or other users can write to it.
pub fn revert(say: &mut dyn FnMut(&str)) -> Result<CleanupReport, JournalError> {
    revert_in(&directory::journal_dir()?, say)
}

pub(super) fn revert_in(dir: &Path, say: &mut dyn FnMut(&str)) -> Result<CleanupReport, JournalError> {
    // A later change of the same setting is undone first.
    clean_all(dir, journals(dir, KEPT)?.into_iter().rev().collect(), say)
}

fn clean_all(dir: &Path, paths: Vec<PathBuf>, say: &mut dyn FnMut(&str)) -> Result<CleanupReport, JournalError> {
    let mut report = CleanupReport::default();
    if let (false, Some(why)) = (paths.is_empty(), directory::distrust(dir)) {
        return Err(JournalError::NoPlace(format!("{why}: the entries of its journals are not undone")));
    }
    for path in paths {
        clean(&path, &mut report, say);
    }
    Ok(report)
}

fn journals(dir: &Path, ending: &str) -> Result<Vec<PathBuf>, JournalError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(JournalError::file("read", dir))?,
    };
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.extension().is_some_and(|x| x == ending)).collect();
    paths.sort();
    Ok(paths)
}

/// Longest time for which the lock of a journal can outlast its owner: a child process holds the lock from fork until
/// exec.
const LOCK_LINGERS: Duration = Duration::from_millis(200);

/// Reads the state of a journal. If the journal is not in use, the second value contains the locked file (the lock
/// lasts as long as the file is open) and the length of the part with complete lines.
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
            state.problem = Some(format!("the journal cannot be read ({why}): its entries are not undone"));
            (state, 0)
        }
    }
}

fn judge(state: &mut JournalState, header: Header) {
    if header.machine != file::machine() {
        state.problem = Some(format!("the journal was written on another machine ({})", header.machine));
    } else if process::boot_id().is_ok_and(|now| now != header.boot_id) {
        state.stale_boot = true;
    } else if header.pid_namespace != 0 && header.pid_namespace != file::pid_namespace() {
        state.problem =
            Some("the journal was written in another container, whose processes are not visible here".into());
    } else {
        state.owner_alive = process::is_alive(header.owner);
    }
    state.header = Some(header);
}

fn clean(path: &Path, report: &mut CleanupReport, say: &mut dyn FnMut(&str)) {
    let file = match OpenOptions::new().read(true).append(true).open(path) {
        Ok(file) => file,
        // Another cleanup has removed the journal.
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => return note(&mut report.failed, say, format!("journal {}: {error}", path.display())),
    };
    let (mut state, held) = inspect(path, file);
    let run = &state.run;
    if state.owner_alive {
        return note(&mut report.alive, say, format!("run {run} is still active: its journal is not changed"));
    }
    if state.busy {
        return note(
            &mut report.alive,
            say,
            format!("the journal of run {run} is being cleaned up by another process"),
        );
    }
    if let Some(problem) = &state.problem {
        return note(&mut report.failed, say, format!("{}: {problem}", path.display()));
    }
    let Some((file, whole)) = held else { return };
    if !file::is_still_at(&file, path) {
        return;
    }
    if state.stale_boot {
        let void = state.entries.iter().filter(|e| !e.undo.outlasts_boot());
        let entries = void.map(|e| undo::describe(&e.undo)).collect::<Vec<_>>();
        let list = if entries.is_empty() { "nothing".to_owned() } else { entries.join("; ") };
        note(&mut report.void, say, format!("run {run} was before the last boot, so its journal is void ({list})"));
        state.entries.retain(|e| e.undo.outlasts_boot());
    }
    if undo_entries(&state, &file, whole, report, say) {
        remove(path, report, say);
    }
}

/// Undoes all open entries of a journal, the last entry first. Returns `true` if no entry is left.
fn undo_entries(
    state: &JournalState,
    mut file: &File,
    whole: usize,
    report: &mut CleanupReport,
    say: &mut dyn FnMut(&str),
) -> bool {
    // Removes a line that a crash truncated, so that new lines start cleanly.
    let _ = file.set_len(whole as u64);
    let mut all = true;
    for entry in state.entries.iter().rev() {
        match undo::undo(&entry.undo) {
            Ok(outcome) => {
                // If this line cannot be written (disk full), the next cleanup finds nothing to undo for this entry.
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
