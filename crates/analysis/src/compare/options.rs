//! Options and errors of comparisons of two records, or of two levels of a factor inside one record.
//!
//! [`compare_records`] and [`compare_levels`] find pairs of conditions (`pairs`), refuse pairs whose figures have
//! different definitions (`definitions`), read statistics trial by trial (`trials`), and have the table judged by
//! `tailbound_stats::compare` (`table`). The result is a [`Comparison`], the document of `schema/compare.json`; every
//! other form of the comparison is made from this document alone.

use tailbound_model::{Metric, Problem};
use tailbound_record::RecordError;

/// Options of a comparison: the metrics, and the margin within which two sides count as equal.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// Metrics of messages that are compared, all in one table. For flows, the throughput is compared as well; a flow
    /// has metrics of messages only if it asks for answers.
    pub metrics: Vec<Metric>,
    /// Margin within which two sides count as equal: their ratio lies between `1 / (1 + margin)` and `1 + margin`. A
    /// margin of 5 % is 0.05.
    pub margin: Option<f64>,
}

/// Reason why two records or levels could not be compared. `Display` writes [`CompareError::problem`] on one line.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Error: the figures of the sides have different definitions, or a condition, factor or level does not exist.
    Refused(Problem),
    /// Error of a comparison: a record cannot be read.
    Record(#[from] RecordError),
}

impl CompareError {
    /// Returns why the records or levels cannot be compared, and what the user can do.
    pub fn problem(&self) -> Problem {
        match self {
            CompareError::Refused(problem) => problem.clone(),
            CompareError::Record(error) => error.problem(),
        }
    }

    pub(crate) fn refused(what: impl Into<String>, remedy: impl Into<String>) -> CompareError {
        CompareError::Refused(Problem::new("not_comparable", what, remedy))
    }
}

tailbound_model::display_as_problem!(CompareError);
