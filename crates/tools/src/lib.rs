//! Other benchmark programs as data: a YAML file says how each end is run, and where its figures are in what it prints.
//!
//! Nothing here runs a program. [`Tool`] is read from text or found by name; [`Tool::command`] fills in a trial's
//! values; [`Tool::figures`] takes figures out of an output, each in the unit of its [`ToolMetric`].

mod command;
mod error;
mod format;
mod output;
mod shipped;

pub use command::{Values, WhatIsMissing};
pub use error::ToolError;
pub use format::{Evidence, FigureSource, Measures, OutputOf, Receives, StopBy, Tool, ToolEnd};
pub use output::{figures, first};
pub use shipped::{find, names, shipped};

/// JSON Schema of a tool file.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Tool)
}
