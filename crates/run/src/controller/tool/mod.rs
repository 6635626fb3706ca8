//! Trials with a tool in place of a driver: which conditions the tool cannot run, how its ends are run, and how the
//! figures that it prints are read.

mod fit;
mod run;

pub(super) use fit::{describe, impossible, lack, leave_out_missing};
pub(super) use run::run;
