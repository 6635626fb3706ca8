//! Outcomes: rows of samples, states of trials, figures of other programs.

mod row;
mod stages;
mod tool;
mod trial_status;

pub use row::*;
pub use stages::*;
pub use tool::*;
pub use trial_status::TrialStatus;
