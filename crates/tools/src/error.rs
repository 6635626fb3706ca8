//! Errors of tool files and of the outputs of tools.

/// The reason why a tool file or the output of a tool cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// Error: a file is not a valid tool file.
    #[error("{file}: {reason}")]
    File {
        /// Name of the invalid tool file.
        file: String,
        /// Reason why the tool file is not valid, with line and column if they are known.
        reason: String,
    },
    /// Error: the output of the tool does not contain what the tool file describes.
    #[error("the output of {tool} differs from its tool file: {expected} was expected, but {came}")]
    Output {
        /// Name of the tool whose output was read.
        tool: String,
        /// The text that was expected in the tool's output.
        expected: String,
        /// The text that was found in the tool's output, with its line.
        came: String,
    },
    /// Error: no tool has the name that the study gives.
    #[error("there is no tool `{name}`{}; there are {known}", hint.as_ref().map(|h| format!(" (did you mean `{h}`?)")).unwrap_or_default())]
    Unknown {
        /// Name of the unknown tool in the study.
        name: String,
        /// Name of the known tool that is most similar to the unknown name.
        hint: Option<String>,
        /// Names of all known tools, for the error message.
        known: String,
    },
}
