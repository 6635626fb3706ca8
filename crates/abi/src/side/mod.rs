//! The driver's side of the table, for drivers in Rust.
//!
//! What goes in: a type that implements [`Session`] with safe signatures. What comes out: its [`tb_driver`](crate::tb_driver)
//! by [`table`]. All that reads a pointer of the host's is here, once: null and size checks, strings, keys and values, the
//! text for `last_error`. It knows no middleware and no system call.
//!
//! The host's side is in `crates/driver`. A driver in C does without either.

mod fail;
mod host;
mod pair;
mod raw;
mod session;
mod table;

pub use fail::{Fail, Outcome, fail};
pub use host::Host;
pub use pair::Pair;
pub use session::{MAX_READERS, Session, Waited, Wanted};
pub use table::table;
