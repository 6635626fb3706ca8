//! The vocabulary of Tailbound as types: units, plans, rows, outcomes, facts, problems, warnings, exit codes.
//!
//! All other crates use these types. Nothing in this crate measures, reads a file or changes the host.

mod clock;
mod facts;
mod figures;
mod host;
mod outcome;
mod path;
mod place;
mod plan;
mod problems;
mod threads;
mod units;

pub use clock::*;
pub use facts::*;
pub use figures::*;
pub use host::*;
pub use outcome::*;
pub use path::*;
pub use place::*;
pub use plan::*;
pub use problems::*;
pub use threads::*;
pub use units::*;
