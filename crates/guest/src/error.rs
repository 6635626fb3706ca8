//! What can be wrong with a guest.

use std::fmt;
use std::io;
use std::path::Path;

/// A guest that cannot be made, started or reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestError {
    /// What is wrong, and where.
    pub what: String,
    /// What to do; may be empty.
    pub mend: String,
}

impl GuestError {
    /// With what to do about it.
    pub fn new(what: impl Into<String>, mend: impl Into<String>) -> GuestError {
        GuestError { what: what.into(), mend: mend.into() }
    }

    /// Something could not be done with a file.
    pub(crate) fn file(what: &str, path: &Path) -> impl FnOnce(io::Error) -> GuestError {
        let text = format!("cannot {what} {}", path.display());
        move |e| {
            let full = matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            let mend = if full { "make room there, or name another directory with XDG_CACHE_HOME" } else { "" };
            GuestError::new(format!("{text}: {e}"), mend)
        }
    }
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.mend.is_empty() { Ok(()) } else { write!(f, "\n  what to do: {}", self.mend) }
    }
}

impl std::error::Error for GuestError {}
