//! Integration tests of the crate study: one program, one module per subject.

mod broken;
mod budget;
mod factors;
mod properties;
mod schema;
mod studies;
