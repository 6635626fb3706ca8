//! Tests of journals whose owners run, were killed, or are invented.

use super::cleanup::{CleanupReport, cleanup_in, list_in, revert_in};
use super::*;
use crate::process;
use std::fs;
use std::path::{Path, PathBuf};
use tailbound_model::{ContainerAccess, ContainerClient, ProcessId, Undo};

struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        Home { dir: tempfile::tempdir().unwrap() }
    }
    fn journals(&self) -> PathBuf {
        self.dir.path().join("journal")
    }
    fn create(&self, run: &str) -> Journal {
        Journal::create_in(&self.journals(), run).unwrap()
    }
    fn cleanup(&self) -> CleanupReport {
        cleanup_in(&self.journals(), &mut |_| {}).unwrap()
    }
    fn files(&self) -> usize {
        fs::read_dir(self.journals()).map_or(0, |dir| dir.count())
    }
    /// Makes a file with a setting that was changed from 1 to 2, and the journal entry that undoes this change.
    fn setting(&self, name: &str) -> (PathBuf, Undo) {
        let path = self.dir.path().join(name);
        fs::write(&path, "2\n").unwrap();
        let text = path.to_str().unwrap().to_owned();
        (path, Undo::RestoreSetting { path: text, before: "1".into(), set: "2".into(), netns: None })
    }
    /// Drops a journal and changes its header as if its owner had ended; then `edit` changes the header further.
    fn abandon(&self, journal: Journal, edit: impl FnOnce(&mut Header)) -> PathBuf {
        let path = journal.path().to_owned();
        drop(journal);
        let text = fs::read_to_string(&path).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let mut header: Header = serde_json::from_str(first).unwrap();
        header.owner = ProcessId { start_ticks: header.owner.start_ticks.wrapping_sub(1), ..header.owner };
        edit(&mut header);
        fs::write(&path, format!("{}\n{rest}", serde_json::to_string(&header).unwrap())).unwrap();
        path
    }
}

fn content(path: &Path) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

#[test]
fn a_run_that_undoes_everything_leaves_no_file() {
    let home = Home::new();
    let journal = home.create("r1");
    let (path, undo) = home.setting("a");
    let id = journal.before(undo).unwrap();
    let left = journal.finish().unwrap_err().to_string();
    assert!(left.contains("write `1` back to"), "{left}");
    journal.undo(id).unwrap();
    assert_eq!(content(&path), "1");
    journal.finish().unwrap();
    assert_eq!(home.files(), 0);
}

#[test]
fn entries_are_on_disk_before_the_change_and_follow_updates() {
    let home = Home::new();
    let journal = home.create("r1");
    let token = Undo::EndProcessByToken { token: "t".into() };
    let id = journal.before(token.clone()).unwrap();
    assert_eq!(list_in(&home.journals()).unwrap()[0].entries[0].undo, token);
    let known =
        Undo::EndProcess { process: ProcessId { pid: 7, start_ticks: 8 }, what: "agent".into(), token: String::new() };
    journal.update(id, known.clone()).unwrap();
    let state = &list_in(&home.journals()).unwrap()[0];
    assert_eq!(state.entries[0].undo, known);
    assert!(state.owner_alive && !state.stale_boot);
    assert_eq!(state.header.as_ref().unwrap().owner, process::this_process().unwrap());
    journal.done(id).unwrap();
    assert!(matches!(journal.done(id), Err(JournalError::NoSuchEntry(1))));
    assert!(list_in(&home.journals()).unwrap()[0].entries.is_empty());
}

#[test]
fn a_dead_owners_changes_are_undone_last_first_and_only_once() {
    let home = Home::new();
    let journal = home.create("r1");
    let (a, undo_a) = home.setting("a");
    let (b, undo_b) = home.setting("b");
    journal.before(undo_a).unwrap();
    journal.before(undo_b).unwrap();
    home.abandon(journal, |_| {});
    let report = home.cleanup();
    assert!(report.is_clean());
    assert!(report.undone[0].contains(b.to_str().unwrap()) && report.undone[1].contains(a.to_str().unwrap()));
    assert_eq!((content(&a), content(&b)), ("1".into(), "1".into()));
    assert_eq!(home.files(), 0);
    fs::write(&a, "2\n").unwrap();
    assert_eq!(home.cleanup(), CleanupReport::default());
    assert_eq!(content(&a), "2");
}

#[test]
fn a_live_owners_journal_is_not_touched() {
    let home = Home::new();
    let (path, undo) = home.setting("a");
    // The lock shows that the owner runs ...
    let journal = home.create("r1");
    journal.before(undo).unwrap();
    assert_eq!(home.cleanup().alive.len(), 1);
    // ... and so does its process if the lock is lost.
    drop(journal);
    let report = home.cleanup();
    assert_eq!((report.alive.len(), report.undone.len()), (1, 0));
    assert_eq!((content(&path), home.files()), ("2".into(), 1));
}

