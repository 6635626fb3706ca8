//! What the operating system refuses.

use tailbound_abi::TB_EIO;
use tailbound_abi::side::{Outcome, fail};

/// The failure for a refusal by the operating system, with what was tried.
pub fn os<T>(what: impl std::fmt::Display, error: &std::io::Error) -> Outcome<T> {
    fail(TB_EIO, format!("{what}: {error}"))
}
