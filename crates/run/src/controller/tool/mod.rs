//! Another program in place of a driver: what of a condition it cannot do, how its ends are run, and its figures.

mod fit;
mod run;

pub(super) use fit::{describe, impossible, lack, takes};
pub(super) use run::run;