#[test]
fn after_a_reboot_entries_are_void() {
    let home = Home::new();
    let journal = home.create("r1");
    let (path, undo) = home.setting("a");
    journal.before(undo).unwrap();
    home.abandon(journal, |header| header.boot_id = "00000000-0000-0000-0000-000000000000".into());
    let report = home.cleanup();
    assert!(report.is_clean() && report.undone.is_empty());
    assert!(report.void[0].contains("before the last boot"), "{report:?}");
    assert_eq!((content(&path), home.files()), ("2".into(), 0));
}

#[test]
fn containers_outlast_a_reboot_and_are_removed_after_it() {
    let home = Home::new();
    let journal = home.create("r1");
    let environment = [("PATH".to_owned(), "/nowhere".to_owned())].into();
    let access = ContainerAccess { client: ContainerClient::Podman, environment };
    journal.before(Undo::RemoveContainer { access, token: "r1-1".into() }).unwrap();
    home.abandon(journal, |header| header.boot_id = "00000000-0000-0000-0000-000000000000".into());
    let report = home.cleanup();
    // The removal fails, so the entry stays and can be tried again.
    assert!(
        report.failed[0].contains("could not remove the container with the label r1-1 (podman): podman: "),
        "{report:?}"
    );
    assert_eq!(home.files(), 1);
}

/// Test: confirmed changes outlast a cleanup; a revert undoes them, the last journal first, and only once.
#[test]
fn kept_changes_are_undone_by_a_revert_only() {
    let home = Home::new();
    let (path, first) = home.setting("a");
    let text = path.to_str().unwrap().to_owned();
    let second = Undo::RestoreSetting { path: text, before: "2".into(), set: "3".into(), netns: None };
    for (run, undo) in [("apply-1", first), ("apply-2", second)] {
        let journal = home.create(run);
        journal.before(undo).unwrap();
        home.abandon(journal, |_| {});
        let journal = home.journals().join(format!("{run}.jsonl"));
        fs::rename(&journal, journal.with_extension("kept")).unwrap();
    }
    fs::write(&path, "3\n").unwrap();
    assert_eq!(home.cleanup(), CleanupReport::default());
    assert_eq!(content(&path), "3");
    let report = revert_in(&home.journals(), &mut |_| {}).unwrap();
    assert_eq!((report.undone.len(), content(&path), home.files()), (2, "1".into(), 0), "{report:?}");
    assert_eq!(revert_in(&home.journals(), &mut |_| {}).unwrap(), CleanupReport::default());
}

#[test]
fn a_journal_is_kept_under_another_name() {
    let home = Home::new();
    let (path, undo) = home.setting("a");
    let journal = home.create("apply-1");
    journal.before(undo).unwrap();
    journal.keep().unwrap();
    assert!(list_in(&home.journals()).unwrap().is_empty());
    drop(journal);
    // The owner, this process, still runs: its changes are left alone.
    let report = revert_in(&home.journals(), &mut |_| {}).unwrap();
    assert_eq!((report.alive.len(), content(&path), home.files()), (1, "2".into(), 1));
}

#[test]
fn a_truncated_last_line_is_ignored() {
    let home = Home::new();
    let journal = home.create("r1");
    let (path, undo) = home.setting("a");
    let lasting = Undo::EndProcess {
        process: ProcessId { pid: 1, start_ticks: 0 },
        what: "never ended".into(),
        token: String::new(),
    };
    journal.before(lasting).unwrap();
    journal.before(undo).unwrap();
    let file = home.abandon(journal, |_| {});
    let text = fs::read_to_string(&file).unwrap();
    for cut in [1, 10] {
        fs::write(&file, &text[..text.len() - cut]).unwrap();
        assert_eq!(home.cleanup().failed.len(), 1, "the first entry cannot be undone");
        assert_eq!(content(&path), "2", "the second change was never made");
    }
    fs::write(&file, format!("{text}{{\"number\":3,\"un")).unwrap();
    assert_eq!(home.cleanup().undone.len(), 1);
    assert_eq!(content(&path), "1");
    assert!(
        fs::read_to_string(&file).unwrap().ends_with("{\"done\":2}\n"),
        "the truncated line is removed before lines are added"
    );
}

#[test]
fn a_file_without_a_whole_header_is_removed_and_one_not_understood_is_kept() {
    let home = Home::new();
    fs::create_dir_all(home.journals()).unwrap();
    fs::write(home.journals().join("empty.jsonl"), "").unwrap();
    fs::write(home.journals().join("torn.jsonl"), "{\"boot_id\":\"x").unwrap();
    assert!(home.cleanup().is_clean());
    assert_eq!(home.files(), 0);

    fs::write(home.journals().join("other.jsonl"), "this is not a journal\n").unwrap();
    let journal = home.create("newer");
    home.abandon(journal, |_| {});
    let newer = home.journals().join("newer.jsonl");
    let text = fs::read_to_string(&newer).unwrap();
    fs::write(&newer, text + "{\"number\":1,\"undo\":{\"something-new\":{}}}\n").unwrap();
    let report = home.cleanup();
    assert_eq!((report.failed.len(), home.files()), (2, 2), "{report:?}");
    assert!(report.failed[0].contains("line 2"), "{report:?}");
}

