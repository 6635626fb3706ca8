//! What a record shows of the causes that one remedy answers.

use serde::{Deserialize, Serialize};
use tailbound_document::CauseWord;

/// A smaller share of the excess is not named.
pub(crate) const LEAST_SHARE: f64 = 0.01;

/// What a record shows of the causes that one remedy answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// Causes of late messages that the remedy answers and that the record shows, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseWord>,
    /// Share of the excess of late messages that these causes have.
    pub share: f64,
    /// Number of lost messages whose reason the remedy answers.
    pub lost: u64,
}

impl Shown {
    /// Why a fact matters, as a clause, e.g. ``40 % of your excess was `waited_for_cpu` ``.
    pub fn words(&self) -> String {
        let word =
            |cause: &CauseWord| serde_json::to_value(cause).ok().and_then(|v| v.as_str().map(|w| format!("`{w}`")));
        let causes: Vec<String> = self.causes.iter().filter_map(word).collect();
        let late = (self.share >= LEAST_SHARE)
            .then(|| format!("{:.0} % of your excess was {}", 100.0 * self.share, causes.join(" and ")));
        let lost = match self.lost {
            0 => None,
            1 => Some("1 message was lost because of it".to_owned()),
            n => Some(format!("{n} messages were lost because of it")),
        };
        late.into_iter().chain(lost).collect::<Vec<_>>().join("; ")
    }
}
