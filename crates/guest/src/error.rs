//! Errors for the user about guests (virtual machines) that cannot be made, started or reached.

use std::io;
use std::path::Path;
use tailbound_model::Problem;

/// Makes the [`Problem`] that says why a guest cannot be made, started or reached; `remedy` may be empty.
pub(crate) fn guest_error(what: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem::new("guest_failed", what, remedy)
}

/// Returns a function that makes the [`Problem`] for a failed operation on a file; `what` is the operation, for example
/// `read`.
pub(crate) fn file_error(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Problem {
    let text = format!("cannot {what} {}", path.display());
    move |e| {
        let full = matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let remedy = match full {
            true => "free space on the file system of this path, or set another directory in XDG_CACHE_HOME",
            false => "",
        };
        guest_error(format!("{text}: {e}"), remedy)
    }
}
