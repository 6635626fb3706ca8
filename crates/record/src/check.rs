//! Checks that the samples of a trial exist, belong to the trial and are consecutive, according to the footers of the
//! segments (files of samples).
//!
//! Only the footers of segments are read. Within a row group of a segment, [`Record::scan`] checks the sequence numbers
//! when it reads them.

use crate::columns::{SegmentEnd, segment_end};
use crate::{Record, RecordError};
use std::path::Path;

impl Record {
    /// Checks every segment (file of samples) of a trial, and that the trial has at least `planned` slots.
    ///
    /// # Errors
    /// The first problem that was found in a segment.
    pub fn check(&self, trial: usize, planned: u64) -> Result<(), RecordError> {
        let slots = self.segments(trial, "ping");
        if slots.is_empty() {
            let path = self.dir().join("samples").join(trial.to_string()).join("ping-0.parquet");
            return Err(RecordError::SamplesMissing {
                path,
                reason: "the record contains no slots of the trial".into(),
            });
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
            let reason = format!("the record contains only {next} of the {planned} slots of the trial");
            let path = slots[slots.len() - 1].clone();
            return Err(RecordError::SamplesMissing { path, reason });
        }
        for path in self.segments(trial, "pong") {
            own(&segment_end(&path)?, trial, &path)?;
        }
        Ok(())
    }

    /// True if a trial has at least one segment (file of samples) with slots.
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

/// Checks that the sequence number of a slot in a segment (file of samples) is the expected number.
pub(crate) fn follows(due: u64, found: u64, path: &Path) -> Result<(), RecordError> {
    if found == due {
        return Ok(());
    }
    Err(RecordError::SamplesNotConsecutive { path: path.to_owned(), due, found })
}
