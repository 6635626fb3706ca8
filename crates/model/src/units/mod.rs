//! Quantities with their units, and lists of CPUs.

mod cpus;
mod quantity;

pub use cpus::CpuList;
pub(crate) use quantity::not_a_quantity;
pub use quantity::*;
