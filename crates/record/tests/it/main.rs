//! Integration tests of the crate record: one program, one module per subject.

mod incidents;
mod old_record;
mod scan;
