//! Makes findings: sentences of the report about what was measured or what failed.

use tailbound_document::{Finding, FindingLevel};

/// Makes a finding about conditions. Unless other evidence is set, the evidence of the finding is the table row of the
/// conditions.
pub(crate) fn finding(level: FindingLevel, code: &str, text: String, conditions: &[usize]) -> Finding {
    let evidence = conditions.first().map_or("findings".to_owned(), |id| format!("condition-{id}"));
    Finding { level, code: code.into(), text, evidence, conditions: conditions.to_vec() }
}

pub(crate) fn trimmed(text: &str) -> &str {
    text.trim().trim_end_matches('.')
}
