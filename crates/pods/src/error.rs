//! What can be wrong: what, where, and what to do about it.

/// Something that could not be done in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}{mend}", if mend.is_empty() { "" } else { "; " })]
pub struct PodError {
    /// What is wrong and where.
    pub what: String,
    /// What to do about it; empty where nobody can tell.
    pub mend: String,
}

impl PodError {
    pub(crate) fn new(what: impl Into<String>, mend: impl Into<String>) -> PodError {
        PodError { what: what.into(), mend: mend.into() }
    }
}
