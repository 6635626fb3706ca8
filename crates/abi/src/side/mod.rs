//! Code with which a driver in Rust provides its table of functions.
//!
//! Input: a type that implements [`Session`] with safe signatures. Output: its [`tb_driver`](crate::tb_driver), made by
//! [`table`]. Only this module reads pointers of the loading program: it checks null pointers and sizes, and reads
//! strings, keys and values. It also keeps the text for `last_error`. The module knows no middleware and makes no
//! system call.
//!
//! The code with which the loading program calls the table of functions is in `crates/driver`. A driver in C needs
//! neither this module nor that crate.

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
