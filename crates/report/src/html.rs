//! The page (stub).
use crate::document::Report;
/// The page.
pub fn render_html(_report: &Report) -> String {
    String::new()
}
