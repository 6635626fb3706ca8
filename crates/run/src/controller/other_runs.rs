//! Finds other runs of Tailbound that are active on this host, because they use the CPUs and the network that are
//! measured.
//!
//! Input: the journals of this user's runs, which every run holds from its begin to its end. A run of another user, or
//! of another container, is not seen, nor is a run that begins and ends while a single trial runs.

use std::collections::BTreeSet;
use tailbound_host::journal::{self, JournalState};
use tailbound_model::{Severity, Warning};

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

    /// Warnings about runs that are active now and were not seen before. `when` completes the sentence about them, for
    /// example `when trial 1 of 9 began`.
    pub fn look(&mut self, when: &str) -> Vec<Warning> {
        // Journals that cannot be read show no other run.
        self.of(journal::list().unwrap_or_default(), when)
    }

    fn of(&mut self, journals: Vec<JournalState>, when: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        // An agent of this run that changes network cards has a journal of its own.
        let of_agents = format!("{}.", self.own);
        let is_other = |j: &JournalState| j.owner_alive && j.run != self.own && !j.run.starts_with(&of_agents);
        for other in journals.into_iter().filter(is_other) {
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
