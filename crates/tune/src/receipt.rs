//! The receipt: what was tried, what was kept and why, and the gain on fresh trials.

use crate::candidate::Candidate;
use crate::pair::Guard;
use crate::reboot::Reboot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use tailbound_model::Nanos;
use tailbound_stats::sequential;

/// Name of the rule by which the loop decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleName {
    /// A paired t test after 4, 6, 9 and 12 pairs.
    #[default]
    Looks,
    /// A paired t test after 6, 9, 12, 16 and 20 pairs.
    LongLooks,
    /// The symmetry e-process after each pair, up to 20 pairs.
    Symmetry,
}

/// Verdict of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The figure is smaller with the change.
    Better,
    /// The figure is larger with the change.
    Worse,
    /// No effect was found, and the 95 % interval excludes a figure that is more than 5 % larger.
    NoWorse,
    /// The 95 % interval excludes a gain of 10 %.
    Futile,
    /// The pairs do not decide.
    Undecided,
}

impl From<sequential::Verdict> for Verdict {
    fn from(verdict: sequential::Verdict) -> Verdict {
        match verdict {
            sequential::Verdict::Better => Verdict::Better,
            sequential::Verdict::Worse => Verdict::Worse,
            sequential::Verdict::NoWorse => Verdict::NoWorse,
            sequential::Verdict::Futile => Verdict::Futile,
            sequential::Verdict::Undecided => Verdict::Undecided,
        }
    }
}

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is part of the kept set.
    Kept,
    /// It did not help, so that it was reverted.
    Reverted,
    /// It helped, but broke a guard.
    BrokeGuard(Guard),
    /// It helped when it was tried, and was not shown to be needed beside the other kept changes.
    NotNeeded,
    /// Its settings cannot be used here: the reason.
    NotPossible(String),
    /// The time did not suffice to try it.
    NoTimeLeft,
}

/// A candidate with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The candidate.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// What became of it.
    pub outcome: Outcome,
    /// Result of the screening; absent if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Figure with the change divided by the figure without it, over the pairs of the screening. The interval is the one of a
    /// test with a single look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<[f64; 3]>,
    /// Number of pairs of the screening.
    pub pairs: usize,
    /// CPU time of the ends per message with the change divided by the one without it, as `ratio`; absent if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<[f64; 3]>,
    /// Result of leaving the change out beside the other kept ones; absent if it was not left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
}

/// Decision about a kept change that was left out while the other kept ones stayed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Result for the figure with the change, against the figure without it.
    pub verdict: Verdict,
    /// Figure with the change divided by the figure without it: value and ends of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<[f64; 3]>,
    /// Number of pairs.
    pub pairs: usize,
}

/// The pairs without a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Number of pairs.
    pub pairs: usize,
    /// Geometric mean of the figure over all trials, ns.
    pub figure_ns: f64,
    /// Number of pairs that would find a gain of 20 % in four of five cases.
    pub needed_pairs: f64,
}

/// A cause of late messages, with its share of the excess that has a ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CauseLine {
    /// The cause in words.
    pub text: String,
    /// Share of the excess.
    pub share: f64,
}

/// The gain on trials that were made after the last decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Geometric mean of the figure with the original settings, ns.
    pub without_ns: f64,
    /// Geometric mean of the figure with all kept changes, ns.
    pub with_ns: f64,
    /// Ratio with its 95 % interval: value, lower end, upper end.
    pub ratio: [f64; 3],
    /// Number of pairs.
    pub pairs: usize,
    /// True if the interval lies below 1.
    pub confirmed: bool,
    /// CPU time of the ends per message with all kept changes divided by the one without them, as `ratio`; absent if it was not
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<[f64; 3]>,
    /// Guard that the kept set broke on the fresh trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke_guard: Option<Guard>,
}

/// A limit of a budget file that declared the figure before the first trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredLimit {
    /// Path of the budget file, as the user gave it.
    pub budget: String,
    /// The limited figure, e.g. `p99`.
    pub figure: String,
    /// Metric of the limit, e.g. `round_trip`.
    pub metric: String,
    /// Largest allowed value of the figure, ns.
    pub at_most_ns: i64,
}

impl fmt::Display for DeclaredLimit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "limit of {}: {} of {} at most {}", self.budget, self.figure, self.metric, Nanos(self.at_most_ns))
    }
}

/// Whether trials keep a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Met {
    /// The whole 95 % interval is at or below the limit.
    Met,
    /// The whole 95 % interval is above the limit.
    NotMet,
    /// The limit lies inside the interval, or there are too few messages.
    Undecided,
}

