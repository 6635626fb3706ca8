//! Integration tests of the crate study: one program, one module per subject.

mod broken;
mod budget;
mod docs;
mod factors;
mod properties;
mod published;
mod schema;
mod studies;
mod until;
