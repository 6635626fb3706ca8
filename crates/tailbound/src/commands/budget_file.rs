//! Loads a budget file for the commands that take one.

use crate::failure::Failure;
use crate::output::{colour_of_errors, width};
use std::path::Path;
use tailbound_model::Budget;

/// Loads a budget file.
///
/// # Errors
/// The file cannot be read, or is not a budget.
pub fn load(file: &Path) -> Result<Budget, Failure> {
    tailbound_study::load_budget(file).map_err(|e| Failure::bad_input(e.render(colour_of_errors(), width())))
}
