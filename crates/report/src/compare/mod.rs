//! Comparisons: two records, or two levels of a factor inside one.
//!
//! [`compare_records`] and [`compare_levels`] find pairs of conditions (`pairs`), refuse what is not the same thing
//! (`definitions`), read statistics trial by trial (`trials`), have the table judged by `tailbound_stats::compare`
//! (`table`), and tell it in words. The result is a [`Comparison`], the document of `schema/compare.json`; every other
//! form is made from it alone.

mod changed;
mod definitions;
mod document;
mod figure;
mod html;
mod markdown;
mod pairs;
mod statistics;
mod table;
mod terminal;
mod trials;
mod words;

pub use document::*;
pub use html::render_comparison_html;
pub use markdown::render_comparison_markdown;
pub(crate) use pairs::apart;
pub use pairs::{compare_levels, compare_records};
pub use terminal::render_comparison_terminal;
pub(crate) use trials::mean_of_trial;

use tailbound_model::Metric;
use tailbound_record::RecordError;

/// What is compared, and how closely.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// Metrics of messages; all of them are one table. Flows have throughput as well, and metrics where they ask for
    /// answers.
    pub metrics: Vec<Metric>,
    /// Sides whose ratio lies within `1 / (1 + margin)` to `1 + margin` are equal; 0.05 for 5 %.
    pub margin: Option<f64>,
}

/// Why there is no comparison; the user's to mend.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The sides are not the same thing, or there is no such condition.
    #[error("{0}")]
    Refused(String),
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl CompareError {
    pub(crate) fn refused(text: impl Into<String>) -> CompareError {
        CompareError::Refused(text.into())
    }
}

/// The JSON document as text.
pub fn render_comparison_json(comparison: &Comparison) -> String {
    crate::json::document(comparison)
}

/// The JSON Schema of the document, as committed in `schema/compare.json`.
pub fn comparison_schema() -> String {
    crate::json::schema_of::<Comparison>()
}
