//! Integration tests of the crate serve: one program, one module per subject.

mod socket;
#[path = "../../../report/tests/it/support/mod.rs"]
#[allow(dead_code, reason = "the tests of the crate report use the rest")]
mod support;
