//! Integration tests of the crate cyclonedds: one program, one module per subject.

mod common;
mod conformance;
mod data;
mod flow;
mod leaks;
mod matching;
mod open;
