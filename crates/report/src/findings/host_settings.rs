//! Findings about the host settings under which trials ran.

use crate::findings::finding::finding;
use tailbound_document::{Finding, FindingLevel, Report};
use tailbound_model::KnobDone;

/// Largest number of host settings that a sentence lists one by one.
const TOLD: usize = 6;

/// One sentence for each group of conditions whose trials ran under the same host settings.
pub(crate) fn told(report: &Report) -> Vec<Finding> {
    let mut groups: Vec<(&[KnobDone], Vec<usize>)> = Vec::new();
    let same = |a: &[KnobDone], b: &[KnobDone]| {
        let value = |s: &KnobDone| (s.key.clone(), s.what.clone(), s.at.clone(), s.wanted.clone(), s.before.clone());
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

fn sentence(report: &Report, settings: &[KnobDone], mut conditions: Vec<usize>) -> Finding {
    conditions.sort_unstable();
    conditions.dedup();
    let whose = match conditions.as_slice() {
        all if all.len() == report.conditions.len() => String::new(),
        [one] => format!(" for {}", report.conditions[*one].name),
        several => format!(" for {} conditions", several.len()),
    };
    let one = |s: &KnobDone| {
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
    let text = format!("The study changed these settings of the host{whose}: {}.", list.join(", "));
    let evidence = "host-settings".into();
    Finding { evidence, ..finding(FindingLevel::Caution, "host_settings", text, &conditions) }
}
