//! Rules: which setting answers which cause, what it should gain, and what it costs.

use crate::case::{Case, Proposal};
use serde::Serialize;
use tailbound_document::{CauseWord, LossKind};

/// One rule of the table: a change that answers causes of late messages or kinds of losses.
#[derive(Clone, Copy, Serialize)]
pub struct Rule {
    /// Stable key of the rule, e.g. `priority-of-end`.
    pub key: &'static str,
    /// Causes that the rule answers.
    pub causes: &'static [CauseWord],
    /// Kinds of losses that the rule answers.
    pub losses: &'static [LossKind],
    /// What must hold beyond the cause, as a clause that follows "if"; empty if nothing must hold.
    pub condition: &'static str,
    /// Key of the study that makes the change, with `{end}`, `{role}` and other placeholders in braces; empty if no key of a
    /// study exists, so that the change can be made by hand only.
    pub knob: &'static str,
    /// Value of the key, as the rule chooses it; empty if there is no key.
    pub value: &'static str,
    /// How the change is made by hand, as one sentence without a full stop.
    pub remedy: &'static str,
    /// Share of the cause that the change should remove.
    pub expected: Expected,
    /// What can go wrong, as a clause without a full stop.
    pub risk: &'static str,
    /// What must be started again for the change to take effect.
    pub scope: Scope,
    /// How the change is undone, as a clause without a full stop.
    pub undo: &'static str,
    /// Figures that the change can make worse.
    pub watch: &'static [Watch],
    /// Document in which the rule can be looked up.
    pub source: &'static str,
    /// Makes the proposals of the rule for one cause or kind of loss.
    #[serde(skip)]
    pub(crate) propose: fn(&Case<'_>) -> Vec<Proposal>,
}

impl Rule {
    /// True if a key of a study makes the change, so that a run can try it.
    pub fn can_be_tried(&self) -> bool {
        !self.knob.is_empty()
    }

    /// Key and value below `host` of a study, e.g. `governor: performance`; `None` if the rule sets no fixed host setting.
    pub fn host_setting(&self) -> Option<String> {
        let below = self.knob.strip_prefix("host.").filter(|key| !key.contains('{'))?;
        match below.strip_prefix("sysctl.") {
            Some(name) => Some(format!("sysctl: {{ {name}: {} }}", self.value)),
            None => Some(format!("{below}: {}", self.value)),
        }
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rule").field(&self.key).finish()
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.key == other.key
    }
}

/// The share of a cause that a change should remove, as a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// Smallest share of the cause that the change usually removes, %.
    pub low_percent: u8,
    /// Largest share of the cause that the change usually removes, %.
    pub high_percent: u8,
    /// Where the range comes from.
    pub source: &'static str,
}

/// What must be started again for a change to take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Scope of a change: it takes effect while the program runs.
    Live,
    /// Scope of a change: the program, its container or its virtual machine must be started again.
    Restart,
    /// Scope of a change: the host must be booted again.
    Reboot,
}

impl Scope {
    /// Word for the scope, e.g. `live`.
    pub fn word(self) -> &'static str {
        match self {
            Scope::Live => "live",
            Scope::Restart => "restart",
            Scope::Reboot => "reboot",
        }
    }
}

/// A figure that a change can make worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Watch {
    /// Figure to watch: the median.
    Median,
    /// Figure to watch: the number of lost messages.
    Loss,
    /// Figure to watch: the CPU time that the ends or the host use.
    CpuTime,
}

impl Watch {
    /// Words for the figure, e.g. `CPU time`.
    pub fn words(self) -> &'static str {
        match self {
            Watch::Median => "median",
            Watch::Loss => "loss",
            Watch::CpuTime => "CPU time",
        }
    }
}
