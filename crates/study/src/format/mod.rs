//! The study file as types: the same declaration of each key serves for reading, for error messages and for the JSON
//! Schema. A choice is a bare word, or a map with the word as its only key and the options as the value.
//!
//! The doc comment of each key is also the description of the key in the JSON Schema and in the study reference.

mod choices;
mod clock;
mod container;
mod driver;
mod gates;
mod histogram;
mod host;
mod load;
mod measure;
mod middleware;
mod path;
mod place;
mod pod;
mod police;
mod published;
mod qos;
mod report;
mod scalars;
mod scheduling;
mod security;
mod shaping;
mod ssh;
mod stream;
mod study;
mod vlan;
mod vm;

pub(crate) use choices::*;
pub(crate) use clock::*;
pub(crate) use container::*;
pub(crate) use driver::*;
pub(crate) use gates::*;
pub(crate) use histogram::*;
pub(crate) use host::*;
pub(crate) use load::*;
pub(crate) use measure::*;
pub(crate) use middleware::*;
pub(crate) use path::*;
pub(crate) use place::*;
pub(crate) use pod::*;
pub(crate) use police::*;
pub(crate) use published::*;
pub(crate) use qos::*;
pub(crate) use report::*;
pub(crate) use scalars::*;
pub(crate) use scheduling::*;
pub(crate) use security::*;
pub(crate) use shaping::*;
pub(crate) use ssh::*;
pub(crate) use stream::*;
pub(crate) use study::*;
pub(crate) use vlan::*;
pub(crate) use vm::*;
