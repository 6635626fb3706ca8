//! The record: the directory that a run writes. It is the product of a run; all figures are computed from it later.
//!
//! Input: a plan, rows of samples, facts, warnings. Output: files that other programs can read (JSON, Parquet), and
//! batches of joined rows for the report. The crate does not know how rows are measured or shown.
//!
//! ```text
//! DIR/manifest.json                     plan, hosts, drivers, trials, status, warnings
//! DIR/events.jsonl                      events with their times
//! DIR/samples/<trial>/<end>-<n>.parquet rows, in closed segments
//! DIR/facts/*.json                      circumstances
//! DIR/threads/<trial>-<end>.json        thread tables
//! DIR/logs/<trial>-<end>.log            log messages of the middleware
//! ```

mod cells;
mod check;
mod clock_bounds;
mod columns;
mod echoes;
mod error;
mod events;
mod first_match;
mod incidents;
mod manifest;
mod metrics;
mod outcomes;
mod reader;
mod repeated;
mod running_figures;
mod running_incidents;
mod segment;
mod slots;
mod stages;
mod until;
mod writer;

pub use cells::{EchoCells, SenderCells, SlotClock};
pub use clock_bounds::bounds_of_readings;
pub use error::RecordError;
pub use events::{Event, EventLine};
pub use incidents::{MOST_INCIDENTS, Ordinary, TrialIncidents};
pub use manifest::*;
pub use reader::{Record, stored_rows};
pub use repeated::{Measured, RemovedTrials, Repeated, Rolling};
pub use running_figures::{FiguresSoFar, RunningFigures};
pub use running_incidents::{IncidentsSoFar, KeptRow, Notable, RunningIncidents, WorstIncident};
pub use segment::{write_echoes, write_slots, write_stages};
pub use slots::{Columns, SlotBatch};
pub use stages::{Departure, Departures};
pub use tailbound_model::TrialStatus;
pub use until::{MatchedMessage, Until};
pub use writer::RecordWriter;
