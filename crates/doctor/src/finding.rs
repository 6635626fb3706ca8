//! Findings: the results of applying rules to the facts of a host.

use crate::condition::{Condition, Judgement};
use serde::{Deserialize, Serialize};
use tailbound_model::HostFacts;

/// Result of applying a rule to the facts of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The checked setting is good for short tails of the latency.
    Ok,
    /// The checked setting makes some messages later.
    WillWidenTail,
    /// A fact that the rule needs could not be read.
    Unknown,
}

/// Result of applying one rule to the facts of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable key of the finding: the key of the fact, or of a group of facts.
    pub key: String,
    /// Name of the checked host setting, as the user reads it.
    pub title: String,
    /// Verdict of the check: whether the host setting is good, bad or not known.
    pub verdict: Verdict,
    /// The value of the setting that was found; empty if the value is not known.
    pub value: String,
    /// Reason why the setting makes the tail of the latency longer, or why the fact is not known, as one sentence;
    /// empty if the setting is good.
    pub because: String,
    /// What the user can do to fix the setting, as one sentence; empty if the setting is good.
    #[serde(alias = "mend")]
    pub remedy: String,
    /// Key and value that a study can set below `host` to fix the setting during the trials; empty if no such key
    /// exists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Key of the rule with the remedy, as in `tailbound advice --list`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub advice: String,
    /// How long the setting can delay a message: 1 for some microseconds, 2 for 10 us to 100 us, 3 for 100 us to 1 ms, 4 for 1 ms
    /// to 10 ms, 5 for more, or for lost messages.
    #[serde(default)]
    pub weight: u8,
    /// What the record shows of the causes that the remedy answers; only if the findings were compared with a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<crate::shown::Shown>,
}

/// A rule that checks one setting of a host.
pub(crate) struct Rule {
    /// Key of the fact that the rule checks, and key of its finding.
    pub key: &'static str,
    pub title: &'static str,
    /// Unit that follows the value of the setting, with a space before it.
    pub unit: &'static str,
    /// Condition under which the setting makes the tail of the latency longer.
    pub bad: Condition,
    pub because: &'static str,
    /// Key of the rule of advice with the remedy.
    pub advice: &'static str,
    /// How long the setting can delay a message, as in [`Finding::weight`].
    pub weight: u8,
}

impl Rule {
    /// The rule of advice with the remedy. The table of advice has each rule that this crate names, which a test checks.
    pub fn remedy(&self) -> Option<&'static tailbound_advice::Rule> {
        tailbound_advice::rule(self.advice)
    }

    /// What a study writes below `host` to fix the setting; empty if no such key exists.
    pub fn host(&self) -> String {
        self.remedy().and_then(tailbound_advice::Rule::host_setting).unwrap_or_default()
    }

    pub fn apply(&self, facts: &HostFacts) -> Finding {
        let remedy = self.remedy().map_or("", |rule| rule.remedy);
        let (verdict, value, because, remedy) = match self.bad.judge(self.key, facts) {
            Judgement::Fine(value) => (Verdict::Ok, value, "", ""),
            Judgement::Bad(value) => (Verdict::WillWidenTail, value, self.because, remedy),
            Judgement::NotKnown(why) => return self.unknown(why.0),
        };
        // Only a number gets a unit.
        let unit = if value.parse::<f64>().is_ok() { self.unit } else { "" };
        Finding {
            key: self.key.to_owned(),
            title: self.title.to_owned(),
            verdict,
            value: format!("{value}{unit}"),
            because: because.to_owned(),
            remedy: remedy.to_owned(),
            host: if verdict == Verdict::WillWidenTail { self.host() } else { String::new() },
            advice: self.advice.to_owned(),
            weight: self.weight,
            evidence: None,
        }
    }

    fn unknown(&self, why: String) -> Finding {
        Finding {
            key: self.key.to_owned(),
            title: self.title.to_owned(),
            verdict: Verdict::Unknown,
            value: String::new(),
            because: why,
            remedy: String::new(),
            host: String::new(),
            advice: self.advice.to_owned(),
            weight: self.weight,
            evidence: None,
        }
    }
}
