//! The study file as types: one declaration for reading, for the errors and for the JSON Schema.
//!
//! The words of the documentation of each key are the words of the schema and of the study reference.

mod choices;
mod container;
mod host;
mod load;
mod pod;
mod qos;
mod report;
mod scalars;
mod study;
mod vlan;
mod vm;

pub(crate) use choices::*;
pub(crate) use container::*;
pub(crate) use host::*;
pub(crate) use load::*;
pub(crate) use pod::*;
pub(crate) use qos::*;
pub(crate) use report::*;
pub(crate) use scalars::*;
pub(crate) use study::*;
pub(crate) use vlan::*;
pub(crate) use vm::*;
