//! The trait that all kinds of host settings implement.

use std::fmt::Debug;
use std::io;
use tailbound_model::Undo;

/// A host setting in the calling thread's network namespace.
pub(super) trait Setting: Debug + Send + Sync {
    /// Name, for the user, of the file, interface, interrupt or thread that has the setting.
    fn what(&self) -> String;
    /// Reads the value of the host setting that is in force, in the spelling used for requests.
    fn read(&self) -> io::Result<String>;
    /// Writes a value of the setting; callers read the value back to see whether the kernel accepted it.
    fn write(&mut self, value: &str) -> io::Result<()>;
    /// Checks without writing whether the calling process may write the host setting.
    fn may_write(&self) -> io::Result<()>;
    /// The undo that restores the value `before` of the host setting after the value `set` was written.
    fn undo(&self, before: &str, set: &str) -> Undo;
    /// Whether the setting lasts only as long as this process keeps a descriptor open. Such a setting is written even
    /// if it has the value already.
    fn lasts_while_open(&self) -> bool {
        false
    }
    /// Closes the file descriptor that keeps the host setting in force, if there is such a descriptor.
    fn release(&mut self) {}
    /// The given value of the host setting in the spelling in which [`read`](Setting::read) returns values.
    fn spelled(&self, value: &str) -> String;
}
