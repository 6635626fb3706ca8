//! One host setting that is a file: read, set through the journal, verified, restored.
//!
//! In: the file and the value wanted. Out: the value in force. Restoring is the journal's business, so that it happens
//! after a crash too: [`Knob::set`] writes the undo before the setting.

use crate::journal::{EntryId, Journal, JournalError};
use crate::undo::normalised;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tailbound_model::Undo;

/// A setting under /proc/sys or /sys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    name: String,
    path: PathBuf,
}

/// Why a setting was not read or set.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// The file is not there.
    #[error("{name} does not exist here ({}): this kernel or network namespace has no such setting", path.display())]
    Absent {
        /// The knob's name.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// No privilege.
    #[error("{name} may not be {what} by this user ({}); run as root", path.display())]
    NotPermitted {
        /// The knob's name.
        name: String,
        /// `read` or `set`.
        what: &'static str,
        /// Its file.
        path: PathBuf,
    },
    /// The kernel refused the value.
    #[error("{name} does not take `{value}`: {reason}")]
    Refused {
        /// The knob's name.
        name: String,
        /// What was written.
        value: String,
        /// The kernel's word.
        reason: String,
    },
    /// The kernel took the value and kept another.
    #[error("{name} was set to `{wanted}`, but reads `{found}`")]
    Differs {
        /// The knob's name.
        name: String,
        /// What was written.
        wanted: String,
        /// What is in force.
        found: String,
    },
    /// The undo could not be written down, so nothing was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Knob {
    /// A sysctl by its dotted name, e.g. `net.core.rmem_max`. A `/` in a part (`net/ipv4/conf/eth0.5/…`) stands as it is.
    pub fn sysctl(name: &str) -> Knob {
        let path = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
        Knob { name: name.to_owned(), path: Path::new("/proc/sys").join(path) }
    }

    /// Any other setting file.
    pub fn file(name: &str, path: impl Into<PathBuf>) -> Knob {
        Knob { name: name.to_owned(), path: path.into() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value in force.
    ///
    /// # Errors
    /// The file is not there or may not be read.
    pub fn read(&self) -> Result<String, KnobError> {
        fs::read_to_string(&self.path).map(|text| normalised(&text)).map_err(|e| self.error("read", "", &e))
    }

    /// Sets it, its undo written first, and verifies it. `None` when it had the value already: nothing was changed.
    ///
    /// # Errors
    /// See [`KnobError`]. After `Differs` the entry stays open, so that the journal puts the old value back.
    pub fn set(&self, value: &str, journal: &Journal) -> Result<Option<EntryId>, KnobError> {
        let before = self.read()?;
        if before == normalised(value) {
            return Ok(None);
        }
        let undo = |set: &str| Undo::RestoreSetting {
            path: self.path.display().to_string(),
            before: before.clone(),
            set: set.to_owned(),
        };
        let id = journal.before(undo(value))?;
        if let Err(error) = fs::write(&self.path, value) {
            // Nothing was changed.
            journal.done(id)?;
            return Err(self.error("set", value, &error));
        }
        let found = self.read()?;
        if found == normalised(value) {
            return Ok(Some(id));
        }
        // The undo must know what really is there, or it would take it for somebody else's doing.
        journal.update(id, undo(&found))?;
        Err(KnobError::Differs { name: self.name.clone(), wanted: value.to_owned(), found })
    }

    /// Compares the value in force with the one wanted; `Some` is the sentence about the difference.
    pub fn verify(&self, wanted: &str) -> Option<String> {
        match self.read() {
            Ok(found) if found == normalised(wanted) => None,
            Ok(found) => Some(format!("{} was to be `{wanted}`, it is `{found}`", self.name)),
            Err(error) => Some(error.to_string()),
        }
    }

    fn error(&self, what: &'static str, value: &str, error: &io::Error) -> KnobError {
        let (name, path) = (self.name.clone(), self.path.clone());
        match error.kind() {
            io::ErrorKind::NotFound => KnobError::Absent { name, path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                KnobError::NotPermitted { name, what, path }
            }
            _ => KnobError::Refused { name, value: value.to_owned(), reason: error.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(value: &str) -> (tempfile::TempDir, Knob, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("setting");
        fs::write(&file, value).unwrap();
        let journal = Journal::create_in(&dir.path().join("journal"), "run").unwrap();
        (dir, Knob::file("a setting", file), journal)
    }

    #[test]
    fn a_setting_is_set_verified_and_restored_by_the_journal() {
        let (_dir, knob, journal) = setup("50\n");
        let id = knob.set("0", &journal).unwrap().expect("it was changed");
        assert_eq!(knob.read().unwrap(), "0");
        assert_eq!(knob.verify("0"), None);
        assert_eq!(knob.verify("50").unwrap(), "a setting was to be `50`, it is `0`");
        journal.undo(id).unwrap();
        assert_eq!(knob.read().unwrap(), "50");
        journal.finish().unwrap();
    }

    #[test]
    fn a_setting_that_has_the_value_is_not_touched() {
        let (_dir, knob, journal) = setup("always [madvise] never\n");
        assert_eq!(knob.set("madvise", &journal).unwrap(), None);
        assert!(journal.open_entries().is_empty());
    }

    #[test]
    fn what_cannot_be_set_is_named_and_leaves_no_entry() {
        let (_dir, _, journal) = setup("");
        let error = Knob::sysctl("net.core.no_such_setting").set("1", &journal).unwrap_err();
        assert_eq!(
            error.to_string(),
            "net.core.no_such_setting does not exist here (/proc/sys/net/core/no_such_setting): this kernel or network \
             namespace has no such setting"
        );
        // Read-only for everybody, root too.
        let error = Knob::sysctl("kernel.osrelease").set("1", &journal).unwrap_err();
        assert!(matches!(error, KnobError::NotPermitted { what: "set", .. } | KnobError::Refused { .. }), "{error:?}");
        assert!(journal.open_entries().is_empty());
    }
}
