//! Writes and parses the lines of a journal file.

use crate::process;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tailbound_model::{JournalEntry, ProcessId, Undo};

/// First line of a journal, which identifies the owner (the process of the run).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Id of the kernel's boot during which the run made its changes.
    pub boot_id: String,
    /// Process that made the journal and owns it.
    #[serde(flatten)]
    pub owner: ProcessId,
    /// Id of the run to which the journal belongs.
    pub run: String,
    /// User id of the journal's owner.
    pub uid: u32,
    /// Command line of the journal's owner, for people.
    pub command: String,
    /// Start time of the journal's run, in ns since 1970.
    pub started: i64,
    /// Identity of the machine on which the run made its changes; it is needed because a home directory can lie on a
    /// file server.
    #[serde(default)]
    pub machine: String,
    /// Inode of the owner's PID namespace; 0 if it is not known.
    #[serde(default)]
    pub pid_namespace: u64,
    /// Time at which a lease of the changes ends, in ns since 1970; `None` for a run, whose changes last as long as it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until_ns: Option<i64>,
}

impl Header {
    /// Creates the header for a journal of the calling process.
    pub(super) fn own(run: &str, lease_until_ns: Option<i64>) -> io::Result<Header> {
        let command = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        Ok(Header {
            boot_id: process::boot_id()?,
            owner: process::this_process()?,
            run: run.to_owned(),
            uid: nix::unistd::geteuid().as_raw(),
            command,
            started: crate::clock::realtime_ns(),
            machine: machine(),
            pid_namespace: pid_namespace(),
            lease_until_ns,
        })
    }
}

/// Identity of this machine, different on all machines that share the directory of journals: the machine id, else the
/// host name.
pub(super) fn machine() -> String {
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    match id.trim() {
        "" => fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned(),
        id => id.to_owned(),
    }
}

pub(super) fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino())
}

/// Any line of a journal except the first: an entry, an update of an entry, or the mark that an entry is undone.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
}

impl Line {
    pub fn entry(number: u64, undo: Undo) -> Line {
        Line { number: Some(number), update: None, undo: Some(undo), done: None }
    }
    pub fn update(number: u64, undo: Undo) -> Line {
        Line { number: None, update: Some(number), undo: Some(undo), done: None }
    }
    pub fn done(number: u64) -> Line {
        Line { number: None, update: None, undo: None, done: Some(number) }
    }
    /// Text of a journal line as JSON, with the line end.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a journal line could not be written as JSON") + "\n"
    }
}

/// Parsed content of a journal file: its header, and the entries that are not undone yet.
pub(super) struct Content {
    pub header: Header,
    /// Entries of the journal that are not undone yet, in the order in which they were made.
    pub open: Vec<JournalEntry>,
    /// Number of bytes up to the end of the last complete line of the journal.
    pub whole: usize,
}

/// Reason why a file cannot be read as a journal.
pub(super) enum Unread {
    /// The header of the journal is not complete: the owner ended before it made any change.
    NothingBegun,
    /// A complete line of the journal is not valid; the text says which line.
    Damaged(String),
}

/// Parses the text of a journal; if the last line has no line end, the line is ignored.
pub(super) fn parse(text: &str) -> Result<Content, Unread> {
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    let mut lines = text[..whole].lines().enumerate();
    let (_, first) = lines.next().ok_or(Unread::NothingBegun)?;
    let header = serde_json::from_str(first).map_err(|e| Unread::Damaged(format!("line 1: {e}")))?;
    let mut open: Vec<JournalEntry> = Vec::new();
    for (index, line) in lines {
        let damaged = |why: &str| Unread::Damaged(format!("line {}: {why}", index + 1));
        let line: Line = serde_json::from_str(line).map_err(|e| damaged(&e.to_string()))?;
        match (line.number, line.update, line.undo, line.done) {
            (Some(number), None, Some(undo), None) => open.push(JournalEntry { number, undo }),
            (None, Some(number), Some(undo), None) => match open.iter_mut().find(|e| e.number == number) {
                Some(entry) => entry.undo = undo,
                None => return Err(damaged("the line updates an entry that is not open")),
            },
            (None, None, None, Some(number)) => open.retain(|e| e.number != number),
            _ => return Err(damaged("the line is neither an entry nor an update nor `done`")),
        }
    }
    Ok(Content { header, open, whole })
}

/// Locks a journal file; waits while another process holds the lock.
pub(super) fn lock(file: &File) -> io::Result<()> {
    flock(file, libc::LOCK_EX)
}

/// Tries to lock a journal file; returns `false` if another process holds the lock.
pub(super) fn try_lock(file: &File) -> io::Result<bool> {
    match flock(file, libc::LOCK_EX | libc::LOCK_NB) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

fn flock(file: &File, operation: i32) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open for the life of `file`.
        if unsafe { libc::flock(file.as_raw_fd(), operation) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Whether the path still leads to this open journal file: the process that held the lock before may have removed the
/// file.
pub(super) fn is_still_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}
