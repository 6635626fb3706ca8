//! The controller: builds labs, starts agents, runs trials in order, writes the record.
//!
//! One thread, asynchronous; pinned away from the measured CPUs where there are others.

mod agent;
mod barrier;
mod collect;
mod discovery;
mod dry_run;
mod error;
mod fit;
mod flow;
mod guests;
mod knobs;
mod lab;
mod length;
mod loads;
mod measure;
mod progress;
mod proof;
mod remote;
mod run;
mod stop;
mod throttle;
mod tool;
mod trial;

use crate::store::store_not_sent;
pub(crate) use knobs::reasons;

/// Stop-and-wait by duration is ready for as many slots as this allows: no driver answers faster.
pub(crate) const FASTEST_ROUND_TRIP_NS: i64 = 2_000;

pub use dry_run::dry_run;
pub use error::RunError;
pub use fit::{check_drivers, driver_limit, not_fit};
pub use progress::{Progress, ProgressEvent};
pub use remote::DriverFiles;
pub use run::{Finished, RunOptions, run};
