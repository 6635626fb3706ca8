//! Finds other runs of Tailbound that are active on this host, because they use the CPUs and the network that are
//! measured.
//!
//! Input: the journals of this user's runs, which every run holds from its begin to its end. A run of another user, or
//! of another container, is not seen, nor is a run that begins and ends while a single trial runs.

use super::RunError;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tailbound_host::journal::{self, JournalState};
use tailbound_model::{ExitCode, Severity, Warning};

/// The other runs that were seen so far.
pub(super) struct OtherRuns {
    own: String,
    known: BTreeSet<String>,
}

impl OtherRuns {
    /// `own` is the id of this run.
    pub fn new(own: &str) -> OtherRuns {
        OtherRuns { own: own.to_owned(), known: BTreeSet::new() }
    }

    /// The error for a run that begins while another one is active; `None` = no other run is active.
    pub fn refusal(&self) -> Option<RunError> {
        let journals = journal::list().unwrap_or_default();
        let other = journals.into_iter().find(|journal| self.is_other(journal))?;
        let header = other.header?;
        let pid = header.owner.pid;
        let record = record_of(pid).map_or(String::new(), |dir| format!(" and writes {}", dir.display()));
        let text = format!(
            "another run of Tailbound is active on this host: process {pid} runs `{}`{record}; both would use the same \
             CPUs and network",
            header.command
        );
        let remedy =
            "wait until it has ended, or add --allow-concurrent, which is written into the record as a warning";
        Some(RunError::new(ExitCode::MachineNotFit, text, remedy))
    }

    /// Whether the journal belongs to a run that is active in a process which did not start this one.
    fn is_other(&self, journal: &JournalState) -> bool {
        // An agent of this run that changes network cards has a journal of its own.
        let is_own = journal.run == self.own || journal.run.starts_with(&format!("{}.", self.own));
        let is_ours = |pid: i32| own_and_ancestors().any(|ancestor| ancestor == pid);
        journal.owner_alive
            && !is_own
            && !journal.has_lease()
            && !journal.header.as_ref().is_some_and(|header| is_ours(header.owner.pid))
    }

    /// Warnings about runs that are active now and were not seen before. `when` completes the sentence about them, for
    /// example `when trial 1 of 9 began`.
    pub fn look(&mut self, when: &str) -> Vec<Warning> {
        // Journals that cannot be read show no other run.
        self.of(journal::list().unwrap_or_default(), when)
    }

    fn of(&mut self, journals: Vec<JournalState>, when: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let others: Vec<JournalState> = journals.into_iter().filter(|journal| self.is_other(journal)).collect();
        for other in others {
            let command = other.header.map_or(String::new(), |header| format!(", `{}`", header.command));
            let text = format!(
                "another run of Tailbound ({}{command}) was active on this host {when}; it may have used the CPUs and \
                 the network that were measured",
                other.run
            );
            if self.known.insert(other.run) {
                let remedy = "run again when the other run has ended";
                warnings.push(Warning::new("other_run", Severity::Warning, text, remedy));
            }
        }
        warnings
    }
}

/// This process, and the processes that started it.
fn own_and_ancestors() -> impl Iterator<Item = i32> {
    let parent = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse().ok().filter(|parent| *parent > 0)
    };
    std::iter::successors(Some(std::process::id() as i32), parent)
}

/// The record that a run writes: the directory of the events file that its process has open. `None` = not known, for example
/// because the process belongs to another user.
fn record_of(pid: i32) -> Option<PathBuf> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let mut open = files.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    open.find(|path| path.ends_with("events.jsonl"))?.parent().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn journal(run: &str, owner_alive: bool) -> JournalState {
        JournalState {
            run: run.into(),
            path: PathBuf::new(),
            header: None,
            owner_alive,
            busy: false,
            stale_boot: false,
            entries: Vec::new(),
            problem: None,
        }
    }

    #[test]
    fn each_other_active_run_is_named_once() {
        let mut others = OtherRuns::new("own");
        let all = || {
            vec![
                journal("own", true),
                journal("own.cards-ping", true),
                journal("other", true),
                journal("killed", false),
            ]
        };
        let found = others.of(all(), "when trial 1 of 2 began");
        let [warning] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            warning.problem.to_string(),
            "another run of Tailbound (other) was active on this host when trial 1 of 2 began; it may have used the CPUs \
             and the network that were measured; run again when the other run has ended"
        );
        assert_eq!(others.of(all(), "when trial 2 of 2 began"), []);
    }
}
