//! What the loop needs from the measuring side.

use crate::candidate::Candidate;
use crate::pair::Pair;
use crate::reboot::Reboot;
use crate::receipt::{CauseLine, Tried};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Part of the loop to which pairs belong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Pairs of equal trials, without a change.
    Baseline,
    /// A candidate against the settings that are kept so far.
    Screen(String),
    /// The kept settings without one of them, against all of them.
    Drop(String),
    /// The original settings against all kept ones.
    Confirm,
}

impl Stage {
    /// Name of the stage, usable as the name of a directory.
    pub fn name(&self) -> String {
        match self {
            Stage::Baseline => "baseline".to_owned(),
            Stage::Screen(key) => format!("screen-{key}"),
            Stage::Drop(key) => format!("drop-{key}"),
            Stage::Confirm => "confirm".to_owned(),
        }
    }
}

/// The two sides of a pair, as settings beyond the study's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arms {
    /// Settings of the trial without the change.
    pub without: Vec<String>,
    /// Settings of the trial with the change.
    pub with: Vec<String>,
}

/// Why pairs were not measured.
#[derive(Debug)]
pub enum PairError<E> {
    /// The settings of one side cannot be used on this machine, or a trial with them is invalid: the reason.
    NotPossible(String),
    /// The measurement failed, or was interrupted.
    Failed(E),
}

/// Measures pairs of trials.
pub trait Bench {
    /// Reason why a measurement failed.
    type Error;

    /// Measures one pair for each entry of `with_first`; if the entry is true, the trial with the change comes first. `first` is
    /// the number of pairs that this stage has already.
    ///
    /// # Errors
    /// The settings are not possible, or the measurement fails.
    fn pairs(
        &mut self,
        stage: &Stage,
        first: usize,
        arms: &Arms,
        with_first: &[bool],
    ) -> Result<Vec<Pair>, PairError<Self::Error>>;

    /// Candidates that answer a cause that was seen or counted in the baseline, the most promising first.
    ///
    /// # Errors
    /// The record of the baseline cannot be read.
    fn candidates(&mut self) -> Result<Vec<Candidate>, Self::Error>;

    /// Causes in the record of a stage, in the trials with the change.
    ///
    /// # Errors
    /// The record cannot be read.
    fn causes(&mut self, stage: &Stage) -> Result<Vec<CauseLine>, Self::Error>;

    /// Is called with the result of each candidate.
    fn tried(&mut self, _tried: &Tried) {}

    /// Reboots of the host between the pairs.
    fn reboots(&self) -> Vec<Reboot> {
        Vec::new()
    }

    /// Time that the loop has taken, over all interruptions.
    fn elapsed(&self) -> Duration;
}
