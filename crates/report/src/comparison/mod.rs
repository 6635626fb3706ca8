//! Formats a comparison as sentences, as a table, as an HTML page and as a figure. Every form is made only from the
//! comparison document.

mod figure;
mod html;
mod markdown;
mod terminal;
mod words;

pub use html::render_comparison_html;
pub use markdown::render_comparison_markdown;
pub use terminal::render_comparison_terminal;

use crate::json;
use tailbound_document::Comparison;

/// Adds sentences about the results of a comparison to the document of the comparison.
pub(crate) fn with_findings(comparison: Comparison) -> Comparison {
    Comparison { findings: words::findings(&comparison), ..comparison }
}

/// Formats a comparison as JSON text.
pub fn render_comparison_json(comparison: &Comparison) -> String {
    json::document(comparison)
}

/// The JSON Schema of the comparison document, as committed in `schema/compare.json`.
pub fn comparison_schema() -> String {
    json::schema_of::<Comparison>("compare")
}
