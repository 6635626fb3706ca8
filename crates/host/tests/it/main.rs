//! Integration tests of the crate tailbound-host: one program, with one module for each subject.

mod switches;
