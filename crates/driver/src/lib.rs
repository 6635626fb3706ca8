//! Drivers as the rest of Tailbound sees them: found, checked, opened and called.
//!
//! In: a path or name of a shared object, or the table of a driver that is linked in. Out: a [`Driver`] with its
//! [`Description`], a [`Session`] whose calls are the table's with Rust types, and the conformance suite.
//! It knows nothing of studies, pacing, records or clocks other than the one that a driver may bring along.
//!
//! - [`load`] and [`Driver::find`] open a shared object; [`Driver::linked`] takes a table of this binary. Both check it.
//! - [`Session`] is one participant. What may run while measuring is on [`Hot`]: inlined, free of allocation, and its
//!   errors are a [`Code`] until somebody asks [`Hot::error`] for the text.
//! - [`conformance::run`] proves a driver against the rules of the ABI.

mod callbacks;
mod clock;
pub mod conformance;
mod description;
mod elf;
mod error;
mod flow;
mod hot;
mod kv;
mod load;
mod session;
mod table;
mod view;

pub use callbacks::{Callbacks, LogLevel, Silent};
pub use clock::DriverClock;
pub use description::{Description, DriverOption, Limits, OptionType, QosPolicy, ReceiveMode, ThreadRole};
pub use error::{Code, DriverError, LoadError};
pub use flow::{Batching, DataWay, Flow};
pub use hot::{Hot, Wait};
pub use kv::Kv;
pub use load::{Driver, entry_symbol, file_names, load, search_directories};
pub use session::{Endpoint, Kind, Session};
pub use view::{View, ViewBuf};
