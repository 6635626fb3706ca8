//! Other benchmark programs as data: a YAML file describes how to run each end, and where the figures are in its
//! output.
//!
//! Nothing in this crate runs a program. [`Tool`] is read from text or found by name; [`Tool::command`] fills in the
//! values of a trial; [`Tool::figures`] reads the figures from an output, each in the unit of its [`ToolMetric`].

mod command;
mod difference;
mod error;
mod format;
mod output;
mod shipped;

pub use command::{Values, WhatIsMissing, seconds};
pub use error::ToolError;
pub use format::{Evidence, FigureSource, Measures, OutputOf, Receives, StopBy, Tool, ToolEnd};
pub use output::{figures, first};
pub use shipped::{find, names, shipped};

/// Makes the JSON Schema of a tool file.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Tool)
}
