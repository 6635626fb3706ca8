//! Study files: from YAML to a plan.
//!
//! In: a study file (or its text), `--set` arguments, and what the caller knows of the machine and of its drivers. Out:
//! a [`tailbound_model::Plan`] with every condition and the order of all trials, or one [`StudyError`] that names file,
//! line, column, reason and the nearest valid word. The crate reads the study and the configuration files it names,
//! and nothing else: it knows no host, no driver and no record.
//!
//! The way of a study:
//! 1. `tree`: YAML becomes a tree whose keys and values know their places; every scalar keeps its text.
//! 2. `factors`, `settings`: factors are taken out, `--set` arguments put in, both by `path`.
//! 3. `read`, `format`: the tree of each combination of levels is read as the types of the format.
//! 4. `resolve`: defaults and quantities; `rules`: what does not go together.
//! 5. `order`: trials in their seeded random order.

mod budget;
mod budget_schema;
mod conditions;
mod embedded;
mod error;
mod estimate;
mod factors;
mod format;
mod levels;
mod load;
mod order;
mod path;
mod read;
mod resolve;
mod rules;
mod schema;
mod settings;
mod shape;
mod source;
mod tree;

pub use budget::{load_budget, load_budget_str};
pub use budget_schema::budget_schema;
pub use embedded::embedded;
pub use error::{StudyError, StudyReport, nearest};
pub use estimate::{estimate, trial_length};
pub use load::{Limits, Options, check_limits, load, load_str, load_str_with, load_with};
pub use schema::schema;
