//! Finds, checks, opens and calls drivers of middleware.
//!
//! Input: a path or name of a shared object, or the table of a linked driver. Output: a [`Driver`] with its
//! [`Description`], a [`Session`] with the calls of the table in Rust types, and the conformance suite. The crate knows
//! nothing of studies, pacing or records, and of no clock except the clock that a driver may provide.
//!
//! - [`load`] and [`Driver::find`] open a shared object; [`Driver::linked`] takes a table of this binary. Both check
//!   the table.
//! - [`Session`] is one participant. Calls that may run while measuring are methods of [`Hot`]: they are inlined and
//!   allocate nothing, and their errors are a [`Code`] until [`Hot::error`] reads the text.
//! - [`conformance::run`] checks a driver against the rules of the ABI.

mod callbacks;
mod clock;
pub mod conformance;
mod description;
mod elf;
mod endpoint;
mod error;
mod file_name;
mod flow;
mod hot;
mod kv;
mod load;
mod session;
mod table;
mod view;

pub use callbacks::{Callbacks, LogLevel, Silent};
pub use clock::DriverClock;
pub use description::{Description, DriverOption, Exclusion, Limits, OptionType, QosPolicy, ReceiveMode, ThreadRole};
pub use endpoint::Endpoint;
pub use error::{Code, DriverError, LoadError};
pub use file_name::file_names;
pub use flow::{Batching, DataWay, Flow};
pub use hot::{Hot, Wait};
pub use kv::Kv;
pub use load::{Driver, entry_symbol, load};
pub use session::{Kind, Session};
pub use tailbound_abi::{own_directory, search_directories};
pub use view::{View, ViewBuf};
