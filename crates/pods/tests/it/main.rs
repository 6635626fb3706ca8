//! Integration tests of the crate pods: one program, one module per subject.

mod cluster;
mod reach;
mod support;
