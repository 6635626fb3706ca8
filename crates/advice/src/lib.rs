//! What to change against late and lost messages: one table of rules, and the candidates that the rules give for the causes of
//! one condition.
//!
//! Input: a [`Situation`], which is the specification of a condition with the causes and losses that the analysis found. Output:
//! [`Candidate`]s, the most promising first, with the settings of a study that try them. Only causes that were seen or counted
//! give candidates. The crate reads no file, measures nothing and changes nothing; it knows a host only by its facts.

mod answers;
mod candidate;
mod case;
mod list;
mod propose;
mod rule;
mod rules;
mod settings;
mod situation;

pub use answers::Answers;
pub use candidate::{Candidate, Prediction, candidates};
pub use list::{list, markdown};
pub use rule::{Expected, Rule, Scope, Watch};
pub use rules::{RULES, rule};
pub use situation::Situation;

#[cfg(test)]
mod tests;
