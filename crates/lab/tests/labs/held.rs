//! What a path of guests holds while it stands, and that it is gone afterwards.

use crate::support::{block_on, journal, wait_until};
use std::fs;
use std::path::Path;
use tailbound_host::{Journal, is_alive};
use tailbound_lab::netns::processes_in;
use tailbound_lab::under::{Port, Under};
use tailbound_model::{JournalEntry, PathSpec, ProcessId, Undo};

/// Ids of the programs that a process holds, by themselves or by their links.
fn programs_of(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let ids = texts.filter_map(|text| text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok()));
    ids.collect()
}

fn exists(program: u32) -> bool {
    // bpf(BPF_PROG_GET_NEXT_ID): after which id, and what comes then.
    let mut attributes = [program - 1, 0u32, 0];
    // SAFETY: the command reads and writes three words, which outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, 11, &raw mut attributes, size_of_val(&attributes)) };
    result == 0 && attributes[1] == program
}

/// Everything that a path holds beside what this process holds.
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

/// What a case that failed has left is taken back.
struct Cleaned(Journal);

impl Drop for Cleaned {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.undo_all(&mut |_| ());
        }
    }
}

/// Up, the case, down; what was held is gone then.
pub fn with(path: &PathSpec, ports: &[Port], case: impl FnOnce(&mut Under)) -> Held {
    let (cleaned, scratch) = (Cleaned(journal("under")), tempfile::tempdir().unwrap());
    let journal = &cleaned.0;
    let held = block_on(async {
        let mut under =
            Under::up((path, None), ports, journal.run(), journal, scratch.path()).await.unwrap_or_else(|error| {
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