/// What the trials of one side say about a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Whether the trials keep the limit.
    pub met: Met,
    /// The measured figure with its interval, in words.
    pub found: String,
}

/// The limit that declared the figure, before and after the kept changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfLimit {
    /// The limit.
    #[serde(flatten)]
    pub declared: DeclaredLimit,
    /// The trials with the original settings.
    pub before: Option<Side>,
    /// The trials with all kept changes; absent if nothing was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Side>,
}

/// What fresh trials of a receipt's changes showed (`gain.json` of `tailbound tune replay`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// The gain of all kept changes.
    #[serde(flatten)]
    pub gain: Gain,
    /// Whether the trials keep the limit that declared the figure; absent if the figure was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<OfLimit>,
}

/// The receipt of a run of `tune`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Version of the format of receipts: a reader refuses a newer major number.
    pub format: [u32; 2],
    /// Text of the study file.
    pub study: String,
    /// Name of the study.
    pub name: String,
    /// Directory against which the study names its own files, on the machine of the run.
    #[serde(default)]
    pub directory: PathBuf,
    /// Settings of the command line, each `key=value`.
    pub settings: Vec<String>,
    /// The figure that was declared before the first trial, e.g. `p99`.
    pub figure: String,
    /// Metric of the figure, e.g. `from_intended`.
    pub metric: String,
    /// The limit of a budget that declared the figure; absent if the figure was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<OfLimit>,
    /// Rule of the decisions.
    pub rule: RuleName,
    /// Error rate of all decisions about candidates together.
    pub alpha: f64,
    /// Largest ratio of the CPU times per message that the user permitted; absent without such a guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_most: Option<f64>,
    /// Seed of the order within the pairs.
    pub seed: u64,
    /// Facts about the machine, by name.
    pub circumstances: BTreeMap<String, String>,
    /// The pairs without a change.
    pub baseline: Baseline,
    /// Causes in the baseline.
    pub causes_before: Vec<CauseLine>,
    /// Causes in the confirming trials with all kept changes.
    pub causes_after: Vec<CauseLine>,
    /// Candidates in the order in which they were tried.
    pub tried: Vec<Tried>,
    /// Settings of the kept changes, each `key=value`.
    pub kept: Vec<String>,
    /// The gain on fresh trials; absent if nothing was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
    /// Reboots of the host between two pairs of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reboots: Vec<Reboot>,
    /// Circumstances of the host that changed with a reboot, each in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Time that the loop took, s.
    pub seconds: u64,
}

impl Default for Receipt {
    /// A receipt in which nothing was measured.
    fn default() -> Receipt {
        Receipt {
            format: Receipt::FORMAT,
            study: String::new(),
            name: String::new(),
            directory: PathBuf::new(),
            settings: Vec::new(),
            figure: "p99".to_owned(),
            metric: "from_intended".to_owned(),
            limit: None,
            rule: RuleName::Looks,
            alpha: 0.05,
            cpu_most: None,
            seed: 1,
            circumstances: BTreeMap::new(),
            baseline: Baseline::default(),
            causes_before: Vec::new(),
            causes_after: Vec::new(),
            tried: Vec::new(),
            kept: Vec::new(),
            gain: None,
            reboots: Vec::new(),
            changed: Vec::new(),
            seconds: 0,
        }
    }
}

impl Receipt {
    /// Version of the format that this program writes.
    pub const FORMAT: [u32; 2] = [1, 0];

    /// Reads a receipt from its JSON text.
    ///
    /// # Errors
    /// The text is not a receipt, or a newer release wrote it.
    pub fn read(text: &str) -> Result<Receipt, tailbound_model::Problem> {
        let problem = |what: String, remedy: &str| tailbound_model::Problem::new("receipt", what, remedy);
        let value: serde_json::Value = serde_json::from_str(text).map_err(|e| {
            problem(format!("the file is not a receipt: {e}"), "name a file `receipt.json` of `tailbound tune`")
        })?;
        let major = value["format"][0].as_u64();
        if major.is_some_and(|major| major > u64::from(Receipt::FORMAT[0])) {
            let what =
                format!("the receipt has the format {}, and this release reads format 1", major.unwrap_or_default());
            return Err(problem(what, "use the release that wrote it, or a newer one"));
        }
        serde_json::from_value(value).map_err(|e| {
            problem(format!("the file is not a receipt: {e}"), "name a file `receipt.json` of `tailbound tune`")
        })
    }
}
