//! Settings of the host: read, set through the journal, read back, put back.
//!
//! In: [`KnobSpec`]s of a study and the [`Place`] that they are of. Out: what was found before, what is in force, and what
//! became of it ([`KnobDone`](tailbound_model::KnobDone)). One way for all kinds: a [`Setting`] is a value as text that can
//! be read and written, and an [`Undo`] that puts it back; [`Knobs`] holds those of a block of trials. The undo is in the
//! journal before the change, so that a killed run is put back as well.

mod check;
mod error;
mod file;
mod find;
mod glob;
mod governor;
mod held;
mod irq;
mod kthread;
mod latency;
mod nic;
mod place;

pub use check::{check, now};
pub use error::KnobError;
pub use held::{Knobs, PutBack};
pub use place::Place;

use std::fmt::Debug;
use std::io;
use tailbound_model::Undo;

/// One thing that can be set, of the calling thread's network namespace.
trait Setting: Debug + Send + Sync {
    /// What it is, for people: a file, an interrupt, a thread.
    fn what(&self) -> String;
    /// The value in force, in the spelling in which one is asked for.
    fn read(&self) -> io::Result<String>;
    /// Asks for a value; what came of it, reading tells.
    fn write(&mut self, value: &str) -> io::Result<()>;
    /// Whether the calling process may write it, found out without writing.
    fn may_write(&self) -> io::Result<()>;
    /// How it is put back.
    fn undo(&self, before: &str, set: &str) -> Undo;
    /// It is held by this process alone: it is set even where it has the value already.
    fn is_held(&self) -> bool {
        false
    }
    /// Lets go of what is held by this process alone.
    fn release(&mut self) {}
    /// The spelling in which [`read`](Setting::read) would give this value.
    fn spelled(&self, value: &str) -> String;
}
