//! Errors of making, reading and removing labs (the places and the path of a trial).

use std::io;
use tailbound_host::JournalError;
use tailbound_model::Problem;

/// Returns the [`Problem`] for a lab that cannot be built, found before anything was made.
pub(crate) fn lack(what: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem::new("lab_not_possible", what, remedy)
}

/// The reason why a lab could not be built, read or removed. `Display` writes [`LabError::problem`] on one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// Error: the machine lacks something that the lab needs, or the study cannot work.
    Lacks(Vec<Problem>),
    /// Error: one step of making the lab failed. All earlier steps were undone.
    Step {
        /// The failed step of making the lab, as `--dry-run` prints it.
        step: String,
        /// The error that the kernel returned for the failed step.
        reason: io::Error,
        /// What the user can do so that the step does not fail.
        remedy: String,
    },
    /// Error: a setting of an interface, read back after it was made, differs from the request.
    NotAsAsked {
        /// Network namespace that has the wrong setting: `ping`, `pong` or `bridge`.
        place: String,
        /// Name of the network interface that has the wrong setting.
        interface: String,
        /// Name of the interface's wrong setting, for example `the MTU`.
        what: String,
        /// Requested value of the interface's setting.
        asked: String,
        /// Value of the interface's setting that was read back.
        found: String,
    },
    /// Error: an action such as reading the interfaces of a lab failed.
    Read {
        /// The attempted action, for example `reading the interfaces back`.
        what: String,
        /// Name of the end or network namespace in which the action failed.
        place: String,
        /// The error that the kernel returned for the attempted action.
        reason: io::Error,
    },
    /// Error: processes are still in a network namespace of the lab.
    StillHeld {
        /// Network namespace that still has processes: `ping`, `pong` or `bridge`.
        place: String,
        /// Process ids and names of the processes in the namespace.
        processes: String,
    },
    /// Error: another program has changed what the lab would restore; the text is a sentence for the user.
    LeftAlone(String),
    /// Error: the journal could not be written, so nothing was changed.
    Journal(#[from] JournalError),
}

impl LabError {
    /// Returns what is wrong with the lab, and what the user can do.
    pub fn problem(&self) -> Problem {
        match self {
            LabError::Lacks(problems) => {
                const CONTEXT: &str = "the lab cannot be built";
                match problems.as_slice() {
                    [one] => one.clone().context(CONTEXT),
                    many => {
                        let texts: Vec<String> = many.iter().map(Problem::to_string).collect();
                        lack(format!("{CONTEXT}: {}", texts.join(". ")), "")
                    }
                }
            }
            LabError::Step { step, reason, remedy } => {
                Problem::new("lab_step_failed", format!("the step `{step}` failed: {reason}"), remedy)
            }
            LabError::NotAsAsked { place, interface, what, asked, found } => Problem::new(
                "lab_setting_differs",
                format!("{interface} ({place}): {what} is {found}, but {asked} was requested"),
                "this is a fault of the kernel, or another program changes interfaces meanwhile: look for a network \
                 manager that configures new interfaces",
            ),
            LabError::Read { what, place, reason } => {
                Problem::new("lab_not_read", format!("{what} ({place}): {reason}"), "")
            }
            LabError::StillHeld { place, processes } => Problem::new(
                "lab_in_use",
                format!("the network namespace of {place} is still used by {processes}"),
                "end these processes, or run `tailbound lab cleanup`",
            ),
            LabError::LeftAlone(why) => Problem::new(
                "lab_changed",
                why.clone(),
                "end the other program, and set the interface up again; the trials were measured while something else was set",
            ),
            LabError::Journal(error) => error.problem(),
        }
    }

    pub(crate) fn read(what: impl Into<String>, place: impl Into<String>, reason: io::Error) -> LabError {
        LabError::Read { what: what.into(), place: place.into(), reason }
    }
}

tailbound_model::display_as_problem!(LabError);
