//! Checks the facts of a host for settings that make the tail of the latency longer, and gives the reason and the
//! remedy for each such setting.
//!
//! Input: [`HostFacts`](tailbound_model::HostFacts), read from a host or from a record. Output: one [`Finding`] for
//! each rule, in the order of the rules or of their importance ([`ranked`]), and the findings as text. The remedies come
//! from the table of advice. The crate reads no file and changes nothing, so a
//! record on a laptop gives the same findings as the machine itself. A fact that was not read never counts as good.

mod condition;
mod evidence;
mod finding;
mod render;
mod rescue;
mod rules;
mod shown;

pub use evidence::{RecordEvidence, ranked};
pub use finding::{Finding, Verdict};
pub use render::{Shape, render};
pub use rescue::{rescue, rescue_by_facts};
pub use rules::{advice, diagnose};
pub use shown::Shown;

#[cfg(test)]
mod tests;
