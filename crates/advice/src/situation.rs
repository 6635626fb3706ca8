//! Situations: everything that the rules look at for one condition.

use tailbound_document::{CauseShare, LossReport, WithoutCause};
use tailbound_model::{HostFacts, TrialSpec};

/// One condition with what is known about its late and lost messages.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// What one trial of the condition measures, with all settings of the ends and of the host.
    pub spec: &'a TrialSpec,
    /// Causes of the late messages (`causes` of the condition).
    pub causes: &'a [CauseShare],
    /// Estimates of the tail without causes (`without_cause` of the condition).
    pub without: &'a [WithoutCause],
    /// Where messages were lost (`losses` of the condition).
    pub losses: &'a [LossReport],
    /// CPUs that the ends may use, in rising order; empty if they are not known, so that no candidate names another CPU.
    pub cpus: &'a [u32],
    /// Facts of the host of the ends, if they are known.
    pub facts: Option<&'a HostFacts>,
    /// Fraction of the declared quantile, e.g. 0.999 for p99.9, for which the gain is predicted; `None` = the highest quantile
    /// that would be clearly shorter, otherwise the maximum.
    pub q: Option<f64>,
}
