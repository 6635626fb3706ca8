//! Formats the checks of a budget: for a terminal, as Markdown, and as JUnit XML. The page has them in a section.

mod junit;
mod words;

pub use junit::render_budget_junit;
pub use words::{render_budget_markdown, render_budget_terminal};
pub(crate) use words::{sorted, summary};
