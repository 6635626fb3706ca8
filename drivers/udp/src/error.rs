//! Failures of the `udp` driver that the operating system causes.

use tailbound_abi::TB_EIO;
use tailbound_abi::side::{Outcome, fail};

/// Makes the failure for an error of the operating system; `what` is the failed operation.
pub fn os<T>(what: impl std::fmt::Display, error: &std::io::Error) -> Outcome<T> {
    fail(TB_EIO, format!("{what}: {error}"))
}
