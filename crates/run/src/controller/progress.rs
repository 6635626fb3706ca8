//! What a run tells while it goes on.

use tailbound_model::{Nanos, Warning};

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ProgressEvent<'a> {
    /// The run begins.
    Began {
        /// Number of trials.
        trials: usize,
        /// Estimated time of measuring.
        estimate: Nanos,
    },
    /// A lab is being built.
    Lab {
        /// For people.
        what: &'a str,
    },
    /// A trial begins.
    Trial {
        /// Place in the order, from 0.
        number: usize,
        /// Its levels, for people.
        what: &'a str,
        /// How long it should take.
        estimate: Nanos,
    },
    /// A trial ended.
    TrialDone {
        /// Place in the order, from 0.
        number: usize,
        /// Its id, under which its samples are stored by now.
        trial: usize,
        /// Slots answered.
        answered: u64,
        /// Slots scheduled.
        scheduled: u64,
    },
    /// A warning was raised.
    Warned(&'a Warning),
}

/// Hears of progress. It runs on the controller's thread, never on a measured one.
pub trait Progress {
    /// Something happened.
    fn event(&mut self, event: ProgressEvent<'_>);
}

/// Silence.
impl Progress for () {
    fn event(&mut self, _: ProgressEvent<'_>) {}
}
