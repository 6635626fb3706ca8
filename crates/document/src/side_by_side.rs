//! Comparison of other benchmark programs with drivers: which of their figures have the same definition, which have
//! not, and the reasons.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two conditions that differ only in the driver or benchmark program; at least one condition used another benchmark
/// program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideBySide {
    /// Index of the condition that another benchmark program ran.
    pub a: usize,
    /// Index of the condition with which condition `a` is compared.
    pub b: usize,
    /// Name of the tool or driver of each of the two compared conditions.
    pub names: [String; 2],
    /// Figures that have the same definition in both compared conditions.
    pub same: Vec<SameFigure>,
    /// Sentences about figures that are not comparable, each with the reason.
    pub apart: Vec<String>,
}

/// A figure that has the same definition in both compared conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SameFigure {
    /// Measured quantity of the figure with its unit, e.g. `round_trip_ns`.
    pub what: String,
    /// Statistic of the figure: `mean`, `p50` ...
    pub statistic: String,
    /// Value of the figure in the condition with the index `a`.
    pub a: f64,
    /// Value of the figure in the condition with the index `b`.
    pub b: f64,
    /// Ratio of the value of condition `a` to the value of condition `b`.
    pub ratio: f64,
}
