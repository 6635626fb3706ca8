//! What the rules propose for a case: settings whose values follow from the evidence.

pub(crate) mod cpus;
pub(crate) mod kernel;
pub(crate) mod machine;
pub(crate) mod network;
pub(crate) mod priority;

use crate::case::{Case, Proposal};

/// For rules that only name a remedy for facts of a host, and for remedies that no cause of a single condition asks for.
pub(crate) fn nothing(_: &Case<'_>) -> Vec<Proposal> {
    Vec::new()
}
