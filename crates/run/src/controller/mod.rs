//! The controller: builds labs, starts agents, runs the trials in order and writes the record.
//!
//! The controller is one asynchronous thread. If there are CPUs that are not measured, the controller uses only these.

mod active_lab;
mod agent;
mod agent_protocol;
mod clock_readings;
mod clocks;
mod collect;
mod common_start;
mod conditions;
mod context;
mod cpu_plan;
mod cpu_quota;
mod discovery;
mod driver_fit;
mod driver_trial;
mod dry_run;
mod error;
mod flow;
mod free_cpus;
mod gated;
mod guest_events;
mod host_watch;
mod knobs;
mod live_summary;
mod load_checks;
mod machine_fit;
mod meanwhile;
mod measuring;
mod neighbour_loads;
mod node_counts;
mod other_runs;
mod places;
mod program_path;
mod progress;
mod proof;
mod repeat;
mod rolling;
mod run;
mod stages;
mod stop_signal;
mod tool;
mod trial_length;
mod trial_state;
mod trial_steps;
mod trial_store;
mod until;

pub use driver_fit::{check_drivers, driver_limit};
pub use dry_run::{dry_run, expected_time};
pub use error::RunError;
pub use machine_fit::not_fit;
pub use places::DriverFiles;
pub use progress::{KnownCause, KnownCauses, LateSoFar, Progress, ProgressEvent};
pub use repeat::{RepeatOptions, repeat};
pub use run::{Finished, RunOptions, run};
pub use until::{UntilOptions, repeat_until};
