//! Events that a run reports to its caller as they happen.

use tailbound_model::{Nanos, Warning};

/// An event that a run reports to its caller.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ProgressEvent<'a> {
    /// Event: the run begins.
    Began {
        /// Number of trials in the run.
        trials: usize,
        /// Expected time of all measurements of the run together.
        estimate: Nanos,
    },
    /// Event: the run waits before its first trial.
    Waiting {
        /// What the run waits for, as text.
        what: &'a str,
    },
    /// Event: a lab is being built.
    Lab {
        /// Description of the lab that is being built: its path and host settings as text.
        what: &'a str,
    },
    /// Event: a trial begins.
    Trial {
        /// Position of the trial in the order of trials, from 0.
        number: usize,
        /// Levels of the condition of the trial that begins, as text.
        what: &'a str,
        /// Expected time of the trial that begins.
        estimate: Nanos,
    },
    /// Event: a trial has ended.
    TrialDone {
        /// Position of the trial in the order of trials, from 0.
        number: usize,
        /// Id of the ended trial, whose samples are stored now.
        trial: usize,
        /// Number of slots of the ended trial that were answered.
        answered: u64,
        /// Number of slots of the ended trial that were scheduled.
        scheduled: u64,
    },
    /// Event: the run has raised a new warning.
    Warned(&'a Warning),
}

/// Receives the events of a run, on the thread of the controller, never on a measured thread.
pub trait Progress {
    /// Receives an event of the run: the run calls this function for each event.
    fn event(&mut self, event: ProgressEvent<'_>);
}

/// A receiver of the events of a run that ignores all of them.
impl Progress for () {
    fn event(&mut self, _: ProgressEvent<'_>) {}
}
