//! Errors of making, starting and reaching guests (virtual machines).

use std::fmt;
use std::io;
use std::path::Path;

/// Reason why a guest cannot be made, started or reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestError {
    /// Error text: what is wrong with the guest, and where.
    pub what: String,
    /// What the user can do about the error of the guest; may be empty.
    pub mend: String,
}

impl GuestError {
    /// Creates an error of a guest with its remedy, which may be empty.
    pub fn new(what: impl Into<String>, mend: impl Into<String>) -> GuestError {
        GuestError { what: what.into(), mend: mend.into() }
    }

    /// Creates an error for a failed operation on a file, such as `read`.
    pub(crate) fn file(what: &str, path: &Path) -> impl FnOnce(io::Error) -> GuestError {
        let text = format!("cannot {what} {}", path.display());
        move |e| {
            let full = matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            let mend =
                if full { "free space on this file system, or set another directory in XDG_CACHE_HOME" } else { "" };
            GuestError::new(format!("{text}: {e}"), mend)
        }
    }
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.mend.is_empty() { Ok(()) } else { write!(f, "\n  help: {}", self.mend) }
    }
}

impl std::error::Error for GuestError {}
