//! The driver ABI: the C table of functions through which Tailbound uses one middleware.
//!
//! Contents: `#[repr(C)]` types and constants, from which cbindgen writes `include/tailbound_driver.h`, and the module
//! [`side`], which a driver in Rust uses to provide the table; and the table of the tracer, a shared object that is no
//! driver. The crate has no dependencies. It knows nothing about
//! studies, records or pacing.
//!
//! Rules for the driver and for the loading program, which loads the driver:
//! - Every struct starts with `size`, the number of bytes that its author filled in. A reader never reads beyond
//!   `size`.
//! - Neither side prints. Strings are UTF-8 and end with a NUL byte. `0` means success, negative values are `TB_E*`.
//! - Deadlines are absolute `CLOCK_MONOTONIC` times in nanoseconds; `TB_FOREVER` waits without a limit.
//! - A sample is a sequence number and a payload. The two are separate arguments, not one buffer, because DDS drivers
//!   store `seq` and the payload bytes in different members of the typed sample: one buffer would need a copy.
#![allow(non_camel_case_types)] // the names are the C names

mod name_pattern;
mod places;
pub mod side;
mod table;
mod tracer;
mod types;

pub use name_pattern::name_matches;
pub use places::{own_directory, search_directories};
pub use table::*;
pub use tracer::*;
pub use types::*;
