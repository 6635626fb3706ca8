//! Code with which a driver in Rust provides its table of functions.
//!
//! Input: a type that implements [`Session`] with safe signatures. Output: its [`tb_driver`](crate::tb_driver), made by
//! [`table`]. Only this module reads pointers of the loading program: it checks null pointers and sizes, and reads
//! strings, keys and values. It also keeps the text for `last_error`. The module knows no middleware. It makes no
//! system call, except that [`threads_by_role`] reads the names of threads.
//!
//! The code with which the loading program calls the table of functions is in `crates/driver`. A driver in C needs
//! neither this module nor that crate.

mod endpoints;
mod fail;
mod host;
mod pair;
mod raw;
mod session;
mod table;
mod threads;

pub use endpoints::Endpoints;
pub use fail::{Fail, Outcome, fail};
pub use host::Host;
pub use pair::Pair;
pub use session::{MAX_READERS, Session, Waited, Wanted};
pub use table::table;
pub use threads::threads_by_role;
