//! Settings of this host that a controller on another host changes through the agent. The changes are in the journal of
//! this host, and are restored at the latest when the agent ends.

use crate::host_problems::{changed_again, undo_failures};
use tailbound_host::journal::{self, Journal};
use tailbound_host::knob::Knobs;
use tailbound_model::{Answer, Ask, KnobSpec, Problem, RestoreAnswer};

/// Settings of this host that this agent has changed.
#[derive(Default)]
pub(super) struct Settings {
    changed: Option<(Knobs, Journal)>,
}

impl Settings {
    /// Answers a question of the controller about settings of this host. Returns `None` if the question is about
    /// something else.
    pub fn answer(&mut self, ask: &Ask) -> Option<Answer> {
        Some(match ask {
            Ask::Set { run, settings } => match self.set(run, settings) {
                Ok(()) => Answer::Set(self.changed.iter().flat_map(|(knobs, _)| knobs.settings()).collect()),
                Err(problem) => Answer::Failed(problem, None),
            },
            Ask::Changed => Answer::Changed(self.changed.iter().flat_map(|(knobs, _)| knobs.verify()).collect()),
            Ask::Restore => Answer::Restore(self.restore_settings()),
            _ => return None,
        })
    }

    /// Changes all requested settings of this host. If one change fails, restores the settings changed so far.
    ///
    /// # Errors
    /// A setting cannot be changed.
    fn set(&mut self, run: &str, settings: &[KnobSpec]) -> Result<(), Problem> {
        self.restore_settings();
        // Without this, values that a killed run has left would be taken for the original values.
        let _ = journal::cleanup(&mut |_| ());
        let journal = Journal::create(run)?;
        let (knobs, journal) = self.changed.insert((Knobs::default(), journal));
        let of_host = settings.iter().filter(|s| !s.is_of_network());
        let mut all = of_host.chain(settings.iter().filter(|s| s.is_of_network()));
        let made = all.try_for_each(|s| knobs.set(s, &[], journal).map_err(Problem::from));
        // All settings are compared at the end: one may have changed another.
        let made =
            made.and_then(|()| knobs.verify().into_iter().next().map_or(Ok(()), |text| Err(changed_again(text))));
        made.map_err(|mut problem| {
            let left = self.restore_settings().failed;
            if !left.is_empty() {
                problem.what += &format!("; and a setting could NOT be restored: {}", left.join("; "));
            }
            problem
        })
    }

    /// Restores all settings of this host that this agent has changed.
    pub fn restore_settings(&mut self) -> RestoreAnswer {
        let Some((knobs, journal)) = self.changed.take() else { return RestoreAnswer::default() };
        let back = knobs.restore(&journal);
        let mut failed: Vec<String> = back.failed.iter().flat_map(undo_failures).collect();
        if failed.is_empty() {
            failed.extend(journal.finish().err().map(|e| e.to_string()));
        }
        RestoreAnswer { settings: back.settings, left_alone: back.left_alone, failed }
    }
}
