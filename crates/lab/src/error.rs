//! What can be wrong: what, where, and what to do about it.

use std::fmt;
use std::io;
use tailbound_host::JournalError;

/// Something missing, found before anything was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What is missing and where.
    pub what: String,
    /// What to do about it.
    pub mend: String,
}

impl Lack {
    pub(crate) fn new(what: impl Into<String>, mend: impl Into<String>) -> Lack {
        Lack { what: what.into(), mend: mend.into() }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.mend)
    }
}

/// A lab that could not be built, read or taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The machine lacks something that the lab needs.
    #[error("the lab cannot be built: {}", join(.0))]
    Lacks(Vec<Lack>),
    /// One step failed; the steps before it were undone.
    #[error("could not {step}: {reason}; {mend}")]
    Step {
        /// The step as `--dry-run` prints it.
        step: String,
        /// What the system said.
        reason: io::Error,
        /// What to do.
        mend: String,
    },
    /// A setting read back is not the one that was asked for.
    #[error(
        "{interface} ({place}): {what} is {found} where {asked} was asked; this is a fault of the kernel or of somebody \
             who changes interfaces meanwhile: look for a network manager that acts on new interfaces"
    )]
    NotAsAsked {
        /// `ping`, `pong` or `bridge`.
        place: String,
        /// Interface.
        interface: String,
        /// What was read.
        what: String,
        /// Value asked for.
        asked: String,
        /// Value read.
        found: String,
    },
    /// Something could not be read or tried.
    #[error("{what} ({place}): {reason}")]
    Read {
        /// What was tried.
        what: String,
        /// Which end or namespace.
        place: String,
        /// What the system said.
        reason: io::Error,
    },
    /// A namespace of the lab outlives it.
    #[error("the network namespace of {place} is still held by {processes}; end them, or run `tailbound lab cleanup`")]
    StillHeld {
        /// `ping`, `pong` or `bridge`.
        place: String,
        /// Process ids and names.
        processes: String,
    },
    /// The journal could not be written: nothing was done that is not in it.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl LabError {
    pub(crate) fn read(what: impl Into<String>, place: impl Into<String>, reason: io::Error) -> LabError {
        LabError::Read { what: what.into(), place: place.into(), reason }
    }
}

fn join(lacks: &[Lack]) -> String {
    lacks.iter().map(Lack::to_string).collect::<Vec<_>>().join(". ")
}
