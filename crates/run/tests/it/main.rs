//! Integration tests of the crate `tailbound-run`: one program with one module for each subject.

mod executor;
mod ring;
mod thread_policy;
