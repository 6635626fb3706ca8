//! Settings of the host (knobs): they are read, set with an entry in the journal, read back, and restored.
//!
//! Input: [`KnobSpec`](tailbound_model::KnobSpec)s of a study and the [`Place`] of each setting. Output: the value
//! before, the value in force, and the result of restoring it ([`KnobDone`](tailbound_model::KnobDone)). All kinds of
//! settings work in the same way: a `Setting` has a value as text that can be read and written, and an
//! [`Undo`](tailbound_model::Undo) that restores it. [`Knobs`] contains the settings of a block of trials. The undo is
//! written to the journal before the change, so the settings of a killed run are restored too.

mod check;
mod error;
mod file;
mod find;
mod governor;
mod in_force;
mod interface;
mod irq;
mod kthread;
mod latency;
mod nic;
mod place;
mod queue;
mod quota;
mod setting;

pub use check::{check, now};
pub use error::KnobError;
pub use in_force::{Knobs, Restored};
pub use place::Place;
