//! Reads study files and budget files: makes a plan from the YAML text of a study.
//!
//! Input: a study file (or its text), `--set` arguments, and facts of the caller about the machine and its drivers.
//! Output: a [`tailbound_model::Plan`] with every condition and the order of all trials, or one [`StudyError`] with
//! file, line, column, reason and the most similar valid word. The crate reads only the study and the configuration
//! files that the study names; it does not depend on a host, a driver or a record.
//!
//! Steps:
//! 1. `tree`: YAML becomes a tree whose keys and values have positions; every scalar keeps its text.
//! 2. `factors`, `settings`: factors are taken out of the tree and `--set` arguments are put in, both by `path`.
//! 3. `read`, `format`: the tree of each combination of levels is read as the types of the format.
//! 4. `resolve`: fills in defaults and checks quantities; `rules`: finds values that do not fit together.
//! 5. `order`: puts the trials into their seeded random order.

mod budget;
mod budget_schema;
mod conditions;
mod declared;
#[cfg(test)]
mod earlier_plans;
mod embedded;
mod error;
mod estimate;
mod factors;
mod format;
mod levels;
mod load;
mod miss_window;
mod options;
mod order;
mod pairs;
mod path;
mod published;
mod published_table;
mod read;
mod recording_check;
mod report;
mod resolve;
mod rules;
mod schema;
mod settings;
mod shape;
mod source;
mod tree;
mod until;

pub use budget::{load_budget, load_budget_str};
pub use budget_schema::budget_schema;
pub use declared::{DeclaredLimit, Usable, declared_limit};
pub use embedded::embedded;
pub use error::{StudyError, StudyReport};
pub use estimate::{estimate, trial_length};
pub use load::{check_limits, load, load_str, load_str_with, load_with};
pub use options::{Limits, Options};
pub use pairs::pairs;
pub use resolve::BUILT_APART;
pub use schema::schema;
pub use tailbound_model::nearest;
pub use until::parse_until;
