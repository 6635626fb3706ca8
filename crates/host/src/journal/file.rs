//! The lines of a journal file: read, and put back together.

use crate::process;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tailbound_model::{JournalEntry, ProcessId, Undo};

/// The first line: whose journal it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Boot of the kernel that the entries belong to.
    pub boot_id: String,
    /// Owner.
    #[serde(flatten)]
    pub owner: ProcessId,
    /// Run id.
    pub run: String,
    /// User id of the owner.
    pub uid: u32,
    /// Its command line, for people.
    pub command: String,
    /// When it started, ns since 1970.
    pub started: i64,
    /// Which machine: a home directory may lie on a file server.
    #[serde(default)]
    pub machine: String,
    /// Inode of the owner's process-id namespace; 0 = not known.
    #[serde(default)]
    pub pid_namespace: u64,
}

impl Header {
    /// The header of the calling process.
    pub(super) fn own(run: &str) -> io::Result<Header> {
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
        })
    }
}

/// A name for this machine that differs from that of others who may share the directory.
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

/// Any line but the first.
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
    /// With the line end.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a line of plain data is always JSON") + "\n"
    }
}

/// What a journal file holds.
pub(super) struct Content {
    pub header: Header,
    /// Not undone yet, in the order of their making.
    pub open: Vec<JournalEntry>,
    /// Bytes up to the end of the last whole line.
    pub whole: usize,
}

/// Why a file is not read.
pub(super) enum Unread {
    /// Not even the header is whole: its owner died before it could change anything.
    NothingBegun,
    /// A whole line that is not understood; the text says which.
    Damaged(String),
}

/// Takes a journal apart. The last line counts only with its line end.
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
                None => return Err(damaged("updates an entry that is not open")),
            },
            (None, None, None, Some(number)) => open.retain(|e| e.number != number),
            _ => return Err(damaged("neither an entry nor an update nor done")),
        }
    }
    Ok(Content { header, open, whole })
}

/// Takes the lock of a journal, waiting for whoever has it.
pub(super) fn lock(file: &File) -> io::Result<()> {
    flock(file, libc::LOCK_EX)
}

/// Takes the lock of a journal; `false` when somebody else has it.
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

/// True while the path still leads to this very file: whoever had the lock before may have removed it.
pub(super) fn is_still_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}
