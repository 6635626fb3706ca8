//! Settings of the host that trials ran under: what was set, found before and read back.

use crate::document::{Finding, FindingLevel, Report};
use crate::findings::finding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tailbound_record::Manifest;

/// More settings than this are not told one by one in a sentence.
const TOLD: usize = 6;

/// Settings of the host for some trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostSettingsReport {
    /// Trials that ran under them.
    pub trials: Vec<usize>,
    /// In the order in which they were set.
    pub settings: Vec<HostSettingReport>,
}

/// One setting of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostSettingReport {
    /// Path of its key in the study.
    pub key: String,
    /// Which of those that the key names: a file, an interrupt, a thread.
    pub what: String,
    /// The end in whose network namespace it lies; absent = the host's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// Value asked for.
    pub wanted: String,
    /// Value found before.
    pub before: String,
    /// Value read back when it was set.
    pub found: String,
    /// What became of it after the trials; null = the run did not come that far.
    pub put_back: Option<String>,
}

/// Settings that ran trials, in the order of time.
pub(crate) fn of(manifest: &Manifest) -> Vec<HostSettingsReport> {
    let one = |s: &tailbound_model::KnobDone| HostSettingReport {
        key: s.key.clone(),
        what: s.what.clone(),
        at: s.at.clone(),
        wanted: s.wanted.clone(),
        before: s.before.clone(),
        found: s.found.clone(),
        put_back: s.put_back.clone(),
    };
    let blocks = manifest.host_settings.iter();
    blocks
        .map(|b| HostSettingsReport { trials: b.trials.clone(), settings: b.settings.iter().map(one).collect() })
        .collect()
}

/// One sentence for each group of conditions that ran under the same settings.
pub(crate) fn told(report: &Report) -> Vec<Finding> {
    let mut groups: Vec<(&[HostSettingReport], Vec<usize>)> = Vec::new();
    let same = |a: &[HostSettingReport], b: &[HostSettingReport]| {
        let value =
            |s: &HostSettingReport| (s.key.clone(), s.what.clone(), s.at.clone(), s.wanted.clone(), s.before.clone());
        a.iter().map(value).eq(b.iter().map(value))
    };
    for block in &report.host_settings {
        let conditions = block.trials.iter().filter_map(|t| Some(report.trial(*t)?.condition));
        match groups.iter_mut().find(|(known, _)| same(known, &block.settings)) {
            Some((_, all)) => all.extend(conditions),
            None => groups.push((&block.settings, conditions.collect())),
        }
    }
    groups.into_iter().map(|(settings, conditions)| sentence(report, settings, conditions)).collect()
}

fn sentence(report: &Report, settings: &[HostSettingReport], mut conditions: Vec<usize>) -> Finding {
    conditions.sort_unstable();
    conditions.dedup();
    let whose = match conditions.as_slice() {
        all if all.len() == report.conditions.len() => String::new(),
        [one] => format!(" for {}", report.conditions[*one].name),
        several => format!(" for {} conditions", several.len()),
    };
    let one = |s: &HostSettingReport| {
        let before = if s.before == s.wanted { "found so".to_owned() } else { format!("found {}", s.before) };
        format!("{} {} ({before})", s.key, s.wanted)
    };
    let mut list: Vec<String> = settings.iter().map(one).collect();
    list.dedup();
    let rest = list.len().saturating_sub(TOLD);
    list.truncate(TOLD);
    if rest > 0 {
        list.push(format!("and {rest} more"));
    }
    let text = format!("The host was set by the study{whose}: {}.", list.join(", "));
    let evidence = "host-settings".into();
    Finding { evidence, ..finding(FindingLevel::Caution, "host_settings", text, &conditions) }
}
