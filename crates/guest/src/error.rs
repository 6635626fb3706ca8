//! Problems of making, starting and reaching guests (virtual machines).

use std::io;
use std::path::Path;
use tailbound_model::Problem;

/// Makes the problem of a guest that cannot be made, started or reached; `remedy` may be empty.
pub(crate) fn guest_error(what: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem::new("guest_failed", what, remedy)
}

/// Makes the problem of a failed operation on a file, such as `read`.
pub(crate) fn file_error(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Problem {
    let text = format!("cannot {what} {}", path.display());
    move |e| {
        let full = matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let remedy =
            if full { "free space on this file system, or set another directory in XDG_CACHE_HOME" } else { "" };
        guest_error(format!("{text}: {e}"), remedy)
    }
}
