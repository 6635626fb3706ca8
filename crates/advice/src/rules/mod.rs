//! The table of rules, grouped by subject.

mod cpus;
mod kernel;
mod limits;
mod machine;
mod memory;
mod network;

use crate::propose::nothing;
use crate::rule::{Expected, Rule, Scope};

/// Groups of rules, in the order of the table.
const GROUPS: [&[Rule]; 6] = [cpus::RULES, kernel::RULES, limits::RULES, machine::RULES, memory::RULES, network::RULES];

/// Number of all rules.
const COUNT: usize = count(&GROUPS);

/// All rules in one table.
static ALL: [Rule; COUNT] = joined(&GROUPS);

/// The table of rules, grouped by subject.
pub static RULES: &[Rule] = &ALL;

/// The rule with this key.
pub fn rule(key: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.key == key)
}

/// What most rules have in common: no cause, no key, nothing to fear, undone by the old value.
const BASE: Rule = Rule {
    key: "",
    causes: &[],
    losses: &[],
    condition: "",
    knob: "",
    value: "",
    remedy: "",
    expected: Expected { low_percent: 0, high_percent: 0, source: "" },
    risk: "none known",
    scope: Scope::Live,
    undo: "Tailbound restores the old value after the trials",
    watch: &[],
    source: "",
    propose: nothing,
};

/// A range that follows from how the kernel works, and not from results.
const fn estimate(low_percent: u8, high_percent: u8) -> Expected {
    Expected { low_percent, high_percent, source: "estimate" }
}

const fn count(groups: &[&[Rule]]) -> usize {
    let (mut all, mut at) = (0, 0);
    while at < groups.len() {
        all += groups[at].len();
        at += 1;
    }
    all
}

const fn joined<const N: usize>(groups: &[&[Rule]]) -> [Rule; N] {
    let mut all = [BASE; N];
    let (mut done, mut group) = (0, 0);
    while group < groups.len() {
        let mut at = 0;
        while at < groups[group].len() {
            all[done] = groups[group][at];
            done += 1;
            at += 1;
        }
        group += 1;
    }
    all
}
