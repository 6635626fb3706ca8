//! The resources of a path of guests, and checks that removing the path frees all of them.

use crate::support::{block_on, journal, wait_until};
use std::fs;
use std::path::Path;
use tailbound_host::{Journal, is_alive};
use tailbound_lab::netns::processes_in;
use tailbound_lab::wiring::{Port, Wiring};
use tailbound_model::{JournalEntry, PathSpec, ProcessId, Undo};

/// Ids of the BPF programs that a process keeps open, directly or by their links.
fn programs_of(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let ids = texts.filter_map(|text| text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok()));
    ids.collect()
}

fn exists(program: u32) -> bool {
    // bpf(BPF_PROG_GET_NEXT_ID) takes an id and returns the next higher id.
    let mut attributes = [program - 1, 0u32, 0];
    // SAFETY: the command reads and writes three words, which outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, 11, &raw mut attributes, size_of_val(&attributes)) };
    result == 0 && attributes[1] == program
}

/// All resources of a path of guests, except the resources of this process.
#[derive(Debug, Default)]
pub struct Held {
    pub processes: Vec<ProcessId>,
    pub namespaces: Vec<u64>,
    pub programs: Vec<u32>,
}

impl Held {
    pub fn by(owner: u32, entries: &[JournalEntry]) -> Held {
        let mut held = Held { programs: programs_of(owner), ..Held::default() };
        for entry in entries {
            match &entry.undo {
                Undo::EndProcess { process, .. } => held.processes.push(*process),
                Undo::UnnamedNetns { inode, .. } => held.namespaces.push(*inode),
                _ => {}
            }
        }
        held.programs.extend(held.processes.iter().flat_map(|process| programs_of(process.pid as u32)));
        held
    }

    pub fn assert_gone(&self, scratch: &Path) {
        assert!(self.processes.iter().all(|process| !is_alive(*process)), "{self:?}");
        assert!(self.namespaces.iter().all(|inode| processes_in(*inode).is_empty()), "{self:?}");
        wait_until("the kernel has removed the programs", || !self.programs.iter().any(|id| exists(*id)));
        let left: Vec<_> = fs::read_dir(scratch).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Undoes everything in the journal if the test case has failed.
struct Cleaned(Journal);

impl Drop for Cleaned {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.undo_all(&mut |_| ());
        }
    }
}

/// Sets up a path, runs a test case, and removes the path; checks that all resources are free afterwards.
pub fn with(path: &PathSpec, ports: &[Port], case: impl FnOnce(&mut Wiring)) -> Held {
    let (cleaned, scratch) = (Cleaned(journal("wiring")), tempfile::tempdir().unwrap());
    let journal = &cleaned.0;
    let held = block_on(async {
        let mut under =
            Wiring::up((path, None), ports, journal.run(), journal, scratch.path()).await.unwrap_or_else(|error| {
                panic!("{path}: {error}");
            });
        let held = Held::by(std::process::id(), &journal.open_entries());
        case(&mut under);
        under.down(journal).await.unwrap();
        held
    });
    held.assert_gone(scratch.path());
    journal.finish().unwrap();
    held
}