#[test]
fn a_process_id_that_was_reused_is_not_ended() {
    let home = Home::new();
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let now = process::process_id(child.id() as i32).unwrap();
    let journal = home.create("r1");
    let earlier = ProcessId { start_ticks: now.start_ticks - 1, ..now };
    journal.before(Undo::EndProcess { process: earlier, what: "agent".into(), token: String::new() }).unwrap();
    home.abandon(journal, |_| {});
    assert_eq!(home.cleanup(), CleanupReport::default());
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn journals_of_other_machines_and_containers_are_left_to_them() {
    let home = Home::new();
    let (path, undo) = home.setting("a");
    for (run, other) in [("m", true), ("c", false)] {
        let journal = home.create(run);
        journal.before(undo.clone()).unwrap();
        home.abandon(journal, |h| if other { h.machine = "elsewhere".into() } else { h.pid_namespace += 1 });
    }
    let report = home.cleanup();
    assert_eq!((report.failed.len(), report.undone.len(), home.files()), (2, 0, 2), "{report:?}");
    assert_eq!(content(&path), "2");
}

#[test]
fn two_journals_at_once_and_no_run_id_twice() {
    let home = Home::new();
    let (one, two) = (home.create("r1"), home.create("r2"));
    let (a, undo_a) = home.setting("a");
    let (b, undo_b) = home.setting("b");
    one.before(undo_a).unwrap();
    two.before(undo_b).unwrap();
    assert!(matches!(Journal::create_in(&home.journals(), "r1"), Err(JournalError::Exists { .. })));
    for bad in ["", "../x", ".hidden", "a b", "a/b"] {
        assert!(matches!(Journal::create_in(&home.journals(), bad), Err(JournalError::BadRunId(_))), "{bad:?}");
    }
    home.abandon(two, |_| {});
    let report = home.cleanup();
    assert_eq!((report.undone.len(), report.alive.len()), (1, 1));
    assert_eq!((content(&a), content(&b)), ("2".into(), "1".into()));
    one.undo_all(&mut |_| {}).unwrap();
    one.finish().unwrap();
    assert_eq!((content(&a), home.files()), ("1".into(), 0));
}

#[test]
fn two_cleanups_at_once_undo_each_thing_once() {
    let home = Home::new();
    for run in 0..20 {
        let journal = home.create(&format!("r{run}"));
        let (_, undo) = home.setting(&format!("s{run}"));
        journal.before(undo).unwrap();
        home.abandon(journal, |_| {});
    }
    let dir = home.journals();
    let undone: usize = std::thread::scope(|scope| {
        let both: Vec<_> = (0..2).map(|_| scope.spawn(|| cleanup_in(&dir, &mut |_| {}).unwrap())).collect();
        both.into_iter().map(|t| t.join().unwrap()).map(|r| r.undone.len()).sum()
    });
    assert_eq!((undone, home.files()), (20, 0));
}

#[test]
fn journals_in_a_directory_writable_by_others_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let journal = home.create("r1");
    assert_eq!(fs::metadata(home.journals()).unwrap().permissions().mode() & 0o777, 0o700);
    drop(journal);
    fs::set_permissions(home.journals(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(cleanup_in(&home.journals(), &mut |_| {}).is_err());
}

/// Process that owns the journal in the test [`a_killed_owner_is_cleaned_up_after`], which starts this process and
/// kills it. Without the environment variable that the test sets, the function does nothing.
#[test]
fn owner_to_be_killed() {
    let Some(dir) = std::env::var_os("TB_TEST_OWNER_DIR").map(PathBuf::from) else { return };
    let journal = Journal::create_in(&dir.join("journal"), "killed").unwrap();
    let path = dir.join("setting");
    let undo =
        Undo::RestoreSetting { path: path.to_str().unwrap().into(), before: "1".into(), set: "2".into(), netns: None };
    journal.before(undo).unwrap();
    fs::write(&path, "2").unwrap();
    fs::write(dir.join("ready"), "").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn a_killed_owner_is_cleaned_up_after() {
    let home = Home::new();
    fs::write(home.dir.path().join("setting"), "1").unwrap();
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "journal::tests::owner_to_be_killed"])
        .env("TB_TEST_OWNER_DIR", home.dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !home.dir.path().join("ready").exists() {
        assert!(owner.try_wait().unwrap().is_none(), "the owner ended early");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(home.cleanup().alive.len(), 1);
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(home.cleanup().undone.len(), 1);
    assert_eq!((content(&home.dir.path().join("setting")), home.files()), ("1".into(), 0));
}
