//! Comparisons: two records, or two levels of a factor inside one record.
//!
//! [`compare_records`] and [`compare_levels`] find pairs of conditions (`pairs`), refuse pairs whose figures have different
//! definitions (`definitions`), read statistics trial by trial (`trials`), and put the verdicts of
//! `tailbound_stats::compare` into the document (`table`).

mod changed;
mod definitions;
mod figures;
mod options;
mod pairs;
mod statistics;
mod table;
mod trials;

pub use figures::{NoFigure, TrialFigures, figures_of_trial};
pub use options::{CompareError, CompareOptions};
pub(crate) use pairs::{apart, belongs_to};
pub use pairs::{compare_levels, compare_records};
pub(crate) use trials::mean_of_trial;
