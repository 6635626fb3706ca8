//! Problems, warnings and exit codes, and the text of messages.

mod exit;
mod nearest;
mod plain;
mod problem;
mod warning;

pub use exit::ExitCode;
pub use nearest::nearest;
pub use plain::plain;
pub use problem::Problem;
pub use warning::{Severity, Warning};
