//! Clocks of the hosts of a run: what a study demands of the time service of a clock, and what was read of the clock and of
//! the service during a trial.

mod history;
mod spec;

pub use history::*;
pub use spec::*;
