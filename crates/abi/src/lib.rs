//! The driver ABI: the C table by which Tailbound drives one middleware.
//!
//! What goes in: nothing. What comes out: `#[repr(C)]` types and constants, from which cbindgen writes
//! `include/tailbound_driver.h`, and in [`side`] what every driver in Rust needs to stand behind the table. It depends on
//! nothing and knows nothing of studies, records or pacing.
//!
//! Rules of the seam:
//! - Every struct starts with `size`, the number of bytes that its writer knows; a reader never touches a byte beyond it.
//! - Nothing prints. Strings are UTF-8 and NUL-terminated. `0` is success, negative values are `TB_E*`.
//! - Deadlines are absolute `CLOCK_MONOTONIC` nanoseconds; `TB_FOREVER` waits without limit.
//! - A sample is a sequence number and a payload. They are separate in the table (and not one buffer) because DDS
//!   drivers hold `seq` and the octets in different places of the typed sample: one buffer would force a copy.
#![allow(non_camel_case_types)] // the names are the C names

pub mod side;
mod table;
mod types;

pub use table::*;
pub use types::*;
