//! All rules for the facts of a host, grouped by subject. The texts are about the tail of latencies, not about typical
//! messages.

mod cpu;
mod kernel;
mod limits;
mod machine;
mod memory;
mod network;

use crate::finding::{Finding, Rule};
use tailbound_model::HostFacts;

/// All rules for the facts of a host, in the order in which their findings are shown.
pub(crate) fn all() -> impl Iterator<Item = &'static Rule> {
    [machine::RULES, kernel::RULES, cpu::RULES, memory::RULES, network::RULES, limits::RULES].into_iter().flatten()
}

/// Applies all rules to the facts of a host, in the order of the rules.
pub fn diagnose(facts: &HostFacts) -> Vec<Finding> {
    all().map(|rule| rule.apply(facts)).collect()
}

/// Host settings that a study can fix: for each, the key of its finding, and the text that a study writes below `host`.
pub fn advice() -> Vec<(&'static str, String)> {
    all().map(|rule| (rule.key, rule.host())).filter(|(_, host)| !host.is_empty()).collect()
}
