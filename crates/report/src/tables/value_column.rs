//! Table columns of values, for the terminal, for Markdown and for the HTML page.

/// A table column of values: its head, the unit of the head, and for each condition a value and the text of a second
/// line.
pub(crate) struct ValueColumn {
    pub head: String,
    pub unit: &'static str,
    pub cells: Vec<(String, String)>,
}
