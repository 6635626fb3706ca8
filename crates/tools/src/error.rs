//! Errors of tool files and of the outputs of tools.

use tailbound_model::Problem;

/// The reason why a tool file or the output of a tool cannot be used. `Display` writes [`ToolError::problem`] on one
/// line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// Error: a file is not a valid tool file.
    File {
        /// Name of the invalid tool file.
        file: String,
        /// Reason why the tool file is not valid, with line and column if they are known.
        reason: String,
    },
    /// Error: the output of the tool does not contain what the tool file describes.
    Output {
        /// Name of the tool whose output was read.
        tool: String,
        /// The text that was expected in the tool's output.
        expected: String,
        /// The text that was found in the tool's output, with its line.
        came: String,
    },
    /// Error: no tool has the name that the study gives.
    Unknown {
        /// Name of the unknown tool in the study.
        name: String,
        /// Name of the known tool that is most similar to the unknown name.
        hint: Option<String>,
        /// Names of all known tools, for the error message.
        known: String,
    },
}

impl ToolError {
    /// Returns what is wrong with the tool file or the output, and what the user can do.
    pub fn problem(&self) -> Problem {
        match self {
            ToolError::File { file, reason } => Problem::new("tool_file", format!("{file}: {reason}"), ""),
            ToolError::Output { tool, expected, came } => Problem::new(
                "tool_output",
                format!("the output of {tool} does not match its tool file: {expected} was expected, but {came}"),
                "",
            ),
            ToolError::Unknown { name, hint, known } => {
                let hint = hint.as_ref().map_or_else(String::new, |h| format!(" (did you mean `{h}`?)"));
                let what = format!("there is no tool `{name}`{hint}");
                Problem::new("unknown_tool", what, format!("there are {known}"))
            }
        }
    }
}

tailbound_model::display_as_problem!(ToolError);
