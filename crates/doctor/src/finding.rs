//! A rule applied to facts.

use crate::condition::{Condition, Judgement};
use crate::rules;
use serde::{Deserialize, Serialize};
use tailbound_model::HostFacts;

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be for short tails.
    Ok,
    /// It makes some messages later.
    WillWidenTail,
    /// What the rule needs was not read.
    Unknown,
}

/// One rule's verdict on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable key: that of the fact it is about, or of a group of facts.
    pub key: String,
    /// What is looked at, in a few words.
    pub title: String,
    /// The verdict.
    pub verdict: Verdict,
    /// What was found; empty when unknown.
    pub value: String,
    /// One sentence: why it widens the tail, or why it is unknown; empty when ok.
    pub because: String,
    /// One sentence: what to do; empty when ok.
    pub mend: String,
    /// The key of a study below `host`, with its value, that mends it for the trials; empty when there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
}

/// A rule as data.
pub(crate) struct Rule {
    /// Of the fact, and of the finding.
    pub key: &'static str,
    pub title: &'static str,
    /// Behind the value, with its space.
    pub unit: &'static str,
    /// When it widens the tail.
    pub bad: Condition,
    pub because: &'static str,
    pub mend: &'static str,
    /// What a study writes below `host`; may be empty.
    pub host: &'static str,
}

/// Applies all rules, in their order.
pub fn diagnose(facts: &HostFacts) -> Vec<Finding> {
    rules::all().map(|rule| rule.apply(facts)).collect()
}

/// What a study can do about findings: the key of each, and what is written below `host`.
pub fn advice() -> Vec<(&'static str, &'static str)> {
    rules::all().filter(|rule| !rule.host.is_empty()).map(|rule| (rule.key, rule.host)).collect()
}

impl Rule {
    fn apply(&self, facts: &HostFacts) -> Finding {
        let (verdict, value, because, mend) = match self.bad.judge(self.key, facts) {
            Judgement::Fine(value) => (Verdict::Ok, value, "", ""),
            Judgement::Bad(value) => (Verdict::WillWidenTail, value, self.because, self.mend),
            Judgement::NotKnown(why) => return self.unknown(why),
        };
        // Only a number has a unit.
        let unit = if value.parse::<f64>().is_ok() { self.unit } else { "" };
        Finding {
            key: self.key.to_owned(),
            title: self.title.to_owned(),
            verdict,
            value: format!("{value}{unit}"),
            because: because.to_owned(),
            mend: mend.to_owned(),
            host: if verdict == Verdict::WillWidenTail { self.host.to_owned() } else { String::new() },
        }
    }

    fn unknown(&self, why: String) -> Finding {
        Finding {
            key: self.key.to_owned(),
            title: self.title.to_owned(),
            verdict: Verdict::Unknown,
            value: String::new(),
            because: why,
            mend: String::new(),
            host: String::new(),
        }
    }
}
