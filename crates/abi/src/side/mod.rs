//! The driver's part for the table of functions, for drivers in Rust.
//!
//! Input: a type that implements [`Session`] with safe signatures. Output: its [`tb_driver`](crate::tb_driver), made by
//! [`table`]. Only this module reads pointers of the loading program: it checks null pointers and sizes, and reads
//! strings, keys and values. It also keeps the text for `last_error`. The module knows no middleware and makes no
//! system call.
//!
//! The loading program's part for the table of functions is in `crates/driver`. A driver in C needs neither of the two
//! parts.

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
