//! What can be wrong with a tool file or an output.

/// A tool file or an output that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The file is no tool file.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// What is wrong, with line and column where they are known.
        reason: String,
    },
    /// The output does not hold what the file says.
    #[error("the output of {tool} is not as its file says: {expected} was expected, {came}")]
    Output {
        /// Name of the tool.
        tool: String,
        /// What was looked for.
        expected: String,
        /// What was there, with the line.
        came: String,
    },
    /// No tool of this name.
    #[error("there is no tool `{name}`{}; there are {known}", hint.as_ref().map(|h| format!(" (did you mean `{h}`?)")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest there is.
        hint: Option<String>,
        /// All there are.
        known: String,
    },
}
