//! Verdicts over the facts of a host: what will widen the tail of its latencies, why, and what to do.
//!
//! In: [`HostFacts`](tailbound_model::HostFacts), fresh from a host or out of a record. Out: one [`Finding`] per rule, in
//! the order of the rules, and their rendering as text. It reads no file and changes nothing, so that it says the same
//! about a record on a laptop as on the machine itself. A fact that was not read never counts as good.

mod condition;
mod finding;
mod render;
mod rescue;
mod rules;

pub use finding::{Finding, Verdict, advice, diagnose};
pub use render::render;
pub use rescue::{rescue, rescue_by_facts};

#[cfg(test)]
mod tests;
