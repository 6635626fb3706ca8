//! Error of a pass over the samples of a condition.
//!
//! The error names the trial whose samples could not be read, so that this trial can be left out.

use tailbound_record::RecordError;

/// Error: the reason why a pass over the samples ended early.
#[derive(Debug)]
pub(crate) struct PassError {
    /// Id of the trial whose samples caused the error; `None` if no single trial caused it.
    pub trial: Option<usize>,
    pub error: RecordError,
}
