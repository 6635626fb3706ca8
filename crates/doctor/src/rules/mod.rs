//! The rules, by what they look at. Sentences are about the tail: what makes a typical message slow is another matter.

mod cpu;
mod kernel;
mod limits;
mod machine;
mod memory;
mod network;

use crate::finding::Rule;

/// All rules, in the order in which their findings are shown.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    [machine::RULES, kernel::RULES, cpu::RULES, memory::RULES, network::RULES, limits::RULES].into_iter().flatten()
}
