//! The record: the directory that a run leaves. It is the product; every figure is computed from it later.
//!
//! What goes in: a plan, rows, facts, warnings. What comes out: files that other programs read (JSON, Parquet), and
//! batches of joined rows for the report. It knows nothing of how rows are measured or shown.
//!
//! ```text
//! DIR/manifest.json                     plan, hosts, drivers, trials, status, warnings
//! DIR/events.jsonl                      what happened when
//! DIR/samples/<trial>/<end>-<n>.parquet rows, in closed segments
//! DIR/facts/*.json                      circumstances
//! DIR/threads/<trial>-<end>.json        thread tables
//! DIR/logs/<trial>-<end>.log            what the middleware said
//! ```

mod cells;
mod check;
mod columns;
mod echoes;
mod error;
mod events;
mod manifest;
mod metrics;
mod reader;
mod segment;
mod slots;
mod writer;

pub use cells::{EchoCells, SenderCells, SlotClock};
pub use error::RecordError;
pub use events::{Event, EventLine};
pub use manifest::*;
pub use reader::{Record, stored_rows};
pub use segment::{write_echoes, write_slots};
pub use slots::{Columns, SlotBatch};
pub use writer::RecordWriter;
