//! Integration tests of the crate abi: one program, one module per subject.

mod header;
mod side;
