//! Integration tests of the crate stream: one program, one module per subject.

mod holder;
mod support;
