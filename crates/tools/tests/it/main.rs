//! Integration tests of the crate tools: one program, one module per subject.

mod shipped;
