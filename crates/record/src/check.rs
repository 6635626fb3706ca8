//! Whether the samples of a trial are there, are its own, and follow each other: from what the segments' ends tell.
//!
//! Nothing but the ends of files is read. Within a row group the sequence numbers are looked at when they are read anyway,
//! by [`Record::scan`].

use crate::columns::{SegmentEnd, segment_end};
use crate::{Record, RecordError};
use std::path::Path;

impl Record {
    /// Looks at every segment of a trial that must have at least `planned` slots.
    ///
    /// # Errors
    /// What is wrong with the first segment that is not as it has to be.
    pub fn check(&self, trial: usize, planned: u64) -> Result<(), RecordError> {
        let slots = self.segments(trial, "ping");
        if slots.is_empty() {
            let path = self.dir().join("samples").join(trial.to_string()).join("ping-0.parquet");
            return Err(RecordError::SamplesMissing { path, reason: "the slots of the trial are not there".into() });
        }
        let mut next = 0;
        for path in &slots {
            let end = segment_end(path)?;
            own(&end, trial, path)?;
            for (range, rows) in end.groups {
                if let Some((low, high)) = range {
                    follows(next, low, path)?;
                    follows(next.saturating_add(rows - 1), high, path)?;
                }
                next = next.saturating_add(rows);
            }
        }
        if next < planned {
            let reason = format!("the trial ends with {next} slots of {planned}");
            let path = slots[slots.len() - 1].clone();
            return Err(RecordError::SamplesMissing { path, reason });
        }
        for path in self.segments(trial, "pong") {
            own(&segment_end(&path)?, trial, &path)?;
        }
        Ok(())
    }

    /// Whether a trial has a segment of slots at all.
    pub fn has_slots(&self, trial: usize) -> bool {
        !self.segments(trial, "ping").is_empty()
    }
}

fn own(end: &SegmentEnd, trial: usize, path: &Path) -> Result<(), RecordError> {
    let Some((low, high)) = end.trials else { return Ok(()) };
    let is_own = |found: u32| found as usize == trial;
    match [low, high].into_iter().find(|t| !is_own(*t)) {
        Some(found) => Err(RecordError::SamplesForeign { path: path.to_owned(), trial, found }),
        None => Ok(()),
    }
}

/// Looks whether the sequence number of a slot is the one that is due.
pub(crate) fn follows(due: u64, found: u64, path: &Path) -> Result<(), RecordError> {
    if found == due {
        return Ok(());
    }
    Err(RecordError::SamplesNotConsecutive { path: path.to_owned(), due, found })
}
